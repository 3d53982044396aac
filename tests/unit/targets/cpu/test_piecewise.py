"""Which cuts of unravelled indices are asked for."""

from __future__ import annotations

from xdsl.dialects import test
from xdsl.ir import SSAValue

from tilewright.ir.types import i32
from tilewright.targets.cpu.nests.pieces import Cut
from tilewright.targets.cpu.nests.piecewise import needed_cuts

X, Y, D = test.TestOp(result_types=[i32, i32, i32]).results


def cut(size: int | None, x: SSAValue = X, *, step: int = 1, is_unsigned: bool = False) -> Cut:
    return Cut(x, D, (), step, size, is_unsigned)


def test_multiples_of_a_divisor_are_cut_where_it_cuts() -> None:
    assert needed_cuts([cut(99), cut(33), cut(66)]) == [cut(33)]


def test_other_divisors_and_those_that_only_the_run_knows_are_asked_for() -> None:
    cuts = [cut(33), cut(50), cut(None), cut(-66), cut(0)]
    assert needed_cuts(cuts) == cuts


def test_cuts_of_other_dividends_steps_and_kinds_are_asked_for() -> None:
    shift = Cut(X, 64, (), 1, 64)
    cuts = [cut(32), cut(64, Y), cut(64, step=2), cut(64, is_unsigned=True), shift]
    assert needed_cuts(cuts) == cuts
    assert needed_cuts([shift, Cut(X, 8, (), 1, 8)]) == [Cut(X, 8, (), 1, 8)]
