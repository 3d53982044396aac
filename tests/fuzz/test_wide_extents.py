"""Tensors and offsets that are larger than int32 counts: all is read, or it is refused."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.runtime.tensor_descriptor import TensorDescriptor
from tilewright.support.errors import DtypeNotAllowed, ShapeMismatch

ROWS, COLUMNS = 8, 16
# Around each power of two at which fewer bits are all zeros, or say something else.
EXTENTS = [(1 << bits) + more for bits in (31, 32, 33, 40, 62) for more in (-1, 0, 1, 5, 8)]


@tilewright.jit
def by_descriptor(x, out, sizes, at, M: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.load(sizes), tl.load(sizes + 1)
    desc = tl.make_tensor_descriptor(x, [rows, columns], [N, 1], [M, N])
    place = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + place, desc.load([at, 0]))


@tilewright.jit
def by_arguments(x, out, rows, columns, at, M: tl.constexpr, N: tl.constexpr):
    desc = tl.make_tensor_descriptor(x, [rows, columns], [N, 1], [M, N])
    place = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + place, desc.load([at, 0]))


@tilewright.jit
def by_block(x, out, rows, columns, at, M: tl.constexpr, N: tl.constexpr):
    block = tl.make_block_ptr(x, (rows, columns), (N, 1), (at, 0), (M, N), (1, 0))
    place = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + place, tl.load(block, boundary_check=(0, 1), padding_option="zero"))


def expected(x: np.ndarray, rows: int, columns: int, at: int) -> np.ndarray:
    """The block at row `at`; zeros behind the tensor and before it."""
    found = np.zeros((ROWS, COLUMNS), np.float32)
    for row in range(max(0, -at), ROWS):
        if row + at < min(rows, ROWS):
            found[row, : min(columns, COLUMNS)] = x[row + at, : min(columns, COLUMNS)]
    return found


@pytest.mark.parametrize("seed", range(12))
def test_extents_keep_the_bits_beyond_those_of_offsets(seed: int) -> None:
    rng = random.Random(seed)
    extents = [rng.choice([*EXTENTS, 3, 5, 8]) for _ in range(2)]
    rows, columns = extents
    # A tensor of so many rows has memory for these: nothing may be read behind them.
    at = rng.choice((0, -3)) if rows > ROWS else rng.choice((0, -3, 2))
    x = np.arange(1, ROWS * COLUMNS + 1, dtype=np.float32).reshape(ROWS, COLUMNS)
    wanted, sizes = expected(x, rows, columns, at), {"M": ROWS, "N": COLUMNS}
    dtype = rng.choice((np.int64, np.uint64))
    for run in ("launch", "interpret"):
        for kernel, arguments in (
            (by_descriptor, (np.array(extents, dtype),)),
            (by_arguments, (rows, columns)),
            (by_block, (rows, columns)),
        ):
            out = np.full((ROWS, COLUMNS), -1, np.float32)
            way = kernel if run == "launch" else kernel.interpret
            way[(1,)](x, out, *arguments, at, **sizes)
            np.testing.assert_array_equal(out, wanted, f"{kernel.fn.__name__} {extents} {at}")


@pytest.mark.parametrize("kernel", [by_arguments, by_block])
@pytest.mark.parametrize("at", [1 << 32, -(1 << 32), (1 << 40) + 3])
def test_offsets_that_are_wider_are_refused(kernel: tilewright.JITFunction, at: int) -> None:
    x, out = np.zeros((ROWS, COLUMNS), np.float32), np.zeros((ROWS, COLUMNS), np.float32)
    with pytest.raises(DtypeNotAllowed, match="`offsets` holds int64") as caught:
        kernel[(1,)](x, out, 1 << 41, COLUMNS, at, M=ROWS, N=COLUMNS)
    assert ".to(tl.int32)" in caught.value.hint


@pytest.mark.parametrize("shape", [(1 << 31, 16), (1 << 40, 16), (8.5, 16), ("8", 16), 17])
def test_a_descriptor_of_the_host_cuts_nothing_off(shape: object) -> None:
    x = np.zeros((ROWS, COLUMNS), np.float32)
    with pytest.raises(ShapeMismatch, match=r"does not fit int32|a sequence of integers") as caught:
        TensorDescriptor(x, shape, [COLUMNS, 1], [ROWS, COLUMNS])
    assert caught.value.argument == "shape"
