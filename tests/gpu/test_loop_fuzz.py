"""Random loops on the GPU: at each depth the bits of the interpreter, or of a single iteration."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import torch
from tests.fuzz import test_hostile_loops, test_pipelined_loops
from tests.fuzz.hostile import generate_hostile
from tests.fuzz.test_pipelined_loops import S

pytestmark = pytest.mark.gpu
CHUNK = 10
_LINE_BYTES = 64


@pytest.mark.parametrize("first", range(2_100_000, 2_100_250, CHUNK))
def test_hostile_loops_agree(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + CHUNK):
        program = generate_hostile(seed)
        kernel, grid = test_hostile_loops.load(program, tmp_path), (program.programs,)
        expected = program.arguments()
        kernel.interpret[grid](*expected.values(), STAGES=1)
        for options in ({"STAGES": 2 + seed % 3}, {"STAGES": 1, "bulk_access": "always"}):
            found = {name: on_device(value) for name, value in program.arguments().items()}
            kernel[grid](*found.values(), num_warps=(4, 1, 8)[seed % 3], **options)
            for name, array in expected.items():
                if isinstance(array, np.ndarray):
                    said = f"seed {seed}, {options}: {name}"
                    np.testing.assert_array_equal(found[name].cpu().numpy(), array, said)


@pytest.mark.parametrize("first", range(2_200_000, 2_200_250, CHUNK))
def test_loops_agree_at_two_depths(first: int, tmp_path: Path) -> None:
    seeds = range(first, first + CHUNK)
    for seed, kernel in zip(seeds, test_pipelined_loops.load(seeds, tmp_path), strict=True):
        rng = np.random.default_rng(seed)
        a, b = (rng.standard_normal((8 * S + 1, S)).astype(np.float16) for _ in range(2))
        c = rng.standard_normal((8 * S, S)).astype(np.float32)
        start = rng.integers(0, 8 * S, 8 * S).astype(np.int32)
        trips, depth = int(rng.integers(1, 7)), int(rng.integers(2, 6))
        found: list[bytes] = []
        for stages in (1, depth):
            out = np.full((S, S), np.nan, np.float32)
            tensors = [on_device(array) for array in (a, b, c, start, out)]
            kernel[(1,)](*tensors, trips, STAGES=stages, num_warps=(4, 1)[seed % 2])
            found.append(b"".join(tensor.cpu().numpy().tobytes() for tensor in tensors[3:]))
        assert found[0] == found[1], f"seed {seed}, {depth} stages"


def on_device(value: object) -> object:
    """A flat tensor as far behind a line of memory as an array is; numbers as they are."""
    if not isinstance(value, np.ndarray):
        return value
    flat = np.ascontiguousarray(value).reshape(-1)
    room = torch.zeros(flat.nbytes + 2 * _LINE_BYTES, dtype=torch.uint8, device="cuda")
    first = (value.ctypes.data - room.data_ptr()) % _LINE_BYTES
    tensor = room[first : first + flat.nbytes].view(getattr(torch, str(flat.dtype)))
    tensor.copy_(torch.from_numpy(flat))
    return tensor
