"""Carried tiles of which masks show a part: compiled code changes what the interpreter does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.agreement import LAUNCHES, count_agreeing
from tests.fuzz.carried_masks import programs


def check(seeds: range, folder: Path) -> None:
    """Hold random launches of random programs to the interpreter, bit for bit."""
    path = folder / f"carried_{seeds.start}.py"
    assert count_agreeing(path, *programs(seeds), ("out", "seen")) == LAUNCHES * len(seeds)


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_random_masks_of_carried_tiles_agree(first: int, tmp_path: Path) -> None:
    check(range(first, first + 10), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 3000, 50))
def test_many_random_masks_of_carried_tiles_agree(first: int, tmp_path: Path) -> None:
    check(range(first, first + 50), tmp_path)
