"""Operators of tiles under the names of their methods: `x.__lshift__(4)` is `x << 4`."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.frontend.attributes import OPERATOR_METHODS
from tilewright.support.errors import DtypeNotAllowed, MissingArgument, UnexpectedArgument

N = 16
RNG = np.random.default_rng(7)
X = RNG.integers(1, 100, N).astype(np.int32)
Y = RNG.integers(1, 6, N).astype(np.int32)


@tilewright.jit
def binary_methods(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets)
    y = tl.load(y_ptr + offsets)
    tl.store(out_ptr + offsets, x.__add__(y))
    tl.store(out_ptr + N + offsets, x.__sub__(y))
    tl.store(out_ptr + 2 * N + offsets, x.__mul__(y))
    tl.store(out_ptr + 3 * N + offsets, x.__floordiv__(y))
    tl.store(out_ptr + 4 * N + offsets, x.__mod__(y))
    tl.store(out_ptr + 5 * N + offsets, x.__and__(y))
    tl.store(out_ptr + 6 * N + offsets, x.__or__(y))
    tl.store(out_ptr + 7 * N + offsets, x.__xor__(y))
    tl.store(out_ptr + 8 * N + offsets, x.__lshift__(y))
    tl.store(out_ptr + 9 * N + offsets, x.__rshift__(y))


@tilewright.jit
def reflected_methods(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets)
    y = tl.load(y_ptr + offsets)
    tl.store(out_ptr + offsets, y.__radd__(x))
    tl.store(out_ptr + N + offsets, y.__rsub__(x))
    tl.store(out_ptr + 2 * N + offsets, y.__rmul__(x))
    tl.store(out_ptr + 3 * N + offsets, y.__rfloordiv__(x))
    tl.store(out_ptr + 4 * N + offsets, y.__rmod__(x))
    tl.store(out_ptr + 5 * N + offsets, y.__rand__(x))
    tl.store(out_ptr + 6 * N + offsets, y.__ror__(x))
    tl.store(out_ptr + 7 * N + offsets, y.__rxor__(x))
    tl.store(out_ptr + 8 * N + offsets, y.__rlshift__(x))
    tl.store(out_ptr + 9 * N + offsets, y.__rrshift__(x))


OPERATORS: tuple[Callable[[np.ndarray, np.ndarray], np.ndarray], ...] = (
    *(operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod),
    *(operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift),
)

ORDERS = (operator.lt, operator.le, operator.gt, operator.ge)


@pytest.mark.parametrize("kernel", [binary_methods, reflected_methods], ids=["plain", "reflected"])
def test_methods_of_two_operands_are_the_operators(kernel: tilewright.JITFunction) -> None:
    out = np.zeros((len(OPERATORS), N), np.int32)
    kernel[(1,)](X, Y, out, N)
    np.testing.assert_array_equal(out, np.stack([apply(X, Y) for apply in OPERATORS]))


@tilewright.jit
def other_methods(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets)
    y = tl.load(y_ptr + offsets) * 20
    tl.store(out_ptr + offsets, x.__neg__())
    tl.store(out_ptr + N + offsets, x.__pos__())
    tl.store(out_ptr + 2 * N + offsets, x.__invert__())
    tl.store(out_ptr + 3 * N + offsets, x.__eq__(x).to(tl.int32))
    tl.store(out_ptr + 4 * N + offsets, x.__ne__(x).to(tl.int32))
    tl.store(out_ptr + 5 * N + offsets, x.__lt__(y).to(tl.int32))
    tl.store(out_ptr + 6 * N + offsets, x.__le__(y).to(tl.int32))
    tl.store(out_ptr + 7 * N + offsets, x.__gt__(y).to(tl.int32))
    tl.store(out_ptr + 8 * N + offsets, x.__ge__(y).to(tl.int32))
    tl.store(out_ptr + 9 * N + offsets, (x.__truediv__(4) * y.__rtruediv__(60.0)).to(tl.int32))


def test_signs_and_comparisons_are_the_operators() -> None:
    out = np.zeros((10, N), np.int32)
    other_methods[(1,)](X, Y, out, N)
    y = Y * 20
    pairs = [(operator.eq, X), (operator.ne, X), *((apply, y) for apply in ORDERS)]
    expected = [-X, X, ~X, *(apply(X, other) for apply, other in pairs)]
    np.testing.assert_array_equal(out[:9], np.stack(expected).astype(np.int32))
    quotients = (X / np.float32(4)).astype(np.float32) * (np.float32(60) / y.astype(np.float32))
    np.testing.assert_array_equal(out[9], quotients.astype(np.int32))


def test_every_method_of_the_table_is_tried() -> None:
    assert len(OPERATOR_METHODS) == 2 * (len(OPERATORS) + 1) + 9


@tilewright.jit
def four_bits(x_ptr, out_ptr, N: tl.constexpr):
    """Both signed halves of a byte, as kernels with packed weights take them apart."""
    offsets = tl.arange(0, N)
    packed = tl.load(x_ptr + offsets)
    low = packed.__lshift__(4).to(tl.int8).__rshift__(4)
    tl.store(out_ptr + offsets, tl.join(low, packed.__rshift__(4)).sum(1).to(tl.int8))


def test_methods_chain() -> None:
    packed = RNG.integers(-128, 128, N).astype(np.int8)
    out = np.zeros(N, np.int8)
    four_bits[(1,)](packed, out, N)
    low = np.left_shift(packed, 4).astype(np.int8) >> 4
    np.testing.assert_array_equal(out, low + (packed >> 4))


@tilewright.jit
def without_operand(x_ptr):
    tl.store(x_ptr, tl.load(x_ptr).__add__())  # pyright: ignore[reportCallIssue]


@tilewright.jit
def with_two_operands(x_ptr):
    tl.store(x_ptr, tl.load(x_ptr).__add__(1, 2))  # pyright: ignore[reportCallIssue]


@tilewright.jit
def with_operand_of_a_sign(x_ptr):
    tl.store(x_ptr, tl.load(x_ptr).__neg__(1))  # pyright: ignore[reportCallIssue]


@tilewright.jit
def by_name(x_ptr):
    tl.store(x_ptr, tl.load(x_ptr).__add__(other=1))


@tilewright.jit
def with_text(x_ptr):
    tl.store(x_ptr, tl.load(x_ptr).__add__("one"))


@pytest.mark.parametrize(
    ("kernel", "error", "message"),
    [
        (without_operand, MissingArgument, "`__add__` takes one argument, none is given"),
        (with_two_operands, UnexpectedArgument, "`__add__` takes one argument, 2 are given"),
        (with_operand_of_a_sign, UnexpectedArgument, "`__neg__` takes no argument, 1 are given"),
        (by_name, UnexpectedArgument, "`__add__` takes no argument by name: `other`"),
        (with_text, DtypeNotAllowed, "is no operand of an operator on tiles"),
    ],
)
def test_wrong_arguments_are_refused_in_source_lines(
    kernel: tilewright.JITFunction, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        kernel[(1,)](np.zeros(1, np.int32))
    assert "test_operator_methods.py" in str(caught.value)
    assert "tl.load(x_ptr).__" in str(caught.value)
