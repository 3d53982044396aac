"""What a function of compile-time values is given for a value of the run: its type."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.runtime.tensor_descriptor import TensorDescriptor
from tilewright.support.errors import CompileError, NotConstexpr, PlainFunctionCall


@tilewright.constexpr_function
def facts(value):
    if isinstance(value, tl.tensor_descriptor):
        return ("descriptor", value.dtype.name, value.block_shape, len(value.shape))
    if isinstance(value, tuple):
        return tuple(facts(item) for item in value)
    if not isinstance(value, tl.tensor):
        return ("constant", value)
    if value.dtype.is_ptr():
        return ("pointer", value.dtype.element_ty.name)
    return ("tile", value.dtype.name, value.type.extents if value.shape else (), value.numel)


@tilewright.jit
def asks(x_ptr, desc, n, out_ptr, WIDTH: tl.constexpr):
    tile = tl.load(x_ptr + tl.arange(0, WIDTH)[None, :] + tl.arange(0, 2)[:, None])
    tl.static_assert(facts(x_ptr) == ("pointer", "fp16"))
    tl.static_assert(facts(tile) == ("tile", "fp16", (2, WIDTH), 2 * WIDTH))
    tl.static_assert(facts(n) == ("tile", "int32", (), 1))
    tl.static_assert(facts(WIDTH) == ("constant", 8))
    tl.static_assert(facts(desc) == ("descriptor", "fp32", (4, 16), 2))
    tl.static_assert(facts((n, 3, desc))[1] == ("constant", 3))
    tl.static_assert(facts((n, 3, desc))[2][0] == "descriptor")
    tl.store(out_ptr, n)


def test_it_asks_for_dtypes_shapes_and_blocks():
    out = np.zeros(1, np.int32)
    wide = np.zeros((32, 64), np.float32)
    desc = TensorDescriptor(wide, [32, 64], [64, 1], [4, 16])
    asks[(1,)](np.zeros(16, np.float16), desc, 5, out, WIDTH=8)
    assert out[0] == 5


@tilewright.constexpr_function
def wider(a, b):
    return a if a.dtype.primitive_bitwidth >= b.dtype.primitive_bitwidth else b


@tilewright.constexpr_function
def both(a, desc):
    return (a, desc, a.dtype)


@tilewright.jit
def chooses(a_ptr, b_ptr, desc, out_ptr):
    tl.store(out_ptr, wider(tl.load(a_ptr), tl.load(b_ptr)))
    value, same, kind = both(tl.load(a_ptr), desc)
    tl.store(out_ptr + 1, value.to(kind) + tl.sum(same.load([0])))


def test_what_it_is_given_comes_back_as_it_is():
    a, b = np.array([3], np.int16), np.array([70000], np.int32)
    x, out = np.arange(16, dtype=np.int32), np.zeros(2, np.int32)
    desc = TensorDescriptor(x, [16], [1], [16])
    chooses[(1,)](a, b, desc, out)
    assert list(out) == [70000, 3 + x.sum()]
    chooses[(1,)](b, a, desc, out)
    assert list(out) == [70000, 70000 + x.sum()]


@tilewright.constexpr_function
def decides_by_it(value):
    return 1 if value else 2


@tilewright.constexpr_function
def adds_to_it(value):
    return value + 1


@tilewright.constexpr_function
def asks_too_much(value):
    return value.base


def ordinary(value):
    return value.dtype


@tilewright.jit
def calls(out_ptr, desc, FUNCTION: tl.constexpr, OF_DESC: tl.constexpr):
    if OF_DESC:
        tl.store(out_ptr, FUNCTION(desc))
    else:
        tl.store(out_ptr, FUNCTION(tl.load(out_ptr)))


@tilewright.jit
def passes_a_method(out_ptr):
    tl.store(out_ptr, adds_to_it(out_ptr.to))


@pytest.mark.parametrize(
    ("function", "of_desc", "error", "message"),
    [
        (decides_by_it, False, CompileError, "no truth value at compile time"),
        (adds_to_it, False, CompileError, "unsupported operand"),
        (asks_too_much, True, CompileError, "a tensor descriptor has no `base` at compile time"),
        (ordinary, False, PlainFunctionCall, "is an ordinary Python function"),
    ],
)
def test_its_value_is_not_known(function, of_desc, error, message):
    x = np.zeros(16, np.int32)
    with pytest.raises(error, match=message):
        calls[(1,)](x, TensorDescriptor(x, [16], [1], [16]), function, of_desc)


def test_a_method_of_a_tile_is_no_value():
    with pytest.raises(NotConstexpr, match="but an argument is the method"):
        passes_a_method[(1,)](np.zeros(1, np.int32))
