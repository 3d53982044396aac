"""What kernels may name besides the language: ordinary functions, classes, members by name."""

from __future__ import annotations

import datetime
import math
from typing import NamedTuple

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.language import extra
from tilewright.language.extra import libdevice
from tilewright.support.errors import PlainFunctionCall, UnknownMember

LOG2_E = tl.constexpr(math.log2(math.e))
TABLE = {"small": 8, "large": 64}


def outcome(kernel: tilewright.JITFunction, *arguments: object, **constants: object) -> list[float]:
    """The 8 numbers that the kernel stores, interpreted and compiled."""
    interpreted, compiled = np.zeros(8, np.float32), np.zeros(8, np.float32)
    kernel.interpret[(1,)](interpreted, *arguments, **constants)
    kernel[(1,)](compiled, *arguments, **constants)
    assert interpreted.tolist() == compiled.tolist()
    return compiled.tolist()


def doubled(n):
    return n * 2


def size_of(name):
    return doubled(TABLE[name]) // 2


def calls_the_language(n):
    return tl.program_id(0) + n


HELD = tl.constexpr(doubled)


class Sizes:
    """A class of the author's own, which groups what its kernels need."""

    WIDTH = tl.constexpr(4)
    PLAIN = 2

    @staticmethod
    def padded(n):
        return n + 1

    @staticmethod
    @tilewright.jit
    def tripled(x):
        return x * 3

    @staticmethod
    @tilewright.constexpr_function
    def halved(n):
        return n // 2


@tilewright.jit
def uses_modules(out):
    scale: tl.constexpr = math.log2(math.e) * math.sqrt(4.0)
    tl.store(out, scale)
    tl.store(out + 1, np.sqrt(16.0) + np.float32(0.5))
    tl.store(out + 2, tl.full((), np.finfo(np.float32).max, tl.float32))


def test_functions_of_modules_run_on_constants():
    assert outcome(uses_modules)[:3] == [
        np.float32(2 * math.log2(math.e)),
        4.5,
        float(np.finfo(np.float32).max),
    ]


@tilewright.jit
def reads_fields(out):
    tl.store(out, datetime.timedelta(3, 5).days)
    tl.store(out + 1, datetime.timedelta(3, 5).max.days)
    tl.store(out + 2, datetime.timedelta(3, 5).total_seconds())


def test_fields_of_objects_without_a_dictionary_are_constants():
    """As those of `torch.finfo`, some of which are called like methods of tiles."""
    assert outcome(reads_fields)[:3] == [3.0, 1e9, 259205.0]


@tilewright.jit
def uses_ordinary_functions(out, WIDTH: tl.constexpr):
    tl.store(out + tl.arange(0, doubled(WIDTH)), 1.0)
    tl.store(out + tl.arange(0, HELD(2)), 2.0)
    tl.store(out, size_of("small"))


def test_ordinary_functions_run_on_constants():
    assert outcome(uses_ordinary_functions, WIDTH=4) == [8, 2, 2, 2, 1, 1, 1, 1]


@tilewright.jit
def uses_a_class(out, x):
    tl.store(out + tl.arange(0, Sizes.WIDTH), Sizes.tripled(x).to(tl.float32))
    tl.store(out + Sizes.padded(4), Sizes.halved(10) + Sizes.PLAIN)


def test_members_of_classes_are_known_at_compile_time():
    assert outcome(uses_a_class, 5) == [15, 15, 15, 15, 0, 7, 0, 0]


@tilewright.jit
def applies(out, function: tl.constexpr, x):
    tl.store(out, function(x))


def test_ordinary_functions_pass_as_constants():
    @tilewright.jit
    def sized(out, size: tl.constexpr):
        tl.store(out + tl.arange(0, size(2)), 1.0)

    assert outcome(sized, doubled) == [1, 1, 1, 1, 0, 0, 0, 0]
    with pytest.raises(PlainFunctionCall, match="an argument is a runtime value"):
        applies.warmup(np.zeros(8, np.float32), doubled, 3.5)


@tilewright.jit
def looks_up(out, name: tl.constexpr, other: tl.constexpr):
    x = tl.full((8,), 0.5, tl.float32)
    x = getattr(tl, name)(x) + getattr(libdevice, other)(x)
    x += getattr(extra.libdevice, "tanh")(x * 0) + getattr(tl.math, "exp2")(x * 0)  # noqa: B009
    if hasattr(tl, "no_such_function"):
        x = x * 100
    tl.store(out + tl.arange(0, 8), x + getattr(math, "no_such_constant", 1.0))


def test_members_of_modules_are_looked_up_by_name():
    expected = np.float32(math.floor(0.5) + math.tanh(0.5) + 2)
    assert outcome(looks_up, name="floor", other="tanh") == pytest.approx([expected] * 8, 1e-6)
    expected = np.float32(math.ceil(0.5) + math.atan(0.5) + 2)
    assert outcome(looks_up, name="ceil", other="atan") == pytest.approx([expected] * 8, 1e-6)
    with pytest.raises(UnknownMember, match="no member `flor`"):
        looks_up.warmup(np.zeros(8, np.float32), "flor", "tanh")


@tilewright.jit
def forgets_the_decorator(out):
    tl.store(out, calls_the_language(1))


def test_an_ordinary_function_that_calls_the_language_is_told_to_be_decorated():
    with pytest.raises(PlainFunctionCall, match=r"tl\.program_id is called outside") as caught:
        forgets_the_decorator.warmup(np.zeros(8, np.float32))
    assert caught.value.span is not None
    assert "@tilewright.jit" in caught.value.hint


class Box(NamedTuple):
    factor: object
    size: tl.constexpr


@tilewright.jit
def takes_tuples(out, pair, box):
    tl.store(out + tl.arange(0, pair[0]), pair[1])
    tl.store(out + 4 + tl.arange(0, box.size), box.factor * 1.0)


def test_constexprs_in_tuple_arguments_stay_constexprs():
    pair, box = (tl.constexpr(4), 3.0), Box(2, tl.constexpr(2))
    assert outcome(takes_tuples, pair, box) == [3, 3, 3, 3, 2, 2, 0, 0]


@tilewright.jit
def scaled(x: tl.constexpr, factor: tl.constexpr):
    return x * factor


@tilewright.jit
def annotates_runtime_values(out, n):
    offsets: tl.constexpr = tl.arange(0, 8)
    count: tl.constexpr = n + 1
    tl.store(out + offsets, scaled(offsets.to(tl.float32), 2.0) + count)


def test_a_constexpr_annotation_takes_runtime_values():
    assert outcome(annotates_runtime_values, 3) == [4, 6, 8, 10, 12, 14, 16, 18]


@tilewright.jit
def declares(out):
    width: tl.constexpr
    x, width = 3, 4
    tl.store(out + tl.arange(0, width), x)
    tl.static_assert(width.type == tl.constexpr_type(4))
    tl.static_assert(x.type == tl.int32)
    t = (x, 5)
    tl.static_assert(t.type == tl.tuple_type([tl.int32, tl.constexpr_type(5)]))
    sums: tl.constexpr = [a + b + c for a, (b, c) in ((1, (2, 3)), (4, (5, 6))) if a > 0]
    tl.store(out + 4, sums[0] * 100 + sums[1])


def test_bare_annotations_and_types_of_tuples():
    assert outcome(declares) == [3, 3, 3, 3, 615, 0, 0, 0]


def test_scalar_pointers_take_new_dimensions():
    @tilewright.jit
    def kernel(out):
        element: tl.constexpr = out.dtype.element_ty
        tl.static_assert(element.kind() == tl.dtype.KIND.FLOATING)
        tl.static_assert(tl.int8.int_signedness == tl.dtype.SIGNEDNESS.SIGNED)
        tl.store(out[None, :] + tl.arange(0, 8)[None, :], tl.full((1, 8), 1, element.value))
        x = tl.load(out[None, None], cache_modifier=None, eviction_policy=None)
        tl.store(out[None, None], x + 1, cache_modifier=None, eviction_policy=None)

    assert outcome(kernel) == [2, 1, 1, 1, 1, 1, 1, 1]
