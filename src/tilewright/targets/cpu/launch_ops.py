"""The ops of C2 by which a program asks its launch, or tells it, what is no work of the grid.

They are about whether to stop, who else runs, what was kept, and cycles that are counted.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, UnitAttr, i64
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from tilewright.ir.effects import Effect, Resource, write
from tilewright.ir.op import TileOp


@irdl_op_definition
class ForgetOp(TileOp):
    """Fill `num_elems` of a kept buffer with zeros, where this is its thread's first program.

    It may do so at any time: what is kept is never needed.
    """

    name = "cpu.forget"
    buffer = operand_def()
    num_elems = prop_def(IntegerAttr)

    def effects(self) -> tuple[Effect, ...]:
        return (write(Resource.GLOBAL, self.buffer),)


@irdl_op_definition
class IsAloneOp(TileOp):
    """An i1: while this program runs, no other code of the process runs atomics.

    It says the same wherever a program asks.
    """

    name = "cpu.is_alone"
    result = result_def()
    traits = traits_def(Pure())


@irdl_op_definition
class PollOp(TileOp):
    """Return from the program if its launch is to stop: an interrupt came (`interrupt_ir.py`)."""

    name = "cpu.poll"

    def effects(self) -> tuple[Effect, ...]:
        return (write(Resource.CONTROL),)


@irdl_op_definition
class StartCountOp(TileOp):
    """The number of a counter of cycles, from which `cpu.end_count` counts."""

    name = "cpu.start_count"
    start = result_def(i64)

    def effects(self) -> tuple[Effect, ...]:
        return (write(Resource.CONTROL),)


@irdl_op_definition
class EndCountOp(TileOp):
    """Add the cycles since `start` to those of `part`, and 1 to its runs unless `beside` one."""

    name = "cpu.end_count"
    start = operand_def(i64)
    part = prop_def(IntegerAttr)
    beside = opt_prop_def(UnitAttr)

    def effects(self) -> tuple[Effect, ...]:
        return (write(Resource.CONTROL),)


LAUNCH_OPS = (ForgetOp, IsAloneOp, PollOp, StartCountOp, EndCountOp)
