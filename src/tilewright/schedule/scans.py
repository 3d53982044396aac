"""How the elements of a scan are combined: bit by bit along the axis, shortest step first.

Aligned blocks of the axis know their total. A level joins blocks that differ in one bit of the
lanes, or in the bits of warps that follow each other; between levels each thread joins the
blocks that it holds next to each other. So a scan works in any layout.
"""

from __future__ import annotations

from tilewright.ir.encoding import has_layout, layout_of
from tilewright.layout.axis import AxisBit, AxisSpread, spread_along
from tilewright.layout.linear import LinearLayout
from tilewright.ops.reduction import ScanOp
from tilewright.schedule.folds import Exchange, Scratch, align_up, axis_of, plan_scratch
from tilewright.schedule.scratch import SCRATCH
from tilewright.support.dataclass import dataclass

_REGION_BYTES = 16


@dataclass(frozen=True)
class ScanLevel:
    """One join of blocks of `step` elements along the axis, by lanes or by warps.

    `bits` are one lane bit, or several warp bits with their exchange at `offset` of the scratch.
    """

    step: int
    bits: tuple[AxisBit, ...]
    scratch: Scratch | None
    offset: int


@dataclass(frozen=True)
class ScanPlan:
    """Where the elements of a scan are, and its levels in order."""

    layout: LinearLayout
    spread: AxisSpread
    levels: tuple[ScanLevel, ...]
    is_reverse: bool

    @property
    def scratch_bytes(self) -> int:
        """The bytes of shared memory that the exchanges take, one after the other."""
        sizes = (level.offset + level.scratch.size_bytes for level in self.levels if level.scratch)
        return max(sizes, default=0)

    def place(self, register: int) -> int:
        """Where a register stands in the order of the scan, in lane 0 of warp 0 along the axis."""
        at = self.spread.positions[register]
        return self.layout.shape[self.spread.axis] - 1 - at if self.is_reverse else at


def plan_scan(op: ScanOp) -> ScanPlan:
    """The plan of a scan of laid-out tiles."""
    layout = layout_of(op.operands[0].type)
    spread = spread_along(layout, axis_of(op))
    levels: list[ScanLevel] = []
    lanes, warps = layout.free_bits("lane"), layout.free_bits("warp")
    offset = 0
    for is_warp, bits in _runs(spread):
        scratch = None
        if is_warp:
            between = Exchange(layout, tuple(bit.index for bit in bits), lanes, warps)
            scratch = plan_scratch(op, between, _num_blocks(spread, bits[0].step))
            warps |= sum(1 << bit.index for bit in bits)
        else:
            lanes |= 1 << bits[0].index
        levels.append(ScanLevel(bits[0].step, bits, scratch, offset))
        if scratch is not None:
            offset = align_up(offset + scratch.size_bytes, _REGION_BYTES)
    return ScanPlan(layout, spread, tuple(levels), op.is_reverse())


def _runs(spread: AxisSpread) -> list[tuple[bool, tuple[AxisBit, ...]]]:
    """The bits along the axis by step: each lane bit alone, warp bits in a row together."""
    bits = [(bit, False) for bit in spread.lanes] + [(bit, True) for bit in spread.warps]
    runs: list[tuple[bool, tuple[AxisBit, ...]]] = []
    for bit, is_warp in sorted(bits, key=lambda entry: entry[0].step):
        previous = runs[-1] if runs else None
        if is_warp and previous and previous[0] and previous[1][-1].step * 2 == bit.step:
            runs[-1] = (True, (*previous[1], bit))
        else:
            runs.append((is_warp, (bit,)))
    return runs


def _num_blocks(spread: AxisSpread, step: int) -> int:
    """The blocks of `step` elements that a thread holds parts of, over all lines."""
    registers = (register for group in spread.groups for register in group)
    return len({(spread.lines[r], spread.positions[r] // step) for r in registers})


@SCRATCH.register(ScanOp)
def _scan_scratch(op: ScanOp) -> int:
    return plan_scan(op).scratch_bytes if has_layout(op.operands[0].type) else 0
