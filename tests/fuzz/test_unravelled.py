"""Unravelled indices: compiled code reads and writes what the interpreter does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.agreement import LAUNCHES, count_agreeing
from tests.fuzz.unravelled import programs


def check(seeds: range, folder: Path) -> int:
    """Hold random launches of random programs to the interpreter, bit for bit; count them."""
    path = folder / f"unravelled_{seeds.start}.py"
    return count_agreeing(path, *programs(seeds), ("out", "y", "x"))


@pytest.mark.parametrize("first", range(0, 20, 5))
def test_random_unravelled_indices_agree(first: int, tmp_path: Path) -> None:
    assert check(range(first, first + 5), tmp_path) > 2 * LAUNCHES


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 3000, 50))
def test_many_random_unravelled_indices_agree(first: int, tmp_path: Path) -> None:
    assert check(range(first, first + 50), tmp_path) > 10 * LAUNCHES
