"""Random kernels with tiles of multiples of 16: threads compute what the interpreter does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.loading import module_at
from tests.fuzz.odd_extents import generate_odd_extents
from tilewright.support.errors import NotPowerOfTwo, SharedMemoryExceeded


def check(seed: int, folder: Path) -> bool:
    """Hold the threads of a launch to the interpreter; whether the groups share its tiles."""
    program = generate_odd_extents(seed)
    path = folder / f"odd_extents_{seed}.py"
    path.write_text(program.text)
    kernel, expected, found = module_at(path).kernel, program.arguments(), program.arguments()
    order = seed if seed % 2 else None
    try:
        kernel.simulate[program.grid](**found, **program.options, seed=order)
    except (NotPowerOfTwo, SharedMemoryExceeded):
        return False
    kernel.interpret[program.grid](**expected, **program.options)
    for name in ("out", "other"):
        wanted = np.asarray(expected[name])
        np.testing.assert_array_equal(found[name], wanted, f"seed {seed}: {program}")
    return True


@pytest.mark.parametrize("first", range(0, 48, 8))
def test_random_odd_extents_agree(first: int, tmp_path: Path) -> None:
    # Most are computed; the others say what no groups share.
    assert sum(check(seed, tmp_path) for seed in range(first, first + 8)) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1600, 20))
def test_more_random_odd_extents_agree(first: int, tmp_path: Path) -> None:
    assert sum(check(seed, tmp_path) for seed in range(first, first + 20)) >= 8
