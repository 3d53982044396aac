"""Products whose arguments overlap: roles and pipelines store what the next tile loads.

What runs ahead has the order of the text. Threads of a kernel in which nothing does are not ordered
through different arguments, unless it is compiled with `may_overlap`; the simulator says where.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.overlapping import K, M, N, generate_overlapping, memory_of
from tilewright.interp.simt.faults import GlobalRace


def check(seed: int, folder: Path | None = None) -> bool:
    """Hold a launch to the interpreter; whether what is stored meets what is loaded."""
    program = generate_overlapping(seed)
    expected, found = memory_of(seed), memory_of(seed)
    tile = {"M": M, "N": N, "K": K}
    program.kernel.interpret[(1,)](*program.arguments(expected), **tile)
    options = {**tile, **program.options}
    try:
        program.kernel.simulate[(1,)](*program.arguments(found), **options)
    except GlobalRace:
        found = memory_of(seed)
        program.kernel.simulate[(1,)](*program.arguments(found), **options, may_overlap=True)
    np.testing.assert_array_equal(found, expected, f"seed {seed}: {program}")
    loaded = np.zeros(len(expected), np.bool_)
    for array in program.arguments(loaded)[:2]:
        assert isinstance(array, np.ndarray)
        array[:] = True
    stored = np.zeros(len(expected), np.bool_)
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
