"""Which combine functions are known to commute."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.analysis.commutation import commutes
from tilewright.ir.text import parse_module
from tilewright.ops.dialects import tile_context
from tilewright.ops.reduction.ir import ReduceOp


@tilewright.jit
def add(a, b):
    return a + b


@tilewright.jit
def subtract(a, b):
    return a - b


@tilewright.jit
def first(a, b):
    return a


@tilewright.jit
def bits_of_either(a, b):
    return (b ^ a) | (a & b)


@tilewright.jit
def less_or_equal(a, b):
    return ((a < b) | (b < a) | (b == a)).to(tl.int32)


@tilewright.jit
def less(a, b):
    return (a < b).to(tl.int32)


@tilewright.jit
def branch(a, b):
    if a > b:
        result = a
    else:
        result = b
    return result


@tilewright.jit
def sums_of_two(a, b, c, d):
    return a + c, d * b


@tilewright.jit
def affine(a, b, c, d):
    return a * c, b * c + d


@tilewright.jit
def scaled_exponentials(a, b, c, d):
    top = tl.maximum(a, c)
    return top, b * tl.exp(a - top) + d * tl.exp(c - top)


@tilewright.jit
def one(x, y, f: tl.constexpr):
    tl.store(y, tl.reduce(tl.load(x + tl.arange(0, 16)), 0, f))


@tilewright.jit
def two(x, y, f: tl.constexpr):
    tile = tl.load(x + tl.arange(0, 16))
    a, b = tl.reduce((tile, tile + 1), 0, f)
    tl.store(y, a)
    tl.store(y + 1, b)


@tilewright.jit
def place_of_the_greatest(x, y, f: tl.constexpr):
    tl.store(y, tl.argmax(tl.load(x + tl.arange(0, 16)), 0))


def fold(kernel, function: object, dtype: str) -> ReduceOp:
    compiled = kernel.warmup(np.zeros(16, dtype), np.zeros(2, dtype), function)
    module = parse_module(str(compiled.asm["ttir"]), tile_context())
    (op,) = (op for op in module.walk() if isinstance(op, ReduceOp))
    return op


@pytest.mark.parametrize("function", [add, bits_of_either, less_or_equal])
def test_what_treats_both_elements_alike_commutes(function) -> None:
    assert commutes(fold(one, function, "int32"))


@pytest.mark.parametrize("function", [sums_of_two, scaled_exponentials])
def test_elements_of_several_values_commute_by_all_of_them(function) -> None:
    assert commutes(fold(two, function, "float32"))


@pytest.mark.parametrize("function", [subtract, first, less, branch])
def test_what_tells_its_elements_apart_or_branches_is_not_known_to_commute(function) -> None:
    assert not commutes(fold(one, function, "int32"))


def test_affine_maps_do_not_commute() -> None:
    assert not commutes(fold(two, affine, "int32"))


def test_the_place_of_an_extremum_is_promised_to_commute() -> None:
    assert commutes(fold(place_of_the_greatest, None, "float32"))
