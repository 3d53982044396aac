"""Aggregates: construction, methods, operators, inheritance, and what is refused."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.support.errors import (
    CompileError,
    ConstantEvaluation,
    IteratorNotSupported,
    MissingArgument,
    NotConstexpr,
    ResultNotUsed,
    UnexpectedArgument,
    UnknownAttribute,
    UnsupportedConstruct,
)


@tilewright.aggregate
class Pair:
    first: tl.tensor
    second: tl.tensor
    scale: tl.constexpr = 4

    @tilewright.jit
    def total(self, factor: tl.constexpr = 1):
        return (self.first + self.second) * factor

    @tilewright.constexpr_function
    def doubled_scale(self):
        return self.scale * 2

    @tilewright.jit
    def __add__(self, other):
        return Pair(self.first + other.first, self.second + other.second, self.scale)

    @tilewright.jit
    def __radd__(self, number):
        return Pair(self.first + number, self.second, self.scale)

    @tilewright.jit
    def __neg__(self):
        return Pair(-self.first, -self.second, self.scale)

    @tilewright.jit
    def __lt__(self, other):
        return self.first < other.first

    @tilewright.jit
    def __getitem__(self, index: tl.constexpr):
        return self.first if index == 0 else self.second

    @tilewright.jit
    def __call__(self, x):
        return self.first * x + self.second

    @tilewright.jit
    def both(x):
        return Pair(x, x)


@tilewright.aggregate
class Triple(Pair):
    third: tl.tensor

    @tilewright.jit
    def total(self):
        return super().total(10) + self.third


@tilewright.aggregate
class Tile:
    values: tl.tensor
    SIZE: tl.constexpr
    DTYPE: tl.constexpr

    @tilewright.constexpr_function
    def __init__(self, values, extra):
        assert extra >= 0, "extra is negative"
        self.values = values
        self.SIZE = values.shape[0].value + extra
        self.DTYPE = tl.constexpr(values.dtype)


@tilewright.aggregate
class Named(Tile):
    pair: Pair

    @tilewright.constexpr_function
    def __init__(self, values, pair):
        super().__init__(values, 5)
        self.pair = pair


def outcome(kernel: tilewright.JITFunction, *values: object) -> int:
    """What the kernel stores, interpreted and compiled."""
    interpreted, compiled = np.zeros(1, np.int32), np.zeros(1, np.int32)
    kernel.interpret[(1,)](interpreted, *values)
    kernel[(1,)](compiled, *values)
    assert interpreted[0] == compiled[0]
    return int(compiled[0])


@tilewright.jit
def uses_methods(out, x):
    pair = Pair(x, x + 1)
    tl.store(out, pair.total(2) + pair.doubled_scale() + pair.scale)


def test_methods_run_at_compile_time_or_in_the_kernel():
    assert outcome(uses_methods, 5) == 22 + 8 + 4


@tilewright.jit
def uses_operators(out, x):
    pair = Pair(x, 2) + Pair(second=x, first=1)
    pair = 100 + -pair
    smaller = pair < Pair(x, x)
    tl.store(out, pair(10) + pair[1] * 1000 + smaller.to(tl.int32))


def test_operators_call_methods():
    first, second = 100 - 6, -7
    assert outcome(uses_operators, 5) == first * 10 + second + second * 1000 + 0


@tilewright.jit
def carried(out, x):
    pair = Pair.both(x)
    for i in range(3):
        pair = pair + Pair(i, 1)
    if x > 3:
        pair = tl.aggregate_replace(pair, second=1000)
    tl.store(out, pair.first + pair.second)


def test_instances_pass_through_loops_and_branches():
    assert outcome(carried, 5) == 8 + 1000
    assert outcome(carried, 2) == 5 + 5


@tilewright.jit
def inherits(out, x):
    triple = Triple(first=x, second=x, third=1)
    tl.static_assert(isinstance(triple, Pair) and not isinstance(Pair(x, x), Triple))
    tl.static_assert(not isinstance(triple, tl.tuple))
    tl.store(out, triple.total() + triple.doubled_scale())


def test_derived_classes_add_fields_and_call_super():
    assert outcome(inherits, 5) == 101 + 8


@tilewright.jit
def constructs(out, x):
    tile = Tile(tl.full((8,), 3, tl.int32), 2)
    named = Named(tile.values, Pair(x, x, scale=tile.SIZE))
    tl.static_assert(tl.int32 == tile.DTYPE)
    tl.store(out, tl.sum(named.values, 0) + named.SIZE * 100 + named.pair.scale * 10000)


def test_a_constructor_is_python_at_compile_time():
    assert outcome(constructs, 5) == 24 + 1300 + 100000


class Wrong:
    """Kernels that misuse aggregates."""

    @tilewright.jit
    def missing(x):
        Pair(1)  # pyright: ignore[reportCallIssue]

    @tilewright.jit
    def unknown(x):
        Pair(1, 2, third=3)  # pyright: ignore[reportCallIssue]

    @tilewright.jit
    def not_known(x):
        Pair(x, x, x)

    @tilewright.jit
    def changed(x):
        pair = Pair(x, x)
        pair.first = x

    @tilewright.jit
    def replaced(x):
        pair = tl.aggregate_replace(Pair(x, x), third=1)
        tl.static_print(pair)

    @tilewright.jit
    def unpacked(x):
        _a, _b, _c = Pair(x, x)

    @tilewright.jit
    def no_field(x):
        Pair(x, x).zz.to(tl.int32)

    @tilewright.jit
    def raised(x):
        Tile(tl.arange(0, 4), -1)

    @tilewright.jit
    def wrong_class(x):
        Named(tl.arange(0, 4), x)

    ERRORS: ClassVar[dict[str, type[CompileError]]] = {
        "missing": MissingArgument,
        "unknown": UnexpectedArgument,
        "not_known": NotConstexpr,
        "changed": UnsupportedConstruct,
        "replaced": UnexpectedArgument,
        "unpacked": IteratorNotSupported,
        "no_field": UnknownAttribute,
        "raised": ConstantEvaluation,
        "wrong_class": CompileError,
    }


@pytest.mark.parametrize("name", Wrong.ERRORS)
def test_misuse_is_an_error_with_a_position(name: str):
    with pytest.raises(Wrong.ERRORS[name]) as caught:
        getattr(Wrong, name).warmup(3)
    assert caught.value.span is not None
    assert caught.value.span.file == __file__


def test_an_aggregate_has_aggregate_bases():
    with pytest.raises(TypeError, match="Aggregates can only inherit from other aggregates"):
        tilewright.aggregate(type("Derived", (dict,), {"__annotations__": {"x": tl.tensor}}))


def test_instances_exist_in_python_too():
    pair = Pair(1, second=2)
    assert (pair.first, pair.second, pair.scale) == (1, 2, 4)
    assert isinstance(pair.scale, tl.constexpr)
    assert pair.doubled_scale() == 8
    with pytest.raises(TypeError, match="missing"):
        Pair(1)  # pyright: ignore[reportCallIssue]


def test_instances_are_immutable_in_python_and_copied_with_changes():
    pair = Pair(1, 2)
    with pytest.raises(AttributeError, match="cannot assign to field 'first' on immutable"):
        pair.first = 3
    changed = tl.aggregate_replace(pair, first=3, scale=5)
    assert (changed.first, changed.second, changed.scale) == (3, 2, 5)
    assert (pair.first, pair.scale) == (1, 4)
    with pytest.raises(TypeError, match="has no field 'third'"):
        tl.aggregate_replace(pair, third=1)
    with pytest.raises(TypeError, match="expects an aggregate instance"):
        tl.aggregate_replace(42, first=1)


@tilewright.aggregate
class Functions:
    """No fields: a class that groups functions."""

    @tilewright.jit
    def successor(x):
        return x + 1

    @staticmethod
    def doubled(x):
        return x * 2

    @classmethod
    def both(cls, x):
        return cls.doubled(cls.successor(x))


@tilewright.aggregate
class Offsets:
    lanes: tl.tensor
    count: tl.constexpr = tl.constexpr(8)
    shape: tl.tuple = (1, 2)

    def __init__(self, count, _semantic=None):
        self.lanes = tl.arange(0, count, _semantic=_semantic)  # pyright: ignore[reportCallIssue]
        self.count = count
        self.shape = (self.lanes.shape[0], count)

    @staticmethod
    def create(count):
        return Offsets(count)

    def shifted(self, distance, _semantic=None):
        return self.lanes + distance + self.shape[1]


@tilewright.aggregate
class Positive:
    value: tl.constexpr

    def __post_init__(self):
        assert self.value > 0, "value is not positive"


@tilewright.jit
def uses_undecorated_methods(out, x):
    functions = Functions()
    offsets = Offsets.create(4)
    tl.static_assert(offsets.count == 4)
    total = functions.both(x) + Functions.doubled(x) + Functions.successor(Positive(3).value)
    tl.store(out, total + tl.sum(offsets.shifted(x), 0))


def test_undecorated_methods_and_constructors_are_kernel_code():
    assert outcome(uses_undecorated_methods, 5) == 12 + 10 + 4 + (0 + 1 + 2 + 3) + 4 * (5 + 4)


@tilewright.jit
def takes_instances(out, pair, pointers, positive: tl.constexpr, functions):
    tl.static_assert(pair.scale == 4 and pointers.scale == 9)
    lanes = tl.arange(0, positive.value)
    total = tl.sum(tl.load(pointers.first + lanes), 0) + pointers.second
    tl.store(out, pair.total(2) + total + functions.doubled(pair.first))


def test_instances_are_arguments_of_kernels():
    def expected(first: int, size: int) -> int:
        return (first + 7) * 2 + sum(range(size)) + 100 + 2 * first

    numbers = np.arange(64, dtype=np.int32)
    for first, size in ((3, 8), (4, 8), (1, 16)):
        got = outcome(
            takes_instances, Pair(first, 7), Pair(numbers, 100, 9), Positive(size), Functions()
        )
        assert got == expected(first, size)
    with pytest.raises(AssertionError, match="not positive"):
        Positive(-1)


@tilewright.must_use_result
@tilewright.jit
def successor(x):
    return x + 1


@tilewright.jit
def drops(x):
    successor(x)


@tilewright.jit
def drops_advance(x):
    block = tl.make_block_ptr(x, (8,), (1,), (0,), (8,), (0,))
    tl.advance(block, (4,))


@tilewright.jit
def uses(out, x):
    tl.store(out, successor(x))


def test_a_result_that_must_be_used_is_not_dropped():
    with pytest.raises(ResultNotUsed, match="`successor`"):
        drops.warmup(3)
    with pytest.raises(ResultNotUsed, match="advance"):
        drops_advance.warmup(np.zeros(8, np.float32))
    assert outcome(uses, 3) == 4
