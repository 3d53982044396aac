"""Which tile ops need no code of their own: they are evaluated inside their consumers.

An inline op's element at an index is a pure function of elements of its operands. *Pointwise*
operands are read at the same index; others (broadcast, trans, splat) at another, and a fold
along an axis of a few elements at all of that axis's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.traits import ConstantLike

from tilewright.analysis.affine.stride import Stride
from tilewright.analysis.affine.tiles import AffineTiles
from tilewright.analysis.reshapes import split_groups
from tilewright.ir.op import AccumulatingOp, ElementwiseOp
from tilewright.ir.types import is_float, shape_of
from tilewright.ops.creation.ir import ConstantOp, MakeRangeOp, SplatOp, splatted_constant
from tilewright.ops.debug.ir import HintOp
from tilewright.ops.indexing.ir import GatherOp
from tilewright.ops.memory.ir import LoadOp
from tilewright.ops.reduction.ir import CombineOp, ReduceOp
from tilewright.ops.shape.ir import (
    BroadcastOp,
    ExpandDimsOp,
    FlipOp,
    ReshapeOp,
    SplitOp,
    TransOp,
)
from tilewright.support.worklist import needed_first

# What recomputing an element costs, in vector instructions; the default is 1. From EXPENSIVE
# on an element is computed once and kept. Chosen, not measured: divisions and roots cost several
# additions on every core; computing again gives the same bits.
EXPENSIVE = 5
# A reduction of so many elements is evaluated where it is used, one element after the other.
# Chosen, not measured: two joins of halves, without a nest and a buffer of their own.
MAX_INLINE_FOLD = 4
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
# What an exponential costs, and other functions. Chosen, not measured: beside it fetches are free,
# and where lines are asked for changes no result.
_EXPENSIVE = 10

Read = tuple[SSAValue, bool]


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


def reads(op: Operation) -> list[Read] | None:
    """The operands an inline op reads, each with whether it is pointwise; None otherwise."""
    rule = _READS.get(type(op))
    if rule is not None and (type(op) is LoadOp or _makes_tile(op)):
        return rule(op)
    if isinstance(op, ElementwiseOp) and _makes_tile(op):
        return _where_it_is(op)
    return None


def _makes_tile(op: Operation) -> bool:
    return bool(op.results) and is_tile(op.results[0])


def _where_it_is(op: Operation) -> list[Read]:
    return [(v, is_tile(v)) for v in op.operands]


def _nothing(op: Operation) -> list[Read]:
    return []


def _elsewhere(op: Operation) -> list[Read]:
    return [(op.operands[0], False)]


def _reshaped(op: Operation) -> list[Read] | None:
    assert isinstance(op, ReshapeOp)
    return _elsewhere(op) if is_splitting(op) else None


def _gathered(op: Operation) -> list[Read]:
    return [(op.operands[0], False), (op.operands[1], True)]


def _folded(op: Operation) -> list[Read] | None:
    assert isinstance(op, ReduceOp)
    return [(v, False) for v in op.operands] if is_inline_fold(op) else None


_READS: dict[type[Operation], Callable[[Operation], list[Read] | None]] = {
    LoadOp: lambda op: [(v, True) for v in op.operands],
    HintOp: _where_it_is,
    ConstantOp: _nothing,
    MakeRangeOp: _nothing,
    **dict.fromkeys((SplatOp, ExpandDimsOp, BroadcastOp, TransOp, FlipOp, SplitOp), _elsewhere),
    ReshapeOp: _reshaped,
    GatherOp: _gathered,
    ReduceOp: _folded,
}


def is_inline_fold(op: ReduceOp) -> bool:
    """Whether a fold has so few elements, and so plain a function, that it needs no loop."""
    count = num_folded(op)
    if len(shape_of(op.operands[0].type)) == 1 or count > MAX_INLINE_FOLD:
        return False
    return count == 1 or all(map(_is_plain, _combine_ops(op)))


def num_folded(op: Operation) -> int:
    """How many elements of an operand make one of the result."""
    if not isinstance(op, CombineOp):
        return 1
    shape = shape_of(op.operands[0].type)
    return 1 if shape_of(op.results[0].type) == shape else shape[op.axis.value.data]


def _combine_ops(op: Operation) -> list[Operation]:
    return list(op.regions[0].block.ops)[:-1]


def _is_plain(op: Operation) -> bool:
    return isinstance(op, ElementwiseOp) or op.has_trait(ConstantLike)


def is_inline(value: SSAValue) -> bool:
    """Whether `value` is a tile without code of its own."""
    op = owner(value)
    return op is not None and is_tile(value) and reads(op) is not None


def own_cost(op: Operation) -> int:
    """The cost of one element of an op, its operands not counted."""
    times = num_folded(op) - 1
    if times:
        return times * sum(map(own_cost, _combine_ops(op)))
    found = _COSTS.get(op.name)
    if found is not None:
        is_by_constant = len(op.operands) > 1 and splatted_constant(op.operands[1]) is not None
        return 2 if is_by_constant and not is_float(op.results[0].type) else found
    if op.name.startswith(("math.", "tt.extern_elementwise")):
        return 1 if op.name in _CHEAP_MATH else _EXPENSIVE
    return 1 if isinstance(op, ElementwiseOp) else 0


def is_expensive(op: Operation) -> bool:
    """Whether an element of an op costs as much as an exponential: memory has time beside it."""
    return own_cost(op) >= _EXPENSIVE


def is_bound_by_memory(kernel: Operation) -> bool:
    """Whether nothing of tiles in a kernel takes long: no function, and no product."""
    made = (op for op in kernel.walk() if any(map(is_tile, op.results)))
    return not any(is_expensive(op) or isinstance(op, AccumulatingOp) for op in made)


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
        if op is None or is_read(op):
            return False
        operands = reads(op)
        if operands is None or own_cost(op) > 3 or num_folded(op) > 1:
            return False
        return all(self.is_symbolic(operand) for operand, _ in operands)

    def recompute(self, value: SSAValue, stored: set[SSAValue], limit: int = 40) -> int:
        """The cost of evaluating `value` once more, counting up to about `limit`."""
        total = 0
        pending, seen = [(value, 1)], {value}
        while pending and total < limit:
            current, times = pending.pop()
            if self.is_symbolic(current) or (current in stored and current is not value):
                continue
            op = owner(current)
            operands = None if op is None else reads(op)
            if op is None or operands is None:
                total += times
                continue
            cost = self._load_cost(op) if is_read(op) else own_cost(op)
            total += times * cost
            for operand, _ in operands:
                if operand not in seen:
                    seen.add(operand)
                    pending.append((operand, times * num_folded(op)))
        return total

    def is_gathered(self, op: Operation) -> bool:
        """Whether neighbouring elements of a load are no neighbours in memory."""
        shape, strides = shape_of(op.results[0].type), self._structure.strides(op.operands[0])
        moves = [s for s, extent in zip(strides, shape, strict=True) if extent > 1]
        return bool(moves) and not any(s is not None and _is_adjacent(s) for s in moves)

    def _load_cost(self, op: Operation) -> int:
        if isinstance(op, LoadOp):
            strides = self._structure.strides(op.operands[0])
            if any(s is not None and s.as_int() == 1 for s in strides):
                return 2
        return EXPENSIVE


def _is_adjacent(stride: Stride) -> bool:
    """Whether an address stays, or moves to the next element, but for jumps."""
    return stride.as_int() == 1 or (stride.is_zero() and not stride.jumps)


def is_read(op: Operation) -> bool:
    """Whether an op reads memory that may be anywhere."""
    return isinstance(op, LoadOp | GatherOp)
