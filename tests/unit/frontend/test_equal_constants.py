"""Constants that Python calls equal or the same, and kernels do not: launches get what they say."""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.frontend.constants import Constant, NamedTupleClass, NamedTupleValue, exactly
from tilewright.frontend.mutable import may_change
from tilewright.support.errors import CompileError

HELD = tl.constexpr((1, 0.0))


class Pair(NamedTuple):
    first: object
    second: object


@tilewright.jit
def told(out, K: tl.constexpr):
    if isinstance(K[0], bool):
        tl.store(out, 100.0 + K[0])
    elif isinstance(K[0], float):
        tl.store(out, 1.0 / tl.full((), K[0], tl.float32))
    else:
        tl.store(out, 200.0 + K[0])


@tilewright.jit
def told_within(out, K: tl.constexpr):
    told(out, K[1])


@tilewright.jit
def of_a_global(out):
    told(out, HELD)


def result(kernel: tilewright.JITFunction, **constants: object) -> float:
    out = np.zeros(1, np.float32)
    kernel[(1,)](out, **constants)
    return float(out[0])


NUMBERS = ((1, 201.0), (True, 101.0), (1.0, 1.0), (0, 200.0), (False, 100.0), (0.0, np.inf))


@pytest.mark.parametrize("more", [(), (2,)])
def test_groups_of_equal_numbers_are_kernels_of_their_own(more: tuple[int, ...]) -> None:
    for number, expected in (*NUMBERS, (-0.0, -np.inf), *NUMBERS):
        assert result(told, K=(number, *more)) == expected, number


def test_named_groups_of_equal_numbers_are_kernels_of_their_own() -> None:
    for number, expected in (*NUMBERS, (-0.0, -np.inf), *NUMBERS):
        assert result(told, K=Pair(number, 2)) == expected, number


def test_groups_in_groups_are_told_apart() -> None:
    for number, expected in (*NUMBERS, (-0.0, -np.inf)):
        assert result(told_within, K=(0, (number,))) == expected, number


def test_equal_groups_are_one_kernel() -> None:
    kernels = [told.warmup(np.zeros(1, np.float32), K=(3, 4), grid=(1,)) for _ in range(2)]
    assert kernels[0] is kernels[1]


def test_a_global_that_becomes_an_equal_one_is_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    assert result(of_a_global) == 201.0
    monkeypatch.setitem(globals(), "HELD", tl.constexpr((1, 0.0)))
    assert result(of_a_global) == 201.0
    for other in ((True, 0.0), (1, -0.0), (1.0, 0.0)):
        monkeypatch.setitem(globals(), "HELD", tl.constexpr(other))
        with pytest.raises((CompileError, RuntimeError), match="HELD"):
            result(of_a_global)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        ((1,), (True,)),
        (((0.0,),), ((-0.0,),)),
        ("1", 1),
        (NamedTupleValue(NamedTupleClass("P", ("a",)), (1,)), (1,)),
    ],
)
def test_a_key_is_of_one_constant(one: Constant, other: Constant) -> None:
    assert exactly(one) != exactly(other)
    assert exactly(one) == exactly(one)


def test_a_number_that_is_none_equals_itself() -> None:
    assert exactly((float("nan"),)) == exactly((float("nan"),))


TABLE = [1, 2]
SIZES = {"rows": 3}


@dataclasses.dataclass(eq=False)
class Sizes:
    """Equal to itself only, whatever is assigned."""

    rows: int
    table: list[int]


@tilewright.constexpr_function
def looked_up():
    return TABLE[0] * 100 + SIZES["rows"]


@tilewright.constexpr_function
def second(x, table):
    return table[x]


@tilewright.jit
def of_a_table(out):
    tl.store(out, looked_up())


@tilewright.jit
def of_an_object(out, K: tl.constexpr):
    tl.store(out, K.rows * 100 + K.table[0])


@tilewright.jit
def of_a_call(out, K: tl.constexpr):
    tl.store(out, K(1))


@tilewright.jit
def of_a_number(out, K: tl.constexpr):
    tl.store(out, K)


def test_tables_that_compile_time_functions_read_are_read_as_they_are() -> None:
    first = [result(of_a_table) for _ in range(3)]
    assert first == [103.0] * 3
    TABLE[0] = 4
    assert [result(of_a_table) for _ in range(3)] == [403.0] * 3
    SIZES["rows"] = 5
    assert [result(of_a_table) for _ in range(3)] == [405.0] * 3
    TABLE[0], SIZES["rows"] = 1, 3
    assert result(of_a_table) == 103.0


def test_objects_are_constants_of_what_they_hold_at_the_launch() -> None:
    sizes = Sizes(2, [3])
    assert [result(of_an_object, K=sizes) for _ in range(3)] == [203.0] * 3
    sizes.rows = 4
    assert result(of_an_object, K=sizes) == 403.0
    sizes.table[0] = 5
    assert result(of_an_object, K=sizes) == 405.0
    table = [6, 7]
    bound = functools.partial(second, table=table)
    assert [result(of_a_call, K=bound) for _ in range(3)] == [7.0] * 3
    table[1] = 8
    assert result(of_a_call, K=bound) == 8.0
    number = tl.constexpr(3)
    assert [result(of_a_number, K=number) for _ in range(3)] == [3.0] * 3
    number.value = 4
    assert result(of_a_number, K=number) == 4.0


@pytest.mark.parametrize(
    ("value", "changes"),
    [
        (1, False),
        ("text", False),
        ((1, ("a", None)), False),
        ((1, [2]), True),
        (frozenset({1}), False),
        ({1}, True),
        (Sizes, False),
        (Sizes(1, []), True),
        (functools.partial(second, table=(1,)), False),
        (functools.partial(second, table=[1]), True),
        (tl.float32, False),
    ],
)
def test_what_may_change(value: object, changes: bool) -> None:
    assert may_change(value) == changes
