"""Chains over rows whose ends masks hide: compiled code does what the interpreter does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.loading import module_at
from tests.fuzz.masked_rows import programs

LAUNCHES = 5
# Three steps of 1 ulp each, and sums of a thousand elements in another order.
TOLERANCE = 2e-5


def assert_same_zeros(found: np.ndarray, expected: np.ndarray, message: str) -> None:
    """Zeros have the signs that they have in the interpreter."""
    are_zero = (found == 0) & (expected == 0)
    np.testing.assert_array_equal(
        np.signbit(found[are_zero]), np.signbit(expected[are_zero]), message
    )


def check(seeds: range, folder: Path) -> None:
    """Hold random launches of random programs to the interpreter."""
    text, made = programs(seeds)
    path = folder / f"masked_rows_{seeds.start}.py"
    path.write_text(text)
    module = module_at(path)
    for program in made:
        kernel = getattr(module, program.name)
        for number, launch in enumerate(program.launches(LAUNCHES)):
            expected, found = (program.arguments(launch, number) for _ in range(2))
            with np.errstate(all="ignore"):
                kernel.interpret[(2,)](**expected)
            kernel[(2,)](**found)
            for name in ("out", "folds"):
                message = f"{name} of {program.name}, {launch}:\n{program.text}"
                near = (found[name], expected[name], TOLERANCE, TOLERANCE)
                np.testing.assert_allclose(*near, err_msg=message)
            if program.has_signs:
                assert_same_zeros(found["out"], expected["out"], message)


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_random_chains_over_masked_rows_agree(first: int, tmp_path: Path) -> None:
    check(range(first, first + 10), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 3000, 50))
def test_many_random_chains_over_masked_rows_agree(first: int, tmp_path: Path) -> None:
    check(range(first, first + 50), tmp_path)
