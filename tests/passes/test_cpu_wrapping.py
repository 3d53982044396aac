"""Integers wrap at the type in which they were written, wherever they go next."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl

NARROW = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
Array = np.ndarray


@tilewright.jit
def combined(x, y, o, sign: tl.constexpr, then: tl.constexpr, N: tl.constexpr):
    """x[:, None] ± y[None, :], and then something that shows whether it wrapped."""
    r = tl.arange(0, N)
    u, v = tl.load(x + r)[:, None], (r[None, :] * 3).to(x.dtype.element_ty)
    if sign == "+":
        w = u + v
    elif sign == "-":
        w = u - v
    else:
        w = (u - v) * 5 + u
    if then == "widen":
        w = w.to(tl.int64)
    elif then == "shift":
        w = (w >> 1).to(tl.int64)
    elif then == "compare":
        w = (w > u).to(tl.int64)
    else:
        w = (w // 7).to(tl.int64)
    tl.store(o + r[:, None] * N + r[None, :], w)


@tilewright.jit
def narrowed(o, K: tl.constexpr, dtype: tl.constexpr, N: tl.constexpr):
    """An affine index in a narrower type."""
    i = tl.arange(0, N)
    tl.store(o + i, (i * K).to(dtype).to(tl.int64))


@tilewright.jit
def looked_up(x, start, o, K: tl.constexpr, dtype: tl.constexpr, N: tl.constexpr):
    """A narrow index that wraps, as the offset of pointers."""
    i = tl.arange(0, N)
    tl.store(o + i, tl.load(x + ((i * K).to(dtype) + tl.load(start))))


@tilewright.jit
def hidden_jumps(x, o, form: tl.constexpr, N: tl.constexpr):
    """Indices that look contiguous at both ends of a run of lanes."""
    i = tl.arange(0, N)
    if form == "equality":
        j = tl.where(i != 5, i, 0)
    elif form == "unsigned":
        j = tl.where((i - 4).to(tl.uint32) >= 8, i, 0)
    elif form == "periodic":
        j = tl.where((i + 2) % 8 < 7, i, 0)
    elif form == "two":
        j = (i + 4) % 16 * 2 - i % 32 + 32
    elif form == "nested":
        j = tl.where(i < 15, tl.where(i < 4, i, 14), 15)
    else:
        j = (2 * i - i % 16 + 30) % 64
    tl.store(o + i, tl.load(x + j))


@tilewright.jit
def product(a, b, o, form: tl.constexpr, N: tl.constexpr):
    """A product of a tile whose wrapping or masks no single row or corner shows."""
    r, c = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    place, mask = r * N + c, None
    if form == "wraps":
        place = place % (N * N - 2)
    else:
        mask = (c - 4).to(tl.uint32) < N
    left = tl.load(a + place, mask=mask, other=0.0 if form != "wraps" else None)
    total = tl.dot(left, tl.load(b + r * N + c), input_precision="ieee")
    tl.store(o + r * N + c, total)


def _expected(x: Array, sign: str, then: str) -> Array:
    """The same in the integers of x's type."""
    with np.errstate(over="ignore"):
        u, v = x[:, None], (np.arange(x.size, dtype=np.int32) * 3).astype(x.dtype)[None, :]
        w = u + v if sign == "+" else u - v
        w = w * x.dtype.type(5) + u if sign == "*" else w
    if then == "widen":
        return w.astype(np.int64)
    if then == "shift":
        return (w >> 1).astype(np.int64)
    if then == "compare":
        return (w > u).astype(np.int64)
    quotient = np.abs(w.astype(np.int64)) // 7
    return np.where(w < 0, -quotient, quotient)


@pytest.mark.parametrize("then", ["widen", "shift", "compare", "divide"])
@pytest.mark.parametrize("sign", ["+", "-", "*"])
@pytest.mark.parametrize("dtype", NARROW)
def test_a_broadcast_sum_wraps_in_its_own_type(dtype: str, sign: str, then: str) -> None:
    limits = np.iinfo(dtype)
    ends = [limits.min, limits.max, limits.max - 1, 0, 1, limits.max // 2, limits.max // 2 + 1, 3]
    x = np.array(ends * 2, dtype)
    out = np.zeros((16, 16), np.int64)
    combined[(1,)](x, x, out.reshape(-1), sign, then, 16)
    np.testing.assert_array_equal(out, _expected(x, sign, then))


@pytest.mark.parametrize("dtype", [*NARROW, "int1"])
@pytest.mark.parametrize("factor", [1, 3, -1, 256, 1000, -1000, 65536 + 1])
def test_an_affine_index_is_narrowed(dtype: str, factor: int) -> None:
    out = np.zeros(128, np.int64)
    narrowed[(1,)](out, factor, getattr(tl, dtype), 128)
    kind = np.bool_ if dtype == "int1" else np.dtype(dtype)
    np.testing.assert_array_equal(out, (np.arange(128) * factor).astype(kind).astype(np.int64))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("factor", [1, 3, -1, 1000])
def test_a_narrow_index_wraps_before_it_moves_a_pointer(dtype: str, factor: int) -> None:
    x, half = np.arange(1 << 17, dtype=np.int32), 1 << 16
    start, out = np.array([np.iinfo(dtype).max - 37], dtype), np.zeros(256, np.int32)
    looked_up[(1,)](x[half:], start, out, factor, getattr(tl, dtype), 256)
    index = (np.arange(256) * factor).astype(dtype) + start
    np.testing.assert_array_equal(out, x[half + index.astype(np.int64)])


@pytest.mark.parametrize("form", ["equality", "unsigned", "periodic", "two", "nested", "remainder"])
@pytest.mark.parametrize("dtype", ["int8", "float32", "float64"])
def test_a_run_of_lanes_with_a_hole_is_gathered(form: str, dtype: str) -> None:
    x, out, i = (np.arange(1024) % 127).astype(dtype), np.zeros(512, dtype), np.arange(512)
    hidden_jumps[(1,)](x, out, form, 512)
    index = {
        "equality": np.where(i != 5, i, 0),
        "unsigned": np.where((i < 4) | (i >= 12), i, 0),
        "periodic": np.where((i + 2) % 8 < 7, i, 0),
        "two": (i + 4) % 16 * 2 - i % 32 + 32,
        "nested": np.where(i < 4, i, np.where(i < 15, 14, 15)),
        "remainder": (2 * i - i % 16 + 30) % 64,
    }[form]
    np.testing.assert_array_equal(out, x[index])


@pytest.mark.parametrize("form", ["wraps", "unsigned mask"])
def test_an_operand_that_is_no_whole_tile_is_read_element_by_element(
    form: str, rng: np.random.Generator
) -> None:
    a, b = rng.integers(-8, 9, (2, 64, 64)).astype(np.float32)
    out = np.zeros((64, 64), np.float32)
    product[(1,)](a.reshape(-1), b.reshape(-1), out.reshape(-1), form, 64)
    left = a.reshape(-1)[np.arange(64 * 64).reshape(64, 64) % (64 * 64 - 2)]
    if form != "wraps":
        left = np.where(np.arange(64)[None, :] >= 4, a, 0)
    np.testing.assert_array_equal(out, left @ b)


@tilewright.jit
def far_steps(x, out, NARROW: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out + at, tl.load(x + 621 + (at * 37).to(NARROW)))


@pytest.mark.parametrize("narrow", ["int8", "uint8"])
@pytest.mark.parametrize("shape", [(8, 32), (32, 8), (16, 64), (64, 2)])
def test_a_step_from_lane_to_lane_wraps_with_its_type(narrow: str, shape: tuple[int, int]) -> None:
    rows, columns = shape
    x, out = np.arange(1024, dtype=np.int32), np.zeros(shape, np.int32)
    far_steps[(1,)](x, out, NARROW=getattr(tl, narrow), ROWS=rows, COLUMNS=columns)
    index = 621 + (np.arange(out.size) * 37).astype(narrow).astype(np.int64)
    np.testing.assert_array_equal(out.reshape(-1), x[index])
