"""Where the elements of a scan are, and the levels in which they are combined."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.ir.encoding import layout_of
from tilewright.ir.plans import ExchangePlan
from tilewright.layout.axis import AxisSpread, spread_along
from tilewright.layout.linear import LinearLayout
from tilewright.ops.reduction.ir import ScanOp
from tilewright.schedule.exchanges import CHECKS, CHOICES
from tilewright.schedule.reduction_levels import ReductionLevel, reduction_levels, scratch_bytes
from tilewright.schedule.reduction_scratch import axis_of, too_few_partials
from tilewright.schedule.reductions import AXIS
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class ScanPlan:
    """Where the elements of a scan are, and its levels in order."""

    layout: LinearLayout
    spread: AxisSpread
    levels: tuple[ReductionLevel, ...]
    is_reverse: bool

    @property
    def scratch_bytes(self) -> int:
        """The bytes of shared memory that the exchanges take, one after the other."""
        return scratch_bytes(self.levels)

    def place(self, register: int) -> int:
        """Where a register stands in the order of the scan, in lane 0 of warp 0 along the axis."""
        at = self.spread.positions[register]
        return self.layout.shape[self.spread.axis] - 1 - at if self.is_reverse else at


def plan_scan(op: ScanOp) -> ScanPlan:
    """The plan of a scan of laid-out tiles."""
    layout = layout_of(op.operands[0].type)
    spread = spread_along(layout, axis_of(op))
    return ScanPlan(layout, spread, reduction_levels(op, layout, spread), op.is_reverse())


@CHOICES.register(ScanOp)
def _choices(op: ScanOp) -> Iterator[ExchangePlan]:
    yield ExchangePlan(AXIS, plan_scan(op).scratch_bytes)


@CHECKS.register(ScanOp)
def _check(op: ScanOp, plan: ExchangePlan) -> str:
    """A prefix is in the order of the axis, and warps have room for what goes before."""
    if plan.method != AXIS:
        return f"a scan has {AXIS} alone"
    return too_few_partials(op, plan, 1)
