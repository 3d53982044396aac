"""Where the elements of a scan are, and the levels in which they are combined."""

from __future__ import annotations

from tilewright.ir.encoding import has_layout, layout_of
from tilewright.layout.axis import AxisSpread, spread_along
from tilewright.layout.linear import LinearLayout
from tilewright.ops.reduction.ir import ScanOp
from tilewright.schedule.reduction_levels import ReductionLevel, reduction_levels, scratch_bytes
from tilewright.schedule.reduction_scratch import axis_of
from tilewright.schedule.scratch import SCRATCH
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


@SCRATCH.register(ScanOp)
def _scan_scratch(op: ScanOp) -> int:
    return plan_scan(op).scratch_bytes if has_layout(op.operands[0].type) else 0
