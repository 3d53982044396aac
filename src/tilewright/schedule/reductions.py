"""Where the elements of a reduction are, and in which order they are folded.

The cheapest order is a thread's registers first, then lanes, then warps. A layout may repeat
along the axis, so that registers of one thread lie apart; a function that does not commute is
then folded level by level along the axis, which takes an exchange for every such register.
"""

from __future__ import annotations

from tilewright.analysis.commutation import commutes
from tilewright.ir.encoding import has_layout, layout_of
from tilewright.layout.axis import AxisSpread, spread_along
from tilewright.layout.linear import LinearLayout
from tilewright.ops.reduction.ir import CombineOp, ReduceOp
from tilewright.schedule.reduction_levels import ReductionLevel, reduction_levels, scratch_bytes
from tilewright.schedule.reduction_scratch import Scratch, axis_of, exchange_along, plan_scratch
from tilewright.schedule.scratch import SCRATCH
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class ReductionPlan:
    """Where the elements of a reduction are, and its scratch where warps share the axis.

    With `levels` the elements are folded in the order of the axis, each level with its own
    scratch; without (None) registers come first, then lanes, then warps.
    """

    layout: LinearLayout
    spread: AxisSpread
    scratch: Scratch | None
    levels: tuple[ReductionLevel, ...] | None = None

    @property
    def scratch_bytes(self) -> int:
        """The bytes of shared memory that the exchanges between warps take."""
        if self.levels is not None:
            return scratch_bytes(self.levels)
        return 0 if self.scratch is None else self.scratch.size_bytes


def plan_reduction(op: CombineOp) -> ReductionPlan:
    """The plan of a reduction of laid-out tiles."""
    layout = layout_of(op.operands[0].type)
    spread = spread_along(layout, axis_of(op))
    if not _is_in_order(spread) and not commutes(op):
        return ReductionPlan(layout, spread, None, reduction_levels(op, layout, spread))
    if not spread.warps:
        return ReductionPlan(layout, spread, None)
    between = exchange_along(layout, spread)
    scratch = plan_scratch(op, between, spread.result.num_registers)
    return ReductionPlan(layout, spread, scratch)


def _is_in_order(spread: AxisSpread) -> bool:
    """Whether registers, lanes and warps follow each other along the axis."""
    steps = [bit.step for bit in (*spread.lanes, *spread.warps)]
    return steps == sorted(steps) and all(max(spread.positions) < step for step in steps)


@SCRATCH.register(ReduceOp)
def _reduction_scratch(op: ReduceOp) -> int:
    return plan_reduction(op).scratch_bytes if has_layout(op.operands[0].type) else 0
