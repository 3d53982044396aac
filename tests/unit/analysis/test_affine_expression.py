"""Expressions: sums of products of scalars."""

from __future__ import annotations

import pytest
from xdsl.ir import Block

from tilewright.analysis.affine.expression import ONE, ZERO, Expression, integer, symbol
from tilewright.analysis.affine.scalars import substituted
from tilewright.analysis.affine.stride import STILL, UNIT, Stride
from tilewright.analysis.affine.text import text_of
from tilewright.ir.types import i64

BLOCK = Block(arg_types=[i64, i64, i64])
for _argument, _name in zip(BLOCK.args, "abc", strict=True):
    _argument.name_hint = _name
A, B, C = (symbol(argument) for argument in BLOCK.args)


def test_products_in_another_order_are_one_term() -> None:
    assert A.times(B).minus(B.times(A)).is_zero()
    assert A.times(B).plus(B.times(A)).terms == ((2, (BLOCK.args[0], BLOCK.args[1])),)


def test_sums_cancel_and_products_distribute() -> None:
    square = A.plus(B).times(A.minus(B))
    assert square.minus(A.times(A)).plus(B.times(B)).is_zero()
    assert text_of(A.scaled(3).minus(integer(2)).minus(B)) == "3*a - 2 - b"
    assert text_of(ZERO) == "0" and text_of(A.scaled(-1)) == "-a"


@pytest.mark.parametrize(
    ("number", "divisor", "quotient"),
    [
        (A.times(B).scaled(6), B.scaled(2), A.scaled(3)),
        (A.scaled(6).plus(integer(4)), integer(2), A.scaled(3).plus(integer(2))),
        (A.plus(B).scaled(4), A.plus(B), integer(4)),
        (A.scaled(6).plus(integer(3)), integer(2), None),
        (A.times(B), C, None),
        (A.plus(integer(1)), A, None),
        (A.plus(B), A.minus(B), None),
        (A.scaled(3).plus(B.scaled(3)), A.scaled(2).plus(B.scaled(2)), None),
        (ZERO, A, ZERO),
        (ONE, ZERO, None),
    ],
)
def test_a_number_is_divided_where_nothing_is_left(
    number: Expression, divisor: Expression, quotient: Expression | None
) -> None:
    found = number.divided_by(divisor)
    assert (found is None) is (quotient is None)
    if found is not None and quotient is not None:
        assert found.minus(quotient).is_zero()


def test_coefficients_are_signed_numbers_of_their_type() -> None:
    assert A.scaled(255).reduced(8).terms == A.scaled(-1).terms
    assert A.scaled(256).reduced(8).is_zero()
    assert A.scaled(127).reduced(8) == A.scaled(127)


def test_what_overflow_may_spoil_stays_marked() -> None:
    assert A.assumed().plus(B).is_assumed and B.plus(A.assumed()).is_assumed
    assert ZERO.plus(A.assumed()).is_assumed and A.assumed().times(B).is_assumed
    assert not A.plus(B).is_assumed
    assert A.assumed().minus(A).is_assumed


def test_a_scalar_is_replaced_wherever_it_stands() -> None:
    squared = A.times(A).plus(B)
    found = substituted(
        squared, lambda value: B.plus(ONE) if value is BLOCK.args[0] else symbol(value)
    )
    assert found.minus(B.times(B).plus(B.scaled(3)).plus(ONE)).is_zero()


def test_strides_that_only_jump_or_are_only_assumed_are_none() -> None:
    jumping, assumed = UNIT.with_jumps(), UNIT.assumed()
    assert jumping.plus(UNIT, -1) is None and assumed.plus(UNIT, -1) is None
    assert jumping.plus(jumping) is None
    assert UNIT.plus(UNIT, -1) == STILL
    assert Stride(A).times(ZERO) == STILL and STILL.with_jumps() == STILL
