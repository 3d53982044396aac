"""A loop and a branch that Tilewright does not have, as a plug-in would add them.

Passes know them by their edges alone. They differ from ours in what a pass could take for granted
of ours: the loop's operands and arguments stand in another order, and it has no bounds; the
branch has its other side first.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i1
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import RecursiveMemoryEffect

from tilewright.codegen.rules import DEFAULT_RULES
from tilewright.interp.code import ControlFunction, Preparation, Running, execute
from tilewright.interp.program import Program
from tilewright.interp.rules.tables import TILE_RULES
from tilewright.ir.op import ADDED_OPS, build
from tilewright.ir.regions import OUTSIDE, ControlFlowOp, Edge, Trips
from tilewright.ir.types import i32
from tilewright.ops.control_flow import ForOp, IfOp
from tilewright.ops.elementwise.ir import ELEMENTWISE


def end_of(region: Region) -> Operation:
    end = region.block.last_op
    assert end is not None
    return end


@irdl_op_definition
class RepeatOp(ControlFlowOp):
    """`body` as often as `times` says, at least once; it takes the carried values, then how often
    it has run."""

    name = "other.repeat"
    times = prop_def(IntegerAttr)
    carried = var_operand_def()
    res = var_result_def()
    body = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())

    def is_loop(self) -> bool:
        return True

    def edges(self) -> tuple[Edge, ...]:
        end, arguments = end_of(self.body), self.body.block.args
        carried = [a for a in arguments if a is not arguments[len(self.results)]]
        return (
            Edge(OUTSIDE, 0, self, 0, carried),
            Edge(0, OUTSIDE, end, 0, self.results),
            Edge(0, 0, end, 0, carried),
        )

    def trips(self) -> Trips:
        return Trips(self.times.value.data, self.times.value.data)


@irdl_op_definition
class ChooseOp(ControlFlowOp):
    """`otherwise` where `condition` does not hold, else `chosen`."""

    name = "other.choose"
    condition = operand_def(i1)
    res = var_result_def()
    otherwise = region_def("single_block")
    chosen = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())

    def is_loop(self) -> bool:
        return False

    def edges(self) -> tuple[Edge, ...]:
        out = [Edge(s, OUTSIDE, end_of(self.regions[s]), 0, self.results) for s in (0, 1)]
        return (Edge(OUTSIDE, 0, self, 1, ()), Edge(OUTSIDE, 1, self, 1, ()), *out)


for added in (RepeatOp, ChooseOp):
    ADDED_OPS[added.name] = added


@DEFAULT_RULES.register(RepeatOp, ChooseOp)
def never_emitted(ctx: object, op: Operation) -> None:
    raise AssertionError("only the schedule is of interest here")


@TILE_RULES.control.register(RepeatOp)
def run_repeat(op: Operation, preparation: Preparation) -> ControlFunction:
    assert isinstance(op, RepeatOp)
    initial, code = preparation.slots(op.carried), preparation.region(op.body)
    results, times = preparation.slots(op.results), op.times.value.data
    # At C2 the tiles are in memory, and the counter is behind the scalars that are left.
    *carried, counter = code.arguments

    def run(program: Program) -> Running:
        program.move(initial, tuple(carried))
        for number in range(times):
            program.values[counter] = np.array(number, np.int32)
            yield from execute(code, program)
            program.move(code.outputs, tuple(carried))
        program.move(tuple(carried), results)

    return run


@TILE_RULES.control.register(ChooseOp)
def run_choose(op: Operation, preparation: Preparation) -> ControlFunction:
    assert isinstance(op, ChooseOp)
    condition = preparation.slot(op.condition)
    otherwise, chosen = (preparation.region(region) for region in op.regions)
    results = preparation.slots(op.results)

    def run(program: Program) -> Running:
        code = chosen if np.asarray(program.values[condition]).item() else otherwise
        yield from execute(code, program)
        program.move(code.outputs, results)

    return run


def use_others(module: ModuleOp) -> int:
    """Put these in place of loops that are known to run and of branches; how many there are."""
    count = 0
    for op in tuple(module.walk(reverse=True)):
        if isinstance(op, ForOp) and op.lb.type == i32 and op.trips().fewest == op.trips().most:
            count += _repeat(op, op.trips().fewest)
        elif isinstance(op, IfOp) and op.false_region.blocks:
            regions = [op.detach_region(op.regions[1]), op.detach_region(op.regions[0])]
            _replace(op, build(ChooseOp, [op.cond], list(op.result_types), None, regions))
            count += 1
    return count


def _repeat(op: ForOp, times: int) -> int:
    if times == 0:
        return 0
    block = op.body.block
    index, number = block.args[0], block.insert_arg(i32, len(block.args))
    scaled = build(ELEMENTWISE["arith.muli"], [number, op.step], [i32], location=op.location)
    moved = build(ELEMENTWISE["arith.addi"], [scaled.results[0], op.lb], [i32])
    index.replace_all_uses_with(moved.results[0])
    block.insert_ops_before([scaled, moved], cast("Operation", block.first_op))
    block.erase_arg(index)
    properties = {"times": IntegerAttr(times, i32)}
    body = op.detach_region(op.body)
    carried: list[SSAValue] = list(op.iter_args)
    _replace(op, build(RepeatOp, carried, list(op.result_types), properties, [body]))
    return 1


def _replace(op: Operation, new: Operation) -> None:
    assert isinstance(op.parent, Block)
    new.location = op.location
    op.parent.insert_op_before(new, op)
    for old, result in zip(op.results, new.results, strict=True):
        result.name_hint = old.name_hint
        old.replace_all_uses_with(result)
    op.detach()
    op.erase()
