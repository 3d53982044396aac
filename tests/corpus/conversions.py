"""Casts between all dtypes, rounding modes and bit casts."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

import tilewright
import tilewright.language as tl
from tests.corpus.case import (
    BF16,
    E4M3,
    E5M2,
    FLOATS,
    INTEGERS,
    Array,
    Case,
    Values,
    blank,
    is_float,
    normal,
    short,
    whole,
)  # fmt: skip

N, BLOCK_SIZE = 777, 64
GRID = (13,)
LANGUAGE = {
    np.dtype(np.bool_): tl.int1,
    np.dtype(np.float16): tl.float16,
    BF16: tl.bfloat16,
    E4M3: tl.float8e4nv,
    E5M2: tl.float8e5,
    np.dtype(np.float32): tl.float32,
    np.dtype(np.float64): tl.float64,
    **{
        np.dtype(name): getattr(tl, name)
        for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
    },
}


@tilewright.jit
def convert(x, out, n, TO: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=0)
    tl.store(out + i, a.to(TO), mask=i < n)


@tilewright.jit
def convert_toward_zero(x, out, n, TO: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(out + i, a.to(TO, fp_downcast_rounding="rtz"), mask=i < n)


@tilewright.jit
def reinterpret(x, out, n, TO: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=0)
    tl.store(out + i, a.to(TO, bitcast=True), mask=i < n)


@tilewright.jit
def implicit_store_cast(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(out + i, a * 3.0, mask=i < n)


def _source(rng: np.random.Generator, source: np.dtype, target: np.dtype) -> Array:
    """Values whose conversion is defined: floats that fit the integer they become."""
    if not is_float(source):
        return whole(rng, N, source)
    x = rng.standard_normal(N) * (8 if source.itemsize == 1 else 40)
    if target.kind == "u":
        x = np.abs(x)
    if target == np.dtype(np.int8):
        x = np.clip(x, -127, 127)
    return x.astype(source)


def _convert_case(source: np.dtype, target: np.dtype, is_slow: bool = False) -> Case:
    def inputs(rng: np.random.Generator) -> Values:
        return {
            "x": _source(rng, source, target), "out": blank(N, target), "n": N,
            "TO": LANGUAGE[target], "BLOCK": BLOCK_SIZE,
        }  # fmt: skip

    def reference(a: SimpleNamespace) -> None:
        with np.errstate(all="ignore"):
            a.out[:] = _cast(a.x, target)

    name = f"convert-{short(source)}-{short(target)}"
    return Case(name, convert, GRID, inputs, reference, is_slow=is_slow)


def _cast(x: Array, target: np.dtype) -> Array:
    if target == np.dtype(np.bool_):
        return x != 0
    if target.kind in "iu" and is_float(x.dtype):
        return np.trunc(x.astype(np.float64)).astype(np.int64).astype(target)
    return x.astype(target)


def _toward_zero_case(target: np.dtype) -> Case:
    def inputs(rng: np.random.Generator) -> Values:
        return {
            "x": normal(rng, N), "out": blank(N, target), "n": N, "TO": LANGUAGE[target],
            "BLOCK": BLOCK_SIZE,
        }  # fmt: skip

    def reference(a: SimpleNamespace) -> None:
        nearest = a.x.astype(target)
        away = np.abs(nearest.astype(np.float32)) > np.abs(a.x)
        # The next value toward zero has the bits below, as sign and magnitude are apart.
        bits = nearest.view(np.uint16)
        a.out[:] = np.where(away, bits - 1, bits).astype(np.uint16).view(target)

    name = f"convert-toward-zero-{short(target)}"
    return Case(name, convert_toward_zero, GRID, inputs, reference)


def _reinterpret_case(source: np.dtype, target: np.dtype) -> Case:
    def inputs(rng: np.random.Generator) -> Values:
        x = normal(rng, N, source) if is_float(source) else whole(rng, N, source, 0, 1 << 14)
        return {
            "x": x, "out": blank(N, target), "n": N, "TO": LANGUAGE[target], "BLOCK": BLOCK_SIZE
        }  # fmt: skip

    def reference(a: SimpleNamespace) -> None:
        a.out[:] = a.x.view(target)

    return Case(
        f"reinterpret-{short(source)}-{short(target)}", reinterpret, GRID, inputs, reference
    )


def _implicit_case(target: np.dtype) -> Case:
    def inputs(rng: np.random.Generator) -> Values:
        return {"x": normal(rng, N), "out": blank(N, target), "n": N, "BLOCK": BLOCK_SIZE}

    def reference(a: SimpleNamespace) -> None:
        a.out[:] = _cast(a.x * np.float32(3), target)

    return Case(f"store-casts-to-{short(target)}", implicit_store_cast, GRID, inputs, reference)


def _pairs() -> list[Case]:
    every = (*FLOATS, E4M3, E5M2, *INTEGERS, np.dtype(np.bool_))
    hub = (np.dtype(np.float32), np.dtype(np.int32))
    cases = []
    for source in every:
        for target in every:
            if source == target or (
                source.itemsize == 1 and source.kind != "i" and target in (E4M3, E5M2)
            ):
                continue  # fp8 has no direct conversion between its own kinds
            if {source, target} & {E4M3, E5M2} and not {source, target} & set(FLOATS):
                continue
            cases.append(_convert_case(source, target, source not in hub and target not in hub))
    return cases


CASES = [
    *_pairs(),
    *(_toward_zero_case(dtype) for dtype in (np.dtype(np.float16), BF16)),
    _reinterpret_case(np.dtype(np.float32), np.dtype(np.int32)),
    _reinterpret_case(np.dtype(np.uint32), np.dtype(np.float32)),
    _reinterpret_case(BF16, np.dtype(np.uint16)),
    _reinterpret_case(np.dtype(np.int16), np.dtype(np.float16)),
    _reinterpret_case(np.dtype(np.int64), np.dtype(np.float64)),
    *(_implicit_case(dtype) for dtype in (BF16, np.dtype(np.float16), np.dtype(np.int32))),
]
