"""Products of parts of tiles: compiled code stores what the interpreter does, on every unit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.asm.amx_host import use_modelled_amx
from tests.fuzz.agreement import LAUNCHES, count_agreeing
from tests.fuzz.part_operands import programs


def check(seeds: range, folder: Path) -> int:
    """Hold random launches of random programs to the interpreter, bit for bit; count them."""
    path = folder / f"parts_{seeds.start}.py"
    return count_agreeing(path, *programs(seeds), ("c", "sums"))


@pytest.mark.parametrize("first", range(0, 24, 4))
def test_random_parts_of_operands_agree(first: int, tmp_path: Path) -> None:
    assert check(range(first, first + 4), tmp_path) == 4 * LAUNCHES


@pytest.mark.parametrize("first", range(32, 48, 4))
def test_random_parts_of_operands_agree_on_amx(
    first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_modelled_amx(monkeypatch)
    assert check(range(first, first + 4), tmp_path) == 4 * LAUNCHES


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 3000, 50))
def test_many_random_parts_of_operands_agree(first: int, tmp_path: Path) -> None:
    assert check(range(first, first + 50), tmp_path) == 50 * LAUNCHES
