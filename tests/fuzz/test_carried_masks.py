"""Carried tiles of which masks show a part: compiled code changes what the interpreter does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.carried_masks import programs
from tests.fuzz.loading import module_at

LAUNCHES = 4


def check(seeds: range, folder: Path) -> None:
    """Hold random launches of random programs to the interpreter, bit for bit."""
    text, made = programs(seeds)
    path = folder / f"carried_{seeds.start}.py"
    path.write_text(text)
    module = module_at(path)
    for program in made:
        kernel = getattr(module, program.name)
        for number, launch in enumerate(program.launches(LAUNCHES)):
            expected, found = (program.arguments(launch, number) for _ in range(2))
            kernel.interpret[(1,)](**expected)
            kernel[(1,)](**found)
            for name in ("out", "seen"):
                message = f"{name} of {program.name}, {launch}:\n{program.text()}"
                np.testing.assert_array_equal(found[name], expected[name], message)


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_random_masks_of_carried_tiles_agree(first: int, tmp_path: Path) -> None:
    check(range(first, first + 10), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 3000, 50))
def test_many_random_masks_of_carried_tiles_agree(first: int, tmp_path: Path) -> None:
    check(range(first, first + 50), tmp_path)
