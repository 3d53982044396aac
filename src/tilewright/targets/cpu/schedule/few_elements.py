"""Folds of a few elements that go back to where they came from: evaluated where they are used.

A compare step of a bitonic sort picks one of each pair of elements by a sum over an axis of two
and spreads it over both again:

    pairs [n, 2, m] ── × mask ── sum over axis 1 ── expand, broadcast ── [n, 2, m]

As nests of their own, such folds are most of a sort's nests and of its compile time. Inline they
cost their elements once more for each of the few places that they are spread to.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from tilewright.ir.op import ElementwiseOp
from tilewright.ir.types import shape_of
from tilewright.ops.reduction.ir import ReduceOp
from tilewright.ops.shape.ir import BroadcastOp, ExpandDimsOp
from tilewright.targets.cpu.schedule.bufferization import Bufferization
from tilewright.targets.cpu.schedule.inline import (
    EXPENSIVE,
    is_read,
    is_tile,
    num_folded,
    own_cost,
    owner,
    reads,
)

# What an inline fold may cost, its few elements together.
_MAX_COST = 3 * EXPENSIVE


def sources_of_exchange(fold: Operation, bufferization: Bufferization) -> list[SSAValue] | None:
    """The tiles to materialise so that a fold may be inline; None where it better is a nest.

    It must be spread again over the axis that it folds. Loads stay with a nest, which reads
    along that axis; what the fold shares with others and is dear is materialised.
    """
    assert isinstance(fold, ReduceOp)
    if not all(_is_spread(result, fold) for result in fold.results):
        return None
    if num_folded(fold) > 2 and fold.rounds():
        return None  # a nest may fold in another order
    shared: list[SSAValue] = []
    pending, seen = list(fold.operands), set(fold.operands)
    while pending:
        value = pending.pop()
        op = owner(value)
        operands = None if op is None else reads(op)
        if bufferization.costs.is_symbolic(value) or bufferization.is_stored(value):
            continue
        assert op is not None and operands is not None
        if is_read(op):
            return None
        if not value.has_one_use() and own_cost(op) and _is_dear(value, bufferization):
            shared.append(value)
            continue
        fresh = [v for v, _ in operands if is_tile(v) and v not in seen]
        seen.update(fresh)
        pending.extend(fresh)
    stored = {*bufferization.stored, *shared}
    costs = (bufferization.costs.recompute(result, stored) for result in fold.results)
    return shared if max(costs) <= _MAX_COST else None


def _is_dear(value: SSAValue, bufferization: Bufferization) -> bool:
    return bufferization.costs.recompute(value, bufferization.stored) >= EXPENSIVE


def _is_spread(result: SSAValue, fold: ReduceOp) -> bool:
    """Whether all that uses a fold's result is a broadcast over the axis that was folded."""
    axis = fold.axis.value.data
    shape = shape_of(fold.operands[0].type)
    uses = [use.operation for use in result.uses]
    return bool(uses) and all(_spreads(user, axis, shape) for user in uses)


def _spreads(op: Operation, axis: int, shape: tuple[int, ...]) -> bool:
    """Whether an op leads to such a broadcast, by way of conversions of one tile."""
    while isinstance(op, ElementwiseOp) and len(op.operands) == 1 and op.results[0].has_one_use():
        op = next(iter(op.results[0].uses)).operation
    if not isinstance(op, ExpandDimsOp) or op.axis.value.data != axis:
        return False
    users = [use.operation for use in op.results[0].uses]
    return all(isinstance(u, BroadcastOp) and shape_of(u.results[0].type) == shape for u in users)
