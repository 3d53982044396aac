"""What tile ops do to layouts: from operands to results, and from a result to its operands.

An op that computes its result from elements at the same place (arithmetic), or that only names
elements anew (shape ops), works within a thread when operands and result have layouts that fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from tilewright.ir.op import ElementwiseOp
from tilewright.ir.types import shape_of
from tilewright.layout.linear import LinearLayout
from tilewright.ops.creation.ir import ConstantOp, MakeRangeOp, SplatOp
from tilewright.ops.shape.ir import (
    BroadcastOp,
    ExpandDimsOp,
    JoinOp,
    ReshapeOp,
    SplitOp,
    TransOp,
)
from tilewright.support.errors import UnsupportedLayout
from tilewright.support.rules import RuleTable

Layouts = Sequence[LinearLayout | None]
# Chosen, not measured: far more than a kernel has layouts; a miss computes once more.
CACHED = 1 << 10
_SOURCES = (ConstantOp, MakeRangeOp, SplatOp)
_RESULTS: RuleTable[Callable[[Operation, LinearLayout], LinearLayout]] = RuleTable(
    "layouts of results"
)
_OPERANDS: RuleTable[Callable[[Operation, LinearLayout], LinearLayout]] = RuleTable(
    "layouts of operands"
)
FLEXIBLE = (*_SOURCES, ExpandDimsOp, BroadcastOp, TransOp, ReshapeOp, JoinOp, ElementwiseOp)


def is_tile(value: SSAValue) -> bool:
    """Whether a value is a tile."""
    return isinstance(value.type, TensorType)


def is_flexible(op: Operation) -> bool:
    """Whether an op can be computed in any layout, each thread from its own elements."""
    return _is_a(type(op), FLEXIBLE)


def is_source(op: Operation) -> bool:
    """Whether an op makes a tile out of scalars or nothing."""
    return _is_a(type(op), _SOURCES)


@cache
def _is_a(cls: type, classes: tuple[type, ...]) -> bool:
    """`issubclass`, asked once: of classes of ops it goes through Python's abstract classes."""
    return issubclass(cls, classes)


def result_layout(op: Operation, operands: Layouts) -> LinearLayout | None:
    """The layout of an op's results that its operands' layouts suggest; None for any.

    `operands[i]` is None for an operand that has no layout of its own. The layout of an operand
    of a broadcast suggests nothing: it leaves open which lanes the new elements go to.
    """
    known = [layout for layout in operands if layout is not None]
    if not known:
        return None
    if _is_a(type(op), (ElementwiseOp,)):
        return known[0]
    rule = _RESULTS.find(type(op))
    try:
        return None if rule is None else rule(op, known[0])
    except UnsupportedLayout:
        return None


def operand_layouts(op: Operation, result: LinearLayout) -> list[LinearLayout | None]:
    """The layouts in which a flexible op takes its operands, for its result in `result`.

    None stands for an operand that is no tile. *Raises*: UnsupportedLayout where there is none.
    """
    if _is_a(type(op), (ElementwiseOp,)):
        return [result if is_tile(value) else None for value in op.operands]
    if is_source(op):
        return [None] * len(op.operands)
    rule = _OPERANDS.find(type(op))
    if rule is None:
        raise UnsupportedLayout(f"{op.name} takes its operands in a layout of their own")
    return [rule(op, result)] * len(op.operands)


@_RESULTS.register(TransOp)
def _transposed(op: TransOp, operand: LinearLayout) -> LinearLayout:
    return _permuted(operand, op.permutation())


@_RESULTS.register(ReshapeOp)
def _under_its_shape(op: ReshapeOp, operand: LinearLayout) -> LinearLayout:
    return _reshaped(operand, shape_of(op.result.type))


@_RESULTS.register(JoinOp)
def _joined(op: JoinOp, operand: LinearLayout) -> LinearLayout:
    return operand.join()


@_RESULTS.register(SplitOp)
def _split(op: SplitOp, operand: LinearLayout) -> LinearLayout:
    return operand.split()


@_OPERANDS.register(ExpandDimsOp)
def _without_new_dim(op: ExpandDimsOp, result: LinearLayout) -> LinearLayout:
    return reduced(result, op.axis.value.data)


@_OPERANDS.register(BroadcastOp)
def _before_repeats(op: BroadcastOp, result: LinearLayout) -> LinearLayout:
    return _shrunk(result, shape_of(op.src.type))


@_OPERANDS.register(TransOp)
def _transposed_back(op: TransOp, result: LinearLayout) -> LinearLayout:
    return _permuted(result, op.source_dims())


@_OPERANDS.register(ReshapeOp)
def _under_their_shape(op: ReshapeOp, result: LinearLayout) -> LinearLayout:
    return _reshaped(result, shape_of(op.src.type))


@_OPERANDS.register(JoinOp)
def _of_one_side(op: JoinOp, result: LinearLayout) -> LinearLayout:
    return reduced(result, result.rank - 1)


# A kernel has few layouts and asks the same of them again and again, along every chain of ops.


@lru_cache(maxsize=CACHED)
def reduced(layout: LinearLayout, axis: int) -> LinearLayout:
    """The layout of what a dimension is reduced to."""
    return layout.reduce(axis)[0]


@lru_cache(maxsize=CACHED)
def _shrunk(layout: LinearLayout, shape: tuple[int, ...]) -> LinearLayout:
    return layout.shrink(shape).remove_register_copies()[0]


@lru_cache(maxsize=CACHED)
def _permuted(layout: LinearLayout, order: tuple[int, ...]) -> LinearLayout:
    return layout.permute(order)


@lru_cache(maxsize=CACHED)
def _reshaped(layout: LinearLayout, shape: tuple[int, ...]) -> LinearLayout:
    return layout.reshape(shape)
