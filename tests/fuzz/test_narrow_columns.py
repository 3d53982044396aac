"""Columns of narrow arrays: compiled code folds, adds up and stores what the interpreter does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.agreement import LAUNCHES, count_agreeing
from tests.fuzz.narrow_columns import programs


def check(seeds: range, folder: Path) -> None:
    """Hold random launches of random programs to the interpreter, bit for bit."""
    path = folder / f"narrow_{seeds.start}.py"
    assert count_agreeing(path, *programs(seeds), ("out",)) > LAUNCHES * len(seeds) // 2


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_random_narrow_columns_agree(first: int, tmp_path: Path) -> None:
    check(range(first, first + 10), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 3000, 50))
def test_many_random_narrow_columns_agree(first: int, tmp_path: Path) -> None:
    check(range(first, first + 50), tmp_path)
