"""8-bit floats at their edges, and shifts whose operands differ in signedness."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

import tilewright
import tilewright.language as tl
from tests.corpus.case import BF16, INTEGERS, Array, Case, Values, blank, short, whole
from tests.fp8 import FORMATS, Format, edges

BLOCK_SIZE = 256


@tilewright.jit
def through_fp8(x, out, n, TO: tl.constexpr, ROUNDING: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=0.0)
    b = a.to(TO, fp_downcast_rounding=ROUNDING)
    tl.store(out + i, b.to(tl.float32), mask=i < n)


@tilewright.jit
def widen_codes(x, out, TO: tl.constexpr):
    i = tl.arange(0, 256)
    tl.store(out + i, tl.load(x + i).to(TO, bitcast=True).to(tl.float32))


@tilewright.jit
def shifted_right(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=0)
    b = tl.load(y + i, mask=i < n, other=0)
    tl.store(out + i, (a >> b).to(tl.int64), mask=i < n)


def _sources(format_: Format, source: np.dtype) -> Array:
    if source == BF16:  # of NumPy's numbers the upper halves of float32 are bfloat16's
        bits = edges(format_, np.dtype(np.float32)).view(np.uint32)
        return np.unique(bits >> np.uint32(16)).astype(np.uint16).view(BF16)
    return edges(format_, source)


def _through_case(name: str, source: np.dtype, rounding: str) -> Case:
    format_ = FORMATS[name]
    with np.errstate(all="ignore"):
        x = _sources(format_, source)
    values = format_.values()

    def inputs(rng: np.random.Generator) -> Values:
        return {
            "x": x.copy(), "out": blank(len(x)), "n": len(x), "TO": getattr(tl, name),
            "ROUNDING": rounding, "BLOCK": BLOCK_SIZE,
        }  # fmt: skip

    def reference(a: SimpleNamespace) -> None:
        codes = format_.codes(a.x.astype(np.float64), rounding)
        a.out[:] = np.where(codes < 0, np.nan, values[codes])

    label = f"through-{name}-{rounding}-{short(source)}"
    grid = (-(-len(x) // BLOCK_SIZE),)
    is_slow = source.itemsize != 4 and (rounding == "rtz") == (source.itemsize == 2)
    return Case(label, through_fp8, grid, inputs, reference, is_slow=is_slow)


def _widening_case(name: str) -> Case:
    def inputs(rng: np.random.Generator) -> Values:
        return {"x": np.arange(256, dtype=np.uint8), "out": blank(256), "TO": getattr(tl, name)}

    def reference(a: SimpleNamespace) -> None:
        a.out[:] = FORMATS[name].values()

    return Case(f"widen-{name}", widen_codes, (1,), inputs, reference)


def _shift_case(left: np.dtype, right: np.dtype) -> Case:
    n = 300

    def inputs(rng: np.random.Generator) -> Values:
        return {
            "x": whole(rng, n, left), "y": whole(rng, n, right, 0, 8 * left.itemsize),
            "out": blank(n, np.int64), "n": n, "BLOCK": 128,
        }  # fmt: skip

    def reference(a: SimpleNamespace) -> None:
        # The dtype in which they meet decides how the result reads; the sign bits are x's.
        wide = a.x.astype(np.int64) >> a.y.astype(np.int64)
        width = max(left.itemsize, right.itemsize)
        is_unsigned = left.itemsize < right.itemsize or (left.itemsize == right.itemsize)
        kind = np.dtype(f"{'u' if is_unsigned else 'i'}{width}") if left.kind == "i" else left
        a.out[:] = wide.astype(kind).astype(np.int64)

    name = f"shift-{short(left)}-by-{short(right)}"
    is_slow = 8 in (left.itemsize, right.itemsize)
    return Case(name, shifted_right, (3,), inputs, reference, is_slow=is_slow)


_UNSIGNED = tuple(dtype for dtype in INTEGERS if dtype.kind == "u")
_SIGNED = tuple(dtype for dtype in INTEGERS if dtype.kind == "i")
CASES = [
    *(
        _through_case(name, np.dtype(source), rounding)
        for name in FORMATS
        for source in (np.float16, BF16, np.float32, np.float64)
        for rounding in ("rtne", "rtz")
    ),
    *map(_widening_case, FORMATS),
    *(_shift_case(left, right) for left in _SIGNED for right in _UNSIGNED),
]
