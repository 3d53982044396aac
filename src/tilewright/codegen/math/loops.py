"""Loops over lanes: until no lane asks for another round."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.codegen.math.lanes import LaneCode, LaneValue

Round = Callable[[list[LaneValue]], tuple[list[LaneValue], LaneValue]]


def any_lane(condition: LaneValue) -> str:
    """Whether an i1 value is set in some lane, as a scalar i1."""
    code = condition.code
    if code.lanes is None:
        return condition.name
    kind = condition.type
    symbol = code.fn.module.declare(f"llvm.vector.reduce.or.{code.suffix('i1')}", "i1", kind)
    return code.fn.value(f"call i1 {symbol}({kind} {condition.name})")


def repeat(code: LaneCode, start: Sequence[LaneValue], one_round: Round) -> list[LaneValue]:
    """The values after rounds of `one_round`, at least one; it says which lanes go on.

    A round must leave the values of lanes that are done as they are.
    """
    fn = code.fn
    entry, loop, done = fn.block, fn.new_label(), fn.new_label()
    fn.branch(loop)
    fn.place(loop)
    # The second source of a phi is known at the end of the round only.
    names = [fn.value("phi") for _ in start]
    position = len(fn.lines) - len(names)
    current = [code.wrap(v.element, name) for v, name in zip(start, names, strict=True)]
    following, goes_on = one_round(current)
    last = fn.block
    fn.branch_if(any_lane(goes_on), loop, done)
    for offset, (name, first, after) in enumerate(zip(names, start, following, strict=True)):
        fn.lines[position + offset] = (
            f"  {name} = phi {first.type} [ {first.name}, %{entry} ], [ {after.name}, %{last} ]"
        )
    fn.place(done)
    return following
