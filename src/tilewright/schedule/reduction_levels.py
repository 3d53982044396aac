"""How elements are combined in the order of an axis, in any layout: step by step along it.

Aligned blocks of the axis know their total. A level joins blocks that differ in one bit of the
lanes, or in the bits of warps that follow each other, shortest step first; between levels each
thread joins the blocks that it holds next to each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.analysis.facts import MAX_ACCESS_BYTES
from tilewright.layout.axis import AxisBit, AxisSpread
from tilewright.layout.linear import LinearLayout
from tilewright.ops.reduction.ir import CombineOp
from tilewright.schedule.reduction_scratch import Exchange, Scratch, align_up, plan_scratch
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class ReductionLevel:
    """One join of blocks of `step` elements along the axis, by lanes or by warps.

    `bits` are one lane bit, or several warp bits with their exchange at `offset` of the scratch.
    """

    step: int
    bits: tuple[AxisBit, ...]
    scratch: Scratch | None
    offset: int


def reduction_levels(
    op: CombineOp, layout: LinearLayout, spread: AxisSpread
) -> tuple[ReductionLevel, ...]:
    """The levels of a fold that keeps the order of its elements, in their order."""
    levels: list[ReductionLevel] = []
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
        levels.append(ReductionLevel(bits[0].step, bits, scratch, offset))
        if scratch is not None:
            offset = align_up(offset + scratch.size_bytes, MAX_ACCESS_BYTES)
    return tuple(levels)


def scratch_bytes(levels: Sequence[ReductionLevel]) -> int:
    """The bytes of shared memory that the exchanges take, one after the other."""
    sizes = (level.offset + level.scratch.size_bytes for level in levels if level.scratch)
    return max(sizes, default=0)


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
