"""Which steps evaluate a tile, counted from users to producers."""

from __future__ import annotations

from xdsl.dialects.builtin import i32
from xdsl.ir import Block

from tilewright.targets.cpu.schedule.uses import Uses

A, B, C = Block(arg_types=[i32, i32, i32]).args


def test_what_a_value_is_made_of_is_evaluated_by_its_users():
    uses = Uses()
    uses.take([C], uses.add_step("first") | uses.add_step("second"))
    uses.hand_on(C, [B])
    uses.take([B], uses.add_step("second"))
    assert (uses.count(C), uses.count(B), uses.count(A)) == (2, 2, 0)


def test_a_materialized_value_is_evaluated_by_one_step():
    uses = Uses()
    uses.take([C], uses.add_step("first") | uses.add_step("second"))
    uses.materialize(C, None)
    uses.hand_on(C, [B])
    assert uses.count(B) == 1


def test_a_value_materialized_in_a_step_that_needs_its_source_shares_it():
    uses = Uses()
    uses.take([B, C], uses.add_step("first"))
    uses.take([C], uses.add_step("second"))
    uses.materialize(C, "first")
    uses.hand_on(C, [B])
    assert uses.count(B) == 1


def test_a_step_that_is_repeated_counts_twice():
    uses = Uses()
    uses.take([A], uses.add_step("loop", is_repeated=True))
    assert uses.count(A) == 2
