"""Carries a scalar offset instead of a pointer or index tile that a loop moves as a whole.

Why: `a_ptrs += BLOCK_K * stride` makes a tile loop-carried, so its structure (base, strides)
would be lost in a block argument and the tile would have to live in memory. After the pass the
tile is its initial value plus one carried scalar, and stays structured.

    for … iter_args(%p = %init) { … yield addptr(%p, splat %d) }
    ⇒ for … iter_args(%o = 0) { %p = addptr(%init, splat %o); … yield %o + %d }

Requires and produces T0. Runs before anything that asks for pointer structure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue

from tilewright.ir.edits import erase
from tilewright.ir.op import build
from tilewright.ir.passes import Pass
from tilewright.ir.regions import ControlFlowOp, Phi, phis_of, rebuilt
from tilewright.ir.types import (
    element_of,
    i64,
    is_integer,
    is_pointer,
    shape_of,
    tile_of,
    width_bits,
)
from tilewright.ops.creation.ir import ConstantOp, SplatOp, constant_of, splatted
from tilewright.ops.elementwise.ir import ELEMENTWISE, ExtSIOp, TruncIOp
from tilewright.ops.memory.ir import AddPtrOp
from tilewright.ops.shape.ir import BroadcastOp, ExpandDimsOp, ReshapeOp
from tilewright.support.dataclass import dataclass
from tilewright.support.worklist import needed_first

_ADD, _SUBTRACT, _MULTIPLY = (ELEMENTWISE[f"arith.{name}"] for name in ("addi", "subi", "muli"))
_SCALABLE = (_ADD, _SUBTRACT, _MULTIPLY, ExtSIOp, TruncIOp)
_SAME_VALUE = (BroadcastOp, ExpandDimsOp, ReshapeOp)


@dataclass(frozen=True)
class SplitCarriedPointers(Pass):
    """The pass; see the module."""

    name = "split-carried-pointers"
    after = ("lower-block-pointers", "lower-descriptors", "forward-invariants")

    def apply(self, module: ModuleOp) -> None:
        """Rewrite the loops of a module, inner ones first."""
        for op in tuple(_inner_first(module)):
            if isinstance(op, ControlFlowOp) and op.is_loop():
                _split_loop(op)


def _inner_first(op: Operation) -> Iterator[Operation]:
    for region in op.regions:
        for block in region.blocks:
            for inner in tuple(block.ops):
                yield from _inner_first(inner)
    yield op


def _split_loop(loop: ControlFlowOp) -> None:
    """Split every carried tile of a loop that only moves by uniform steps."""
    tiles = [tile for phi in phis_of(loop) if (tile := _carried_tile(phi)) is not None]
    if tiles:
        _rebuild(loop, tiles)


Step = tuple[Operation, SSAValue, int]


@dataclass(frozen=True)
class _CarriedTile:
    """A tile that a loop starts with, moves by `steps` and results in.

    `start` and `end` are what hands it on: the loop and the end of its body, each with the number
    of its operand.
    """

    argument: BlockArgument
    result: OpResult
    start: tuple[Operation, int]
    end: tuple[Operation, int]
    steps: list[Step]


def _carried_tile(phi: Phi) -> _CarriedTile | None:
    """The tile that a loop of one region carries, if all that happens to it is to be moved."""
    if len(phi.values) != 2 or len(phi.incoming) != 2:
        return None
    argument, result = phi.values
    start, end = phi.incoming
    if not isinstance(argument, BlockArgument) or not isinstance(result, OpResult):
        return None
    if start[0] is not result.op or end[0] is not argument.block.last_op:
        return None
    steps = _steps_of(end[0].operands[end[1]], argument)
    return None if steps is None else _CarriedTile(argument, result, start, end, steps)


def _steps_of(value: SSAValue, argument: BlockArgument) -> list[Step] | None:
    """The moves from the carried tile to the yielded one, if that is all that happens."""
    if not shape_of(value.type) or not (is_pointer(value.type) or is_integer(value.type)):
        return None
    steps: list[Step] = []
    current = value
    while current is not argument:
        op = current.op if isinstance(current, OpResult) else None
        if not isinstance(op, AddPtrOp | _ADD | _SUBTRACT):
            return None
        base, step = op.operands
        if isinstance(op, _ADD) and not _is_uniform(step):
            base, step = step, base
        if not _is_uniform(step):
            return None
        steps.append((op, step, -1 if isinstance(op, _SUBTRACT) else 1))
        current = base
    return steps or None


def _is_uniform(value: SSAValue) -> bool:
    """Whether all elements of a tile are one scalar that can be computed as such."""
    pending, seen = [value], {value}
    while pending:
        value = pending.pop()
        op = value.owner
        if splatted(value) is not None or constant_of(value) is not None:
            continue
        if not isinstance(op, (*_SAME_VALUE, *_SCALABLE)):
            return False
        new = [operand for operand in op.operands if operand not in seen]
        pending += new
        seen.update(new)
    return True


def _rebuild(loop: ControlFlowOp, tiles: Sequence[_CarriedTile]) -> None:
    """Replace the split tiles by scalars in the loop's operands, arguments and results."""
    operands = list(loop.operands)
    types: list[Attribute] = list(loop.result_types)
    for tile in tiles:
        number = tile.start[1]
        initial = loop.operands[number]
        kind = _offset_type(initial)
        operands[number], types[tile.result.index] = _zero(loop, kind), kind
        block, position = tile.argument.block, tile.argument.index
        offset = block.insert_arg(kind, position + 1)
        _carry(tile, offset)
        first = block.first_op
        assert first is not None
        tile.argument.replace_all_uses_with(_moved(block, first, initial, offset))
        block.erase_arg(tile.argument)
    new = rebuilt(loop, operands, types)
    starts = {tile.result: loop.operands[tile.start[1]] for tile in tiles}
    for old, result in zip(loop.results, new.results, strict=True):
        _replace_result(old, result, starts.get(old))
    erase(loop)


def _zero(loop: Operation, kind: Attribute) -> SSAValue:
    zero = build(ConstantOp, (), (kind,), {"value": IntegerAttr(0, kind)}, (), loop.location)  # pyright: ignore[reportArgumentType, reportCallIssue]
    assert loop.parent is not None
    loop.parent.insert_op_before(zero, loop)
    return zero.results[0]


def _replace_result(old: OpResult, new: OpResult, start: SSAValue | None) -> None:
    """Let the users of a loop's old result have the new one, by which a tile has moved."""
    if start is None:
        old.replace_all_uses_with(new)
    elif old.first_use is not None:
        block, behind = new.op.parent, new.op.next_op
        assert block is not None and behind is not None
        old.replace_all_uses_with(_moved(block, behind, start, new))


def _offset_type(tile: SSAValue) -> Attribute:
    return i64 if is_pointer(tile.type) else element_of(tile.type)


def _moved(block: Block, before: Operation, tile: SSAValue, offset: SSAValue) -> SSAValue:
    """`tile` plus a scalar offset, inserted before an op."""
    type_ = tile_of(offset.type, shape_of(tile.type))
    splat = build(SplatOp, (offset,), (type_,), location=before.location)
    cls = AddPtrOp if is_pointer(tile.type) else _ADD
    moved = build(cls, (tile, splat.results[0]), (tile.type,), location=before.location)
    block.insert_op_before(splat, before)
    block.insert_op_before(moved, before)
    return moved.results[0]


def _carry(tile: _CarriedTile, offset: SSAValue) -> None:
    """Yield the offset plus all steps in place of the moved tile."""
    terminator, number = tile.end
    block = terminator.parent
    assert block is not None
    total = offset
    for _, step, sign in reversed(tile.steps):
        scalar = _scalar(block, terminator, step)
        if width_bits(scalar.type) < width_bits(offset.type):
            scalar = _insert(block, terminator, ExtSIOp, (scalar,), offset.type)
        cls = _ADD if sign > 0 else _SUBTRACT
        total = _insert(block, terminator, cls, (total, scalar), offset.type)
    terminator.operands[number] = total


def _insert(
    block: Block,
    before: Operation,
    cls: type[Operation],
    operands: tuple[SSAValue, ...],
    type_: Attribute,
) -> SSAValue:
    op = build(cls, operands, (type_,), location=before.location)
    block.insert_op_before(op, before)
    return op.results[0]


def _scalar(block: Block, before: Operation, tile: SSAValue) -> SSAValue:
    """The one scalar that a uniform tile holds."""
    made: dict[SSAValue, SSAValue] = {}
    for needed in needed_first(tile, _tile_operands, made.__contains__):
        made[needed] = _make_scalar(block, before, needed, made)
    return made[tile]


def _tile_operands(value: SSAValue) -> list[SSAValue]:
    assert isinstance(value, OpResult)
    return [operand for operand in value.op.operands if shape_of(operand.type)]


def _make_scalar(
    block: Block, before: Operation, tile: SSAValue, made: dict[SSAValue, SSAValue]
) -> SSAValue:
    assert isinstance(tile, OpResult)
    op = tile.op
    scalar = splatted(tile)
    if scalar is not None:
        return scalar
    if isinstance(op, _SAME_VALUE):
        return made[op.operands[0]]
    kind = element_of(tile.type)
    number = constant_of(tile)
    if number is not None:
        value = IntegerAttr(int(number), kind)  # pyright: ignore[reportArgumentType, reportCallIssue]
        constant = build(ConstantOp, (), (kind,), {"value": value}, location=before.location)
        block.insert_op_before(constant, before)
        return constant.results[0]
    operands = tuple(made[operand] for operand in op.operands)
    return _insert(block, before, type(op), operands, kind)
