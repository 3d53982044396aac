"""Constants that Python calls equal, and kernels do not: each launch gets the kernel of its own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.frontend.constants import Constant, NamedTupleClass, NamedTupleValue, exactly
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
