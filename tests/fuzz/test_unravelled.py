"""Unravelled indices: compiled code reads and writes what the interpreter does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.loading import module_at
from tests.fuzz.unravelled import programs

LAUNCHES = 4


def check(seeds: range, folder: Path) -> int:
    """Hold random launches of random programs to the interpreter, bit for bit; count them."""
    text, made = programs(seeds)
    path = folder / f"unravelled_{seeds.start}.py"
    path.write_text(text)
    module = module_at(path)
    checked = 0
    for program in made:
        kernel = getattr(module, program.name)
        for number, launch in enumerate(program.launches(LAUNCHES)):
            expected, found = (program.arguments(launch, number) for _ in range(2))
            if expected is None or found is None:
                continue
            kernel.interpret[(1,)](**expected)
            kernel[(1,)](**found)
            checked += 1
            for name in ("out", "y", "x"):
                message = f"{name} of {program.name}, {launch}"
                np.testing.assert_array_equal(found[name], expected[name], message)
    return checked


@pytest.mark.parametrize("first", range(0, 20, 5))
def test_random_unravelled_indices_agree(first: int, tmp_path: Path) -> None:
    assert check(range(first, first + 5), tmp_path) > 2 * LAUNCHES


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 3000, 50))
def test_many_random_unravelled_indices_agree(first: int, tmp_path: Path) -> None:
    assert check(range(first, first + 50), tmp_path) > 10 * LAUNCHES
