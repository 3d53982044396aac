"""Products whose arguments overlap: roles and pipelines store what the next tile loads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.overlapping import K, M, N, generate_overlapping, memory_of


def check(seed: int, folder: Path | None = None) -> bool:
    """Hold a launch to the interpreter; whether what is stored meets what is loaded."""
    program = generate_overlapping(seed)
    before, expected, found = (memory_of(seed) for _ in range(3))
    tile = {"M": M, "N": N, "K": K}
    program.kernel.interpret[(1,)](*program.arguments(expected), **tile)
    program.kernel.simulate[(1,)](*program.arguments(found), **tile, **program.options)
    said = f"seed {seed}: {program}"
    np.testing.assert_array_equal(found, expected, said)
    loaded = np.zeros(len(before), np.bool_)
    for array in program.arguments(loaded)[:2]:
        assert isinstance(array, np.ndarray)
        array[:] = True
    stored = np.zeros(len(before), np.bool_)
    out = program.arguments(stored)[2]
    assert isinstance(out, np.ndarray)
    out[:] = True
    return bool((loaded & stored).any())


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_launches_over_overlapping_arguments_agree(first: int) -> None:
    meet = [check(seed) for seed in range(first, first + 10)]
    assert sum(meet) >= 2, "some launches should store what they load"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1400, 50))
def test_many_random_launches_over_overlapping_arguments_agree(first: int) -> None:
    for seed in range(first, first + 50):
        check(seed)
