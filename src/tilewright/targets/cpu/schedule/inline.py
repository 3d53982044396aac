"""Which tile ops need no code of their own: they are evaluated inside their consumers.

An inline op's element at an index is a pure function of elements of its operands. *Pointwise*
operands are read at the same index; others (broadcast, trans, splat) at another.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Operation, OpResult, SSAValue

from tilewright.analysis.affine.rules import split_groups
from tilewright.analysis.affine.tiles import AffineTiles
from tilewright.ir.op import ElementwiseOp
from tilewright.ir.types import is_float, shape_of
from tilewright.ops.creation.ir import ConstantOp, MakeRangeOp, SplatOp
from tilewright.ops.debug.ir import HintOp
from tilewright.ops.indexing.ir import GatherOp
from tilewright.ops.memory.ir import LoadOp
from tilewright.ops.reduction.ir import ReduceOp
from tilewright.ops.shape.ir import (
    BroadcastOp,
    ExpandDimsOp,
    FlipOp,
    ReshapeOp,
    SplitOp,
    TransOp,
)
from tilewright.support.worklist import needed_first

# What recomputing an element costs, in vector instructions; the default is 1.
EXPENSIVE = 5
_COSTS = {
    "arith.divf": 4,
    "arith.remf": 12,
    "arith.divsi": 8,
    "arith.divui": 8,
    "arith.remsi": 8,
    "arith.remui": 8,
    "math.sqrt": 4,
    "math.rsqrt": 4,
    "tt.precise_divf": 4,
    "tt.precise_sqrt": 4,
}
_CHEAP_MATH = frozenset(
    f"math.{name}" for name in ("absf", "absi", "ceil", "floor", "trunc", "roundeven", "fma")
)


def is_tile(value: SSAValue) -> bool:
    """Whether `value` has elements (a shape)."""
    return bool(shape_of(value.type))


def owner(value: SSAValue) -> Operation | None:
    """The op that makes `value`; None for block arguments."""
    return value.op if isinstance(value, OpResult) else None


def is_splitting(op: ReshapeOp) -> bool:
    """Whether a reshape only splits dimensions, or adds and drops unit ones."""
    source, target = shape_of(op.operands[0].type), shape_of(op.results[0].type)
    return split_groups(source, target) is not None


def reads(op: Operation) -> list[tuple[SSAValue, bool]] | None:
    """The operands an inline op reads, each with whether it is pointwise; None otherwise."""
    if isinstance(op, LoadOp):
        return [(v, True) for v in op.operands]
    if not op.results or not is_tile(op.results[0]):
        return None
    if isinstance(op, ElementwiseOp | HintOp):
        return [(v, is_tile(v)) for v in op.operands]
    if isinstance(op, ConstantOp | MakeRangeOp):
        return []
    if isinstance(op, SplatOp | ExpandDimsOp | BroadcastOp | TransOp | FlipOp | SplitOp):
        return [(op.operands[0], False)]
    if isinstance(op, ReshapeOp):
        return [(op.operands[0], False)] if is_splitting(op) else None
    if isinstance(op, GatherOp):
        return [(op.operands[0], False), (op.operands[1], True)]
    if isinstance(op, ReduceOp) and is_trivial_reduce(op):
        return [(v, False) for v in op.operands]
    return None


def is_trivial_reduce(op: ReduceOp) -> bool:
    """Whether the reduced axis has one element, so that there is nothing to fold."""
    shape = shape_of(op.operands[0].type)
    return len(shape) > 1 and shape[op.axis.value.data] == 1


def is_inline(value: SSAValue) -> bool:
    """Whether `value` is a tile without code of its own."""
    op = owner(value)
    return op is not None and is_tile(value) and reads(op) is not None


def own_cost(op: Operation) -> int:
    """The cost of one element of an op, its operands not counted."""
    found = _COSTS.get(op.name)
    if found is not None:
        constant = owner(op.operands[1]) if len(op.operands) > 1 else None
        return 2 if not is_float(op.results[0].type) and isinstance(constant, ConstantOp) else found
    if op.name.startswith(("math.", "tt.extern_elementwise")):
        return 1 if op.name in _CHEAP_MATH else 10
    return 1 if isinstance(op, ElementwiseOp) else 0


def _read_operands(value: SSAValue) -> Iterable[SSAValue]:
    op = owner(value)
    if op is None or not is_tile(value):
        return ()
    return (operand for operand, _ in reads(op) or ())


class Costs:
    """The cost of recomputing values, down to loads and materialised tiles."""

    def __init__(self, structure: AffineTiles) -> None:
        self._structure = structure
        self._symbolic: dict[SSAValue, bool] = {}

    def is_symbolic(self, value: SSAValue) -> bool:
        """Whether `value` is index arithmetic on scalars and ranges without division."""
        found = self._symbolic.get(value)
        if found is not None:
            return found
        for needed in needed_first(value, _read_operands, self._symbolic.__contains__):
            self._symbolic[needed] = self._compute_symbolic(needed)
        return self._symbolic[value]

    def _compute_symbolic(self, value: SSAValue) -> bool:
        if not is_tile(value):
            return True
        op = owner(value)
        if op is None or isinstance(op, LoadOp | GatherOp):
            return False
        operands = reads(op)
        if operands is None or own_cost(op) > 3:
            return False
        return all(self.is_symbolic(operand) for operand, _ in operands)

    def recompute(self, value: SSAValue, stored: set[SSAValue], limit: int = 40) -> int:
        """The cost of evaluating `value` once more, counting up to about `limit`."""
        total = 0
        pending, seen = [value], {value}
        while pending and total < limit:
            current = pending.pop()
            if self.is_symbolic(current) or (current in stored and current is not value):
                continue
            op = owner(current)
            operands = None if op is None else reads(op)
            if op is None or operands is None:
                total += 1
                continue
            total += self._load_cost(op) if isinstance(op, LoadOp | GatherOp) else own_cost(op)
            for operand, _ in operands:
                if operand not in seen:
                    seen.add(operand)
                    pending.append(operand)
        return total

    def _load_cost(self, op: Operation) -> int:
        if isinstance(op, LoadOp):
            strides = self._structure.strides(op.operands[0])
            if any(s is not None and s.as_int() == 1 for s in strides):
                return 2
        return EXPENSIVE
