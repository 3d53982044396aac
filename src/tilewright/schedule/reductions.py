"""Where the elements of a reduction are, and in which order they are folded.

The cheapest order is a thread's registers first, then lanes, then warps. A layout may repeat
along the axis, so that registers of one thread lie apart; a function that does not commute is
then folded level by level along the axis, which takes an exchange for every such register.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tilewright.analysis.commutation import commutes
from tilewright.ir.annotations import decided
from tilewright.ir.encoding import layout_of
from tilewright.ir.plans import ExchangeAttr, ExchangePlan
from tilewright.layout.axis import AxisBit, AxisSpread, spread_along
from tilewright.layout.linear import LinearLayout
from tilewright.ops.reduction.ir import CombineOp, ReduceOp
from tilewright.schedule.exchanges import CHECKS, CHOICES
from tilewright.schedule.reduction_levels import ReductionLevel, reduction_levels, scratch_bytes
from tilewright.schedule.reduction_scratch import (
    Scratch,
    axis_of,
    exchange_along,
    plan_scratch,
    too_few_partials,
)
from tilewright.support.dataclass import dataclass

ANY, AXIS = "any order", "axis order"


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
    """Where the elements of a planned reduction are, and its exchanges."""
    return _made(op, decided(op, ExchangeAttr).method)


def _made(op: CombineOp, method: str) -> ReductionPlan:
    layout = layout_of(op.operands[0].type)
    spread = spread_along(layout, axis_of(op))
    if method == AXIS:
        return ReductionPlan(layout, spread, None, reduction_levels(op, layout, spread))
    if not spread.warps:
        return ReductionPlan(layout, spread, None)
    between = exchange_along(layout, spread)
    scratch = plan_scratch(op, between, spread.result.num_registers)
    return ReductionPlan(layout, spread, scratch)


@CHOICES.register(ReduceOp)
def _choices(op: ReduceOp) -> Iterator[ExchangePlan]:
    spread = spread_along(layout_of(op.operands[0].type), axis_of(op))
    if _is_in_order(spread) or commutes(op):
        yield ExchangePlan(ANY, _made(op, ANY).scratch_bytes)
    yield ExchangePlan(AXIS, _made(op, AXIS).scratch_bytes)


def _is_in_order(spread: AxisSpread) -> bool:
    """Whether registers, lanes and warps follow each other along the axis."""
    steps = [bit.step for bit in (*spread.lanes, *spread.warps)]
    return steps == sorted(steps) and all(max(spread.positions) < step for step in steps)


@CHECKS.register(ReduceOp)
def _check(op: ReduceOp, plan: ExchangePlan) -> str:
    """The order is one that the function allows, and warps have room for their results."""
    spread = spread_along(layout_of(op.operands[0].type), axis_of(op))
    if plan.method == AXIS:
        return too_few_partials(op, plan, 1)
    if plan.method != ANY:
        return f"there is no `{plan.method}`, but {ANY} and {AXIS}"
    if not _walks_along(spread) and not commutes(op):
        return (
            "the function is not known to commute, and registers, lanes and warps do not follow "
            "each other along the axis"
        )
    return too_few_partials(op, plan, len(spread.warps))


def _walks_along(spread: AxisSpread) -> bool:
    """Whether the registers of the lanes of the warps, in this order, go along the axis."""
    registers = np.array([spread.positions[register] for register in spread.groups[0]])
    places = _reached(spread.warps)[:, None, None] + _reached(spread.lanes)[:, None] + registers
    return bool(np.all(np.diff(places.ravel()) > 0))


def _reached(bits: tuple[AxisBit, ...]) -> np.ndarray:
    """How far along the axis each lane, or each warp, stands."""
    reached = np.zeros(1, np.int64)
    for bit in bits:
        reached = np.concatenate((reached, reached + bit.step))
    return reached
