"""split_carried_pointers: which carried tiles become a scalar offset."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import ModuleOp

import tilewright
import tilewright.language as tl
from tests.passes.lowered import named, written
from tilewright.analysis.affine.tiles import AffineTiles
from tilewright.ir.types import i32, i64, shape_of
from tilewright.ops.control_flow import ForOp
from tilewright.ops.memory.ir import LoadOp
from tilewright.passes.split_carried_pointers import SplitCarriedPointers

F32 = np.zeros(1 << 12, np.float32)
I32 = np.zeros(1 << 12, np.int32)


@tilewright.jit
def moving(x, out, n, stride, BLOCK: tl.constexpr):
    """A pointer tile and an index tile that move by scalars."""
    i = tl.arange(0, BLOCK)
    ptrs = x + i
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(n):
        total += tl.load(ptrs, mask=i < n)
        ptrs += stride
        i += 3
    tl.store(out + i, total)


@tilewright.jit
def scattered(x, steps, out, n, BLOCK: tl.constexpr):
    """A pointer tile whose elements move differently."""
    i = tl.arange(0, BLOCK)
    ptrs = x + i
    step = tl.load(steps + i)
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(n):
        total += tl.load(ptrs)
        ptrs += step
    tl.store(out + i, total)


def loop_of(module: ModuleOp) -> ForOp:
    """The one loop of a module."""
    (loop,) = named(module, "scf.for")
    assert isinstance(loop, ForOp)
    return loop


def test_tiles_that_move_by_a_scalar_become_scalars() -> None:
    module = written(moving, x=F32, out=F32, n=5, stride=7, BLOCK=64)
    SplitCarriedPointers().apply(module)
    module.verify()
    scalars = [a.type for a in loop_of(module).body.block.args[1:] if not shape_of(a.type)]
    assert sorted(map(str, scalars)) == sorted(map(str, (i32, i64)))


def test_a_moved_tile_keeps_its_structure() -> None:
    module = written(moving, x=F32, out=F32, n=5, stride=7, BLOCK=64)
    SplitCarriedPointers().apply(module)
    (load,) = [op for op in module.walk() if isinstance(op, LoadOp)]
    (stride,) = AffineTiles().strides(load.ptr)
    assert stride is not None and stride.as_int() == 1


def test_a_tile_whose_elements_move_differently_stays_carried() -> None:
    module = written(scattered, x=F32, steps=I32, out=F32, n=5, BLOCK=64)
    before = str(module)
    SplitCarriedPointers().apply(module)
    assert str(module) == before


def test_the_compiled_loops_read_the_right_elements(rng: np.random.Generator) -> None:
    x = rng.standard_normal(4096, dtype=np.float32)
    steps = rng.integers(0, 9, 64).astype(np.int32)
    out, moved = np.zeros(64, np.float32), np.zeros(512, np.float32)
    scattered[(1,)](x, steps, out, 5, BLOCK=64)
    expected = sum(x[np.arange(64) + k * steps] for k in range(5))
    np.testing.assert_allclose(out, expected, rtol=1e-6)
    moving[(1,)](x, moved, 70, 7, BLOCK=64)
    lanes = np.arange(64)
    sums = np.zeros(64)
    for k in range(70):
        sums += np.where(lanes + 3 * k < 70, x[lanes + 7 * k], 0)
    np.testing.assert_allclose(moved[210:274], sums, rtol=1e-5)
