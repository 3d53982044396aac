"""Carries a scalar offset instead of a pointer or index tile that a loop moves as a whole.

Why: `a_ptrs += BLOCK_K * stride` makes a tile loop-carried, so its structure (base, strides)
would be lost in a block argument and the tile would have to live in memory. After the pass the
tile is its initial value plus one carried scalar, and stays structured.

    for … iter_args(%p = %init) { … yield addptr(%p, splat %d) }
    ⇒ for … iter_args(%o = 0) { %p = addptr(%init, splat %o); … yield %o + %d }

Requires and produces T0. Runs before anything that asks for pointer structure.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue

from tilewright.ir.op import build
from tilewright.ir.passes import Pass
from tilewright.ir.regions import rebuilt
from tilewright.ir.types import (
    element_of,
    i64,
    is_integer,
    is_pointer,
    shape_of,
    tile_of,
    width_bits,
)
from tilewright.ops.control_flow import ForOp
from tilewright.ops.creation.ir import ConstantOp, SplatOp
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
            if isinstance(op, ForOp):
                _split_loop(op)


def _inner_first(op: Operation) -> Iterator[Operation]:
    for region in op.regions:
        for block in region.blocks:
            for inner in tuple(block.ops):
                yield from _inner_first(inner)
    yield op


def _split_loop(loop: ForOp) -> None:
    """Split every carried tile of a loop that only moves by uniform steps."""
    body = loop.body.block
    terminator = body.last_op
    assert terminator is not None
    steps = {
        index: found
        for index, value in enumerate(terminator.operands)
        if (found := _steps_of(value, body.args[index + 1])) is not None
    }
    if steps:
        _rebuild(loop, steps, terminator)


Step = tuple[Operation, SSAValue, int]


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
        op = pending.pop().owner
        if isinstance(op, SplatOp | ConstantOp):
            continue
        if not isinstance(op, (*_SAME_VALUE, *_SCALABLE)):
            return False
        new = [operand for operand in op.operands if operand not in seen]
        pending += new
        seen.update(new)
    return True


def _rebuild(loop: ForOp, steps: dict[int, list[Step]], terminator: Operation) -> None:
    """Replace the split tiles by scalars in the loop's operands, arguments and results."""
    body = loop.body.block
    parent = loop.parent
    assert parent is not None
    initial = dict(enumerate(loop.operands[3:]))
    operands = list(loop.operands)
    kinds: list[Attribute] = [result.type for result in loop.results]
    for index, moves in steps.items():
        kind = _offset_type(initial[index])
        zero = build(ConstantOp, (), (kind,), {"value": IntegerAttr(0, kind)})  # pyright: ignore[reportArgumentType, reportCallIssue]
        zero.location = loop.location
        parent.insert_op_before(zero, loop)
        operands[index + 3], kinds[index] = zero.results[0], kind
        offset = body.insert_arg(kind, index + 1)
        old = body.args[index + 2]
        _carry(terminator, index, moves, offset)
        first = body.first_op
        assert first is not None
        moved = _moved(body, first, initial[index], offset)
        old.replace_all_uses_with(moved)
        body.erase_arg(old)
    new = rebuilt(loop, operands, kinds)
    _replace_results(loop, new, steps, initial)
    loop.detach()
    loop.erase()


def _replace_results(
    loop: ForOp, new: Operation, steps: dict[int, list[Step]], initial: dict[int, SSAValue]
) -> None:
    block = new.parent
    assert block is not None
    for index, (old, result) in enumerate(zip(loop.results, new.results, strict=True)):
        if index in steps and old.first_use is not None:
            assert new.next_op is not None
            old.replace_all_uses_with(_moved(block, new.next_op, initial[index], result))
        elif index not in steps:
            old.replace_all_uses_with(result)


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


def _carry(terminator: Operation, index: int, moves: list[Step], offset: SSAValue) -> None:
    """Yield the offset plus all steps in place of the moved tile."""
    block = terminator.parent
    assert block is not None
    total = offset
    for _, step, sign in reversed(moves):
        scalar = _scalar(block, terminator, step)
        if width_bits(scalar.type) < width_bits(offset.type):
            scalar = _insert(block, terminator, ExtSIOp, (scalar,), offset.type)
        cls = _ADD if sign > 0 else _SUBTRACT
        total = _insert(block, terminator, cls, (total, scalar), offset.type)
    terminator.operands[index] = total


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
    if isinstance(op, (SplatOp, *_SAME_VALUE)):
        return made.get(op.operands[0], op.operands[0])
    kind = element_of(tile.type)
    if isinstance(op, ConstantOp):
        value = IntegerAttr(int(op.splat_value()), kind)  # pyright: ignore[reportArgumentType, reportCallIssue]
        constant = build(ConstantOp, (), (kind,), {"value": value}, location=before.location)
        block.insert_op_before(constant, before)
        return constant.results[0]
    operands = tuple(made[operand] for operand in op.operands)
    return _insert(block, before, type(op), operands, kind)
