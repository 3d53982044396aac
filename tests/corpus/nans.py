"""Extrema of data full of NaNs and ties: one rule for every dtype, size, axis and rank.

NaN loses against every number; of equal elements the position is the first, or the last where
ties do not go left. docs/language.md documents the rule.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

import tilewright
import tilewright.language as tl
from tests.corpus.case import BF16, Array, Case, Values, blank, short

SHAPES = ((1, 4), (2, 8), (4, 64), (16, 16), (1, 1024), (256, 4), (2, 2048))


@tilewright.jit
def extrema(
    x, values, least, places, out, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr,
    LEFT: tl.constexpr,
):  # fmt: skip
    K: tl.constexpr = M if AXIS == 1 else N
    i, k = tl.program_id(0) * M * N, tl.program_id(0) * K + tl.arange(0, K)
    a = tl.load(x + i + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    greatest, at = tl.max(a, AXIS, return_indices=True, return_indices_tie_break_left=LEFT)
    tl.store(values + k, greatest.to(tl.float32))
    lesser, low = tl.min(a, AXIS, return_indices=True, return_indices_tie_break_left=LEFT)
    tl.store(least + k, lesser.to(tl.float32))
    tl.store(places + k * 4, at)
    tl.store(places + k * 4 + 1, low)
    tl.store(places + k * 4 + 2, tl.argmax(a, AXIS, tie_break_left=LEFT))
    tl.store(places + k * 4 + 3, tl.argmin(a, AXIS, tie_break_left=LEFT))
    tl.store(out + k * 2, tl.max(a, AXIS).to(tl.float32))
    tl.store(out + k * 2 + 1, tl.min(a, AXIS).to(tl.float32))


@tilewright.jit
def of_all(x, out, N: tl.constexpr):
    """Every element of a tile of rank 3 at once, and rules that pass NaN on."""
    i = tl.program_id(0)
    a = tl.reshape(tl.load(x + i * N + tl.arange(0, N)), (2, N // 4, 2))
    value, at = tl.max(a, None, return_indices=True)
    tl.store(out + i * 5, value.to(tl.float32))
    tl.store(out + i * 5 + 1, at.to(tl.float32))
    tl.store(out + i * 5 + 2, tl.min(a).to(tl.float32))
    passed = tl.reduce(a.to(tl.float32), None, _passing_maximum)
    tl.store(out + i * 5 + 3, passed)
    tl.store(out + i * 5 + 4, tl.max(tl.maximum(a, 0.0)).to(tl.float32))


@tilewright.jit
def _passing_maximum(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


def tied(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """A few different numbers, zero and infinities among NaNs; some programs have NaNs alone."""
    if dtype.kind in "iu":
        return rng.integers(0, 3, shape).astype(dtype)
    choices = np.array([np.nan, np.nan, 1, -1, 0.0, 2, np.inf, -np.inf])
    x = choices[rng.integers(0, rng.integers(1, 9, (shape[0], 1, 1)), shape)]
    return x.astype(dtype)


def extreme(a: Array, axis: int, is_left: bool, is_greatest: bool) -> tuple[Array, Array]:
    """The value and its position by the rule."""
    wide = np.moveaxis(a.astype(np.float64), axis, -1)
    wide = wide if is_greatest else -wide
    # Above -inf by a flag: NaN is the least, all numbers above it.
    rank = np.where(np.isnan(wide), -1.0, np.arctan(wide) + 2)
    best = rank.max(axis=-1, keepdims=True) == rank
    at = best.argmax(-1) if is_left else best.shape[-1] - 1 - best[..., ::-1].argmax(-1)
    found = np.take_along_axis(np.moveaxis(a, axis, -1), at[..., None], -1)[..., 0]
    return found.astype(np.float32), at.astype(np.int32)


def _extrema_case(dtype: np.dtype, shape: tuple[int, int], axis: int, is_left: bool) -> Case:
    programs = 5
    kept = shape[1 - axis]

    def inputs(rng: np.random.Generator) -> Values:
        return {
            "x": tied(rng, (programs, *shape), dtype), "values": blank((programs, kept)),
            "least": blank((programs, kept)), "places": blank((programs, kept, 4), np.int32),
            "out": blank((programs, kept, 2)), "M": shape[0], "N": shape[1], "AXIS": axis,
            "LEFT": is_left,
        }  # fmt: skip

    def reference(a: SimpleNamespace) -> None:
        for column, is_greatest in enumerate((True, False)):
            value, at = extreme(a.x, axis + 1, is_left, is_greatest)
            (a.least, a.values)[is_greatest][:] = value
            a.places[..., column] = a.places[..., column + 2] = at
            a.out[..., column] = value

    side = "left" if is_left else "right"
    name = f"extrema-{short(dtype)}-{shape[0]}x{shape[1]}-axis{axis}-{side}"
    is_slow = dtype.itemsize not in (2, 4) or (shape[0] * axis) % 3 == 2
    return Case(name, extrema, (programs,), inputs, reference, is_slow=is_slow)


def _of_all_case(dtype: np.dtype, size: int) -> Case:
    def inputs(rng: np.random.Generator) -> Values:
        x = tied(rng, (7, size, 1), dtype)[..., 0]
        return {"x": x, "out": blank((7, 5)), "N": size}

    def reference(a: SimpleNamespace) -> None:
        a.out[:, 0], a.out[:, 1] = extreme(a.x, 1, True, True)
        a.out[:, 2] = extreme(a.x, 1, True, False)[0]
        a.out[:, 3] = a.x.astype(np.float32).max(axis=1)
        a.out[:, 4] = np.fmax(a.x.astype(np.float32), 0).max(axis=1)

    return Case(f"extrema-of-all-{short(dtype)}-{size}", of_all, (7,), inputs, reference)


_DTYPES = (np.dtype(np.float32), np.dtype(np.float16), BF16, np.dtype(np.float64))
CASES = [
    *(
        _extrema_case(dtype, shape, axis, is_left)
        for number, shape in enumerate(SHAPES)
        for dtype in (_DTYPES[number % 4], np.dtype(np.float32), np.dtype(np.uint8))
        for axis in (0, 1)
        for is_left in (True, False)
        if dtype != np.dtype(np.uint8) or is_left == (axis == 0)
    ),
    *(_of_all_case(dtype, size) for dtype in _DTYPES for size in (8, 64, 4096)),
]
CASES = list({case.name: case for case in CASES}.values())
