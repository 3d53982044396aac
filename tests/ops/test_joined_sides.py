"""Joined and split tiles that are smaller than the threads: the sides are in different lanes."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl


@tilewright.jit
def weave(x, y, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + tl.arange(0, 2 * N), tl.interleave(tl.load(x + at), tl.load(y + at)))


@tilewright.jit
def weave_scalars(x, y, out, total):
    pair = tl.join(tl.load(x), tl.load(y))
    tl.store(out + tl.arange(0, 2), pair)
    tl.store(total, tl.sum(pair, 0))


@tilewright.jit
def part(x, first, second, N: tl.constexpr):
    at = tl.arange(0, N)
    a, b = tl.split(tl.reshape(tl.load(x + tl.arange(0, 2 * N)), (N, 2)))
    tl.store(first + at, a)
    tl.store(second + at, b)


@tilewright.jit
def weave_twice(x, out, N: tl.constexpr):
    values = tl.load(x + tl.arange(0, N))
    twice = tl.interleave(tl.interleave(values, values + 100), tl.interleave(-values, values * 3))
    tl.store(out + tl.arange(0, 4 * N), twice)


def _form(kernel, form):
    forms = {"compiled": kernel, "interpreted": kernel.interpret, "simulated": kernel.simulate}
    return forms[form]


FORMS = pytest.mark.parametrize("form", ["compiled", "interpreted", "simulated"])


@FORMS
@pytest.mark.parametrize("warps", [1, 4, 8])
@pytest.mark.parametrize("size", [1, 2, 4, 16, 32, 64, 256])
@pytest.mark.parametrize("dtype", [np.int32, np.float16])
def test_interleaved_elements_alternate(form: str, size: int, warps: int, dtype: type) -> None:
    x, y = np.arange(1, size + 1).astype(dtype), -np.arange(1, size + 1).astype(dtype)
    out = np.zeros(2 * size, dtype)
    _form(weave, form)[(1,)](x, y, out, size, num_warps=warps)
    np.testing.assert_array_equal(out, np.stack([x, y], -1).ravel())


@FORMS
@pytest.mark.parametrize("warps", [1, 4])
def test_joined_scalars_are_two(form: str, warps: int) -> None:
    out, total = np.zeros(2, np.int32), np.zeros(1, np.int32)
    x, y = np.full(1, 42, np.int32), np.full(1, 100, np.int32)
    _form(weave_scalars, form)[(1,)](x, y, out, total, num_warps=warps)
    assert out.tolist() == [42, 100] and total[0] == 142


@FORMS
@pytest.mark.parametrize("size", [1, 4, 32, 128])
def test_sides_come_apart(form: str, size: int) -> None:
    x = np.arange(2 * size, dtype=np.float32)
    first, second = np.zeros(size, np.float32), np.zeros(size, np.float32)
    _form(part, form)[(1,)](x, first, second, size)
    np.testing.assert_array_equal(first, x[::2])
    np.testing.assert_array_equal(second, x[1::2])


@FORMS
@pytest.mark.parametrize("size", [1, 8, 32])
def test_joins_of_joins_alternate_by_two(form: str, size: int) -> None:
    x, out = np.arange(1, size + 1, dtype=np.int32), np.zeros(4 * size, np.int32)
    _form(weave_twice, form)[(1,)](x, out, size)
    expected = np.stack([x, -x, x + 100, x * 3], -1).ravel()
    np.testing.assert_array_equal(out, expected)
