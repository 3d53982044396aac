"""functools.partial of functions of kernels: captured, passed, combined, and refused."""

from __future__ import annotations

import functools
from functools import partial

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.passes.lowered import request_of
from tilewright.compiler.request import CompileRequest
from tilewright.frontend.constants import FunctionRef, Partial, decode, encode
from tilewright.support.errors import ArgumentNotSupported, CompileError, NotCallable

X = np.arange(8, dtype=np.float32)


@tilewright.jit
def scaled(a, b, x, add=0.0):
    return a * x + b + add


@tilewright.jit
def weighted(scale: tl.constexpr, a, b):
    return a * scale + b * scale


@tilewright.constexpr_function
def power(base, exponent):
    return base**exponent


line = partial(scaled, 3.0, add=1.0)
line_again = partial(line, 10.0)
square_of = partial(power, exponent=2)
halves = partial(weighted, 1)


@tilewright.jit
def through_globals(x, out):
    i = tl.arange(0, 8)
    v = tl.load(x + i)
    tl.store(out + i, line(2.0, v))
    tl.store(out + 8 + i, line_again(v))
    tl.store(out + 16 + i, line_again(x=v, add=5.0))
    tl.store(out + 24 + i, v * square_of(3) + tl.full((8,), square_of(base=2), tl.float32))
    tl.store(out + 32 + i, tl.reduce(v, 0, halves) + tl.zeros((8,), tl.float32))


@tilewright.jit
def apply(x, out, function: tl.constexpr):
    i = tl.arange(0, 8)
    tl.store(out + i, function(tl.load(x + i)))


@tilewright.jit
def apply_unannotated(x, out, function):
    i = tl.arange(0, 8)
    tl.store(out + i, function(tl.load(x + i)))


def test_a_partial_gives_its_arguments_first_and_its_keywords_unless_the_call_does() -> None:
    out = np.zeros(40, np.float32)
    through_globals[(1,)](X, out)
    expected = [3 * X + 3, 3 * X + 11, 3 * X + 15, 9 * X + 4, np.full(8, X.sum())]
    assert np.array_equal(out.reshape(5, 8), np.array(expected))


@pytest.mark.parametrize("kernel", [apply, apply_unannotated])
def test_a_partial_is_passed_as_a_constant_and_another_is_another_kernel(
    kernel: tilewright.JITFunction,
) -> None:
    for factor in (2.0, 5.0):
        out = np.zeros(8, np.float32)
        kernel[(1,)](X, out, partial(scaled, factor, 1.0))
        assert np.array_equal(out, factor * X + 1)


def test_a_partial_of_functions_of_the_language_and_of_python_is_served() -> None:
    out = np.zeros(8, np.float32)
    apply[(1,)](X, out, partial(tl.where, X.size > 0, y=0.0))
    assert np.array_equal(out, X)


def test_a_changed_partial_changes_the_kernel() -> None:
    global line
    before = line
    out = np.zeros(40, np.float32)
    try:
        line = partial(scaled, 7.0, add=0.0)
        through_globals[(1,)](X, out)
    finally:
        line = before
    assert np.array_equal(out[:8], 7 * X + 2)
    through_globals[(1,)](X, out)
    assert np.array_equal(out[:8], 3 * X + 3)


def test_a_request_with_a_partial_survives_bytes() -> None:
    value = Partial(FunctionRef("m:f"), (1, 2.5, "a"), ("k",), (None,))
    assert decode(encode(value)) == value
    request = request_of(apply, x=X, out=X.copy(), function=partial(scaled, 2.0, 1.0))
    assert CompileRequest.from_bytes(request.to_bytes()) == request


@pytest.mark.parametrize(
    "held",
    [partial(scaled, X), partial(scaled, object()), partial(max, 1), partial(print)],
    ids=["array", "object", "builtin", "print"],
)
def test_a_partial_that_holds_no_constants_or_no_kernel_function_is_refused(held: object) -> None:
    with pytest.raises(ArgumentNotSupported, match="constant"):
        apply[(1,)](X, X.copy(), held)


def test_a_captured_partial_of_an_array_is_refused_where_it_is_named() -> None:
    held = functools.partial(scaled, X)

    @tilewright.jit
    def kernel(x):
        tl.store(x, held(1.0, 2.0))

    with pytest.raises(CompileError, match="no constant"):
        kernel[(1,)](X.copy())


def test_too_many_arguments_name_the_function() -> None:
    with pytest.raises(CompileError, match="scaled"):
        apply[(1,)](X, X.copy(), partial(scaled, 1.0, 2.0, 3.0, 4.0))


def test_a_partial_of_a_compile_time_function_combines_nothing() -> None:
    @tilewright.jit
    def kernel(x):
        tl.store(x, tl.reduce(tl.load(x + tl.arange(0, 8)), 0, square_of))

    with pytest.raises((CompileError, NotCallable), match="power"):
        kernel[(1,)](X.copy())
