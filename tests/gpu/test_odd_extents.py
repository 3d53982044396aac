"""Random kernels with tiles of multiples of 16 on a GPU: the bits of the interpreter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import torch
from tests.fuzz.loading import module_at
from tests.fuzz.odd_extents import generate_odd_extents
from tilewright.support.errors import NotPowerOfTwo, SharedMemoryExceeded

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("first", range(2000, 2160, 16))
def test_random_odd_extents_agree(first: int, tmp_path: Path) -> None:
    assert sum(agrees(seed, tmp_path) for seed in range(first, first + 16)) >= 8


def agrees(seed: int, folder: Path) -> bool:
    """Whether the groups share the tiles of a program, which are then those of the interpreter."""
    program = generate_odd_extents(seed)
    path = folder / f"odd_extents_{seed}.py"
    path.write_text(program.text)
    kernel, expected, given = module_at(path).kernel, program.arguments(), program.arguments()
    arrays = {name: torch.from_numpy(v).cuda() for name, v in given.items() if hasattr(v, "dtype")}
    try:
        kernel[program.grid](**{**given, **arrays}, **program.options)
    except (NotPowerOfTwo, SharedMemoryExceeded):
        return False
    kernel.interpret[program.grid](**expected, **program.options)
    for name in ("out", "other"):
        wanted = np.asarray(expected[name])
        np.testing.assert_array_equal(arrays[name].cpu().numpy(), wanted, f"seed {seed}: {program}")
    return True
