"""Tiles written across their rows: compiled code leaves the arrays that the interpreter does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.across import programs
from tests.fuzz.agreement import LAUNCHES, count_agreeing


def check(seeds: range, folder: Path) -> None:
    """Hold random launches of random programs to the interpreter, bit for bit."""
    written = ("out", "along", "sums")
    path = folder / f"across_{seeds.start}.py"
    assert count_agreeing(path, *programs(seeds), written) == LAUNCHES * len(seeds)


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_tiles_across_agree(first: int, tmp_path: Path) -> None:
    check(range(first, first + 10), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 3000, 50))
def test_many_random_tiles_across_agree(first: int, tmp_path: Path) -> None:
    check(range(first, first + 50), tmp_path)
