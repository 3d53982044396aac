"""Structured control flow: `scf` under its published names, without custom formats.

xDSL's own classes load its parser, printer and format language, a tenth of a cold start.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, IntegerType, i1
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from tilewright.ir.op import TileOp
from tilewright.ir.regions import OUTSIDE, ControlFlowOp, Counter, Edge, Trips
from tilewright.ops.creation.ir import constant_of


@irdl_op_definition
class YieldOp(TileOp):
    """The end of a region: what the op around it gets as values."""

    name = "scf.yield"
    arguments = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())


@irdl_op_definition
class ConditionOp(TileOp):
    """The end of a `scf.while` test: go on with `args`, or leave with them as results."""

    name = "scf.condition"
    condition = operand_def(i1)
    args = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())


@irdl_op_definition
class ForOp(ControlFlowOp):
    """`body` for each index from `lb` below `ub` by `step`; `iter_args` are carried.

    The body takes the index and the carried values and yields the next ones; the last ones are
    the results.
    """

    name = "scf.for"
    lb = operand_def()
    ub = operand_def()
    step = operand_def()
    iter_args = var_operand_def()
    res = var_result_def()
    body = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())

    def verify_(self) -> None:
        """The index has the bounds' type; carried values keep theirs."""
        if not isinstance(self.lb.type, IntegerType | IndexType):
            raise VerifyException(f"{self.name}: an index of type {self.lb.type}")
        carried = [v.type for v in self.iter_args]
        _require_same(self.name, "results", list(self.result_types), carried)
        takes = [a.type for a in self.body.block.args]
        _require_same(self.name, "arguments of the body", takes, [self.lb.type, *carried])
        bounds = [self.ub.type, self.step.type]
        _require_same(self.name, "bounds", bounds, [self.lb.type] * 2)
        _require_same(self.name, "values yielded", _yielded(self.name, self.body), carried)

    def is_loop(self) -> bool:
        """The body may run again."""
        return True

    def edges(self) -> tuple[Edge, ...]:
        """Into the body, around it, from its end to its start, and out of it."""
        end, arguments = _end_of(self.body), self.body.block.args[1:]
        return (
            Edge(OUTSIDE, 0, self, 3, arguments),
            Edge(OUTSIDE, OUTSIDE, self, 3, self.results),
            Edge(0, 0, end, 0, arguments),
            Edge(0, OUTSIDE, end, 0, self.results),
        )

    def counter(self) -> Counter:
        """The index."""
        return Counter(self.body.block.args[0], self.lb, self.ub, self.step)

    def counts_within(self) -> bool:
        """Whether constants say that no step from below the end passes the type's last number."""
        high, step = _integer(self.ub), _integer(self.step)
        if step == 1:
            return True
        type_ = self.lb.type
        width_bits = type_.width.data if isinstance(type_, IntegerType) else 64
        last = (1 << (width_bits - 1)) - 1
        return high is not None and step is not None and high + step - 1 <= last

    def trips(self) -> Trips:
        """What constant bounds say."""
        low, high, step = (_integer(bound) for bound in (self.lb, self.ub, self.step))
        if low is None or high is None:
            return Trips(0, None)
        if low >= high:
            return Trips(0, 0)
        if step is None or step <= 0:
            return Trips(1, None)
        count = -(-(high - low) // step)
        return Trips(count, count)


@irdl_op_definition
class IfOp(ControlFlowOp):
    """`true_region` where `cond` holds, else `false_region`; their yields are the results."""

    name = "scf.if"
    cond = operand_def(i1)
    output = var_result_def()
    true_region = region_def("single_block")
    false_region = region_def()
    traits = traits_def(RecursiveMemoryEffect())

    def verify_(self) -> None:
        """Both regions yield the results; without results the second may be empty."""
        results = list(self.result_types)
        _require_same(self.name, "values yielded", _yielded(self.name, self.true_region), results)
        if self.false_region.blocks or results:
            other = _yielded(self.name, self.false_region)
            _require_same(self.name, "values yielded otherwise", other, results)

    def is_loop(self) -> bool:
        """A region runs once."""
        return False

    def edges(self) -> tuple[Edge, ...]:
        """Into each region and out of it, or around the op in place of a region that is empty."""
        sides = [index for index, region in enumerate(self.regions) if region.blocks]
        entering = [Edge(OUTSIDE, side, self, 1, ()) for side in sides]
        if len(sides) == 1:
            entering.append(Edge(OUTSIDE, OUTSIDE, self, 1, ()))
        ends = [Edge(s, OUTSIDE, _end_of(self.regions[s]), 0, self.results) for s in sides]
        return (*entering, *ends)


@irdl_op_definition
class WhileOp(ControlFlowOp):
    """`after_region` as long as `before_region` ends in a condition that holds.

    The first region takes the carried values, the second what the condition hands on, which
    are the results when it no longer holds.
    """

    name = "scf.while"
    arguments = var_operand_def()
    res = var_result_def()
    before_region = region_def("single_block")
    after_region = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())

    def verify_(self) -> None:
        """What one region hands on is what the next one takes."""
        carried, results = [v.type for v in self.arguments], list(self.result_types)
        end = self.before_region.block.last_op
        if not isinstance(end, ConditionOp):
            raise VerifyException(f"{self.name}: the first region ends without scf.condition")
        tested = [a.type for a in self.before_region.block.args]
        _require_same(self.name, "arguments of the test", tested, carried)
        _require_same(self.name, "values handed on", [v.type for v in end.args], results)
        taken = [a.type for a in self.after_region.block.args]
        _require_same(self.name, "arguments of the body", taken, results)
        _require_same(self.name, "values yielded", _yielded(self.name, self.after_region), carried)

    def is_loop(self) -> bool:
        """Both regions may run again."""
        return True

    def edges(self) -> tuple[Edge, ...]:
        """Into the test, from there to the body or out, and from the body to the test."""
        before, after = self.before_region, self.after_region
        condition, end = _end_of(before), _end_of(after)
        return (
            Edge(OUTSIDE, 0, self, 0, before.block.args),
            Edge(0, 1, condition, 1, after.block.args),
            Edge(0, OUTSIDE, condition, 1, self.results),
            Edge(1, 0, end, 0, before.block.args),
        )


def counted_loops(op: Operation) -> tuple[ForOp, ...]:
    """The loops with a counter in an op, itself among them, in the order of the text."""
    return tuple(inner for inner in op.walk() if isinstance(inner, ForOp))


def _end_of(region: Region) -> Operation:
    """What a region ends with."""
    end = region.block.last_op
    assert end is not None
    return end


def _integer(value: SSAValue) -> int | None:
    found = constant_of(value)
    return None if found is None else int(found)


def _yielded(name: str, region: Region) -> list[Attribute]:
    end = region.blocks.last.last_op if region.blocks.last is not None else None
    if not isinstance(end, YieldOp):
        raise VerifyException(f"{name}: a region ends without scf.yield")
    return [v.type for v in end.arguments]


def _require_same(
    name: str, what: str, types: Sequence[Attribute], expected: Sequence[Attribute]
) -> None:
    if list(types) != list(expected):
        shown, wanted = (", ".join(map(str, group)) for group in (types, expected))
        raise VerifyException(f"{name}: {what} have the types ({shown}), expected ({wanted})")


CONTROL_FLOW_OPS = (ForOp, IfOp, WhileOp, YieldOp, ConditionOp)
