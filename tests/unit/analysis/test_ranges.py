"""The ranges of integers: of tiles, of what wraps around, and of what bounds itself."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.passes.lowered import tiles
from tilewright.analysis.ranges import Range, Ranges
from tilewright.ops.memory.ir import StoreOp

EVERY, WIDE = (-(1 << 31), (1 << 31) - 1), (-(1 << 63), (1 << 63) - 1)


@tilewright.jit
def numbers(x, out, n, WHICH: tl.constexpr, FACTOR: tl.constexpr):
    """One tile of numbers, made in the way that is asked for."""
    i = tl.arange(0, 128)
    loaded = tl.load(x + i)
    if WHICH == "product":
        found = i * FACTOR
    elif WHICH == "sum":
        found = i + FACTOR
    elif WHICH == "program":
        found = tl.program_id(0) + i * 0
    elif WHICH == "block":
        found = tl.program_id(0) * 128 + i
    elif WHICH == "argument":
        found = n + i
    elif WHICH == "mask":
        found = loaded & 7
    elif WHICH == "remainder":
        found = loaded % FACTOR
    elif WHICH == "of a range":
        found = (i + 5) % FACTOR + i // 3
    elif WHICH == "shift":
        found = i << FACTOR
    elif WHICH == "clamp":
        found = tl.minimum(tl.maximum(loaded, 3), 12)
    elif WHICH == "either":
        found = tl.where(loaded > 0, i, i - 5)
    elif WHICH == "wide":
        found = i.to(tl.int64) * FACTOR
    elif WHICH == "narrow":
        found = (i * FACTOR).to(tl.int8).to(tl.int32)
    elif WHICH == "byte":
        found = loaded.to(tl.uint8).to(tl.int32)
    elif WHICH == "moved":
        found = tl.reshape(tl.trans(tl.reshape(i, (8, 16))), (128,))
    else:
        found = loaded
    tl.store(out + i, found)


@pytest.mark.parametrize(
    ("which", "factor", "expected"),
    [
        ("product", 9, (0, 127 * 9)),
        ("product", -3, (-381, 0)),
        ("product", (1 << 31) // 127, (0, (1 << 31) // 127 * 127)),
        ("product", (1 << 31) // 127 + 1, EVERY),
        ("product", 1103515245, EVERY),
        ("sum", -3, (-3, 124)),
        ("sum", (1 << 31) - 128, ((1 << 31) - 128, (1 << 31) - 1)),
        ("sum", (1 << 31) - 127, EVERY),
        ("program", 1, (0, (1 << 31) - 1)),
        ("block", 1, EVERY),
        ("argument", 1, EVERY),
        ("mask", 1, (0, 7)),
        ("remainder", 9, (-8, 8)),
        ("of a range", 9, (0, 8 + 42)),
        ("shift", 4, (0, 127 * 16)),
        ("shift", 24, (0, 127 << 24)),
        ("shift", 25, EVERY),
        ("clamp", 1, (3, 12)),
        ("either", 1, (-5, 127)),
        ("wide", 1103515245, (0, 127 * 1103515245)),
        ("wide", 1 << 62, WIDE),
        ("narrow", 1, (0, 127)),
        ("narrow", 2, (-128, 127)),
        ("byte", 1, (0, 255)),
        ("moved", 1, (0, 127)),
        ("loaded", 1, EVERY),
    ],
)
def test_a_range_holds_whatever_wraps_around(which: str, factor: int, expected: Range) -> None:
    x, out = np.zeros(128, np.int32), np.zeros(128, np.int64 if which == "wide" else np.int32)
    module = tiles(numbers, x=x, out=out, n=77, WHICH=which, FACTOR=factor)
    (store,) = (op for op in module.walk() if isinstance(op, StoreOp))
    found = Ranges().of(store.operands[1])
    assert found == expected
    assert Ranges().is_nonnegative(store.operands[1]) == (expected[0] >= 0)
