"""Tiles out of nothing, tiles under another shape: ops that compute no element."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation, SSAValue

from tilewright.codegen.llvm_types import constant_text, llvm_type
from tilewright.codegen.rules.control import emit_for, emit_if, emit_terminator, emit_while
from tilewright.codegen.simt.context import SimtContext, element_type
from tilewright.codegen.simt.rules import SIMT_RULES
from tilewright.ir.encoding import has_layout, layout_of
from tilewright.ir.types import shape_of
from tilewright.layout.linear import LinearLayout
from tilewright.ops.control_flow import ConditionOp, ForOp, IfOp, WhileOp, YieldOp
from tilewright.ops.creation.ir import ConstantOp, MakeRangeOp, SplatOp, UnsplatOp
from tilewright.ops.debug.ir import AssumeOp, HintOp
from tilewright.ops.function import ReturnOp
from tilewright.ops.program.ir import GetGridExtentOp, GetNumProgramsOp, GetProgramIdOp
from tilewright.ops.shape.ir import (
    BroadcastOp,
    ExpandDimsOp,
    JoinOp,
    ReshapeOp,
    SplitOp,
    TransOp,
)
from tilewright.support.errors import InternalError

Coordinates = tuple[int, ...]

SIMT_RULES.register(ForOp)(emit_for)
SIMT_RULES.register(WhileOp)(emit_while)
SIMT_RULES.register(IfOp)(emit_if)
SIMT_RULES.register(YieldOp, ConditionOp)(emit_terminator)


def registers_at(
    source: LinearLayout, target: LinearLayout, origin: Callable[[Coordinates], Coordinates]
) -> tuple[int, ...]:
    """For each register of `target` the register of `source` that holds `origin(coordinates)`.

    The layouts fit where the op maps the one to the other, so what holds in lane 0 of warp 0
    holds in every thread. *Raises* InternalError where an element is in another thread.
    """
    places = {at: index for index, at in reversed(list(enumerate(source.register_offsets())))}
    try:
        return tuple(places[origin(at)] for at in target.register_offsets())
    except KeyError as error:
        raise InternalError(f"an element of {target} is in another thread of {source}") from error


def move_registers(
    ctx: SimtContext,
    source: SSAValue,
    result: SSAValue,
    origin: Callable[[Coordinates], Coordinates],
) -> None:
    """Name the registers of `result` by those of `source` that hold the same elements."""
    names = ctx.registers(source)
    moves = registers_at(layout_of(source.type), layout_of(result.type), origin)
    ctx.define_tile(result, [names[index] for index in moves])


@SIMT_RULES.register(ReturnOp)
def _return(ctx: SimtContext, op: ReturnOp) -> None:
    ctx.fn.emit("ret void")


@SIMT_RULES.register(GetProgramIdOp)
def _program_id(ctx: SimtContext, op: GetProgramIdOp) -> None:
    ctx.define(op, ctx.target.program_id(ctx.fn, op.axis.value.data))


@SIMT_RULES.register(GetNumProgramsOp)
def _num_programs(ctx: SimtContext, op: GetNumProgramsOp) -> None:
    ctx.define(op, ctx.target.num_programs(ctx.fn, op.axis.value.data))


@SIMT_RULES.register(GetGridExtentOp)
def _grid_extent(ctx: SimtContext, op: GetGridExtentOp) -> None:
    ctx.define(op, ctx.target.grid_extent(op.axis.value.data))


@SIMT_RULES.register(ConstantOp)
def _constant(ctx: SimtContext, op: ConstantOp) -> None:
    text = constant_text(op.splat_value(), element_type(op.result.type))
    count = len(ctx.part_types(op.result.type))
    ctx.define_tile(op.result, [text] * count)


@SIMT_RULES.register(AssumeOp)
def _assume(ctx: SimtContext, op: AssumeOp) -> None:
    ctx.fn.emit(f"call void @llvm.assume(i1 {ctx.value(op.operands[0])})")


@SIMT_RULES.register(HintOp)
def _hint(ctx: SimtContext, op: HintOp) -> None:
    ctx.define_tile(op.results[0], ctx.registers(op.src))


@SIMT_RULES.register(SplatOp)
def _splat(ctx: SimtContext, op: SplatOp) -> None:
    count = layout_of(op.result.type).num_registers
    ctx.define_tile(op.result, [ctx.value(op.src)] * count)


@SIMT_RULES.register(UnsplatOp)
def _unsplat(ctx: SimtContext, op: UnsplatOp) -> None:
    ctx.define(op, ctx.registers(op.src)[0])


@SIMT_RULES.register(MakeRangeOp)
def _make_range(ctx: SimtContext, op: MakeRangeOp) -> None:
    layout = layout_of(op.result.type)
    start = op.start.value.data
    base = coordinate(ctx, layout, 0)
    names = []
    for (offset,) in layout.register_offsets():
        name = add_offset(ctx, base, offset + start)
        if name != base and base != "0":
            ctx.affine[name] = (base, offset + start)
        names.append(name)
    ctx.define_tile(op.result, names)


def coordinate(ctx: SimtContext, layout: LinearLayout, dim: int) -> str:
    """The coordinate along `dim` of register 0 of this thread, i32."""
    lane = [basis[dim] for basis in layout.basis_images("lane")]
    warp = [basis[dim] for basis in layout.basis_images("warp")]
    return ctx.index.linear(ctx.fn, lane, warp)


def add_offset(ctx: SimtContext, base: str, offset: int) -> str:
    """A coordinate with the offset of a register, i32."""
    if offset == 0:
        return base
    if base == "0":
        return str(offset)
    return ctx.fn.value(f"add nsw i32 {base}, {offset}")


@SIMT_RULES.register(ExpandDimsOp)
def _expand_dims(ctx: SimtContext, op: ExpandDimsOp) -> None:
    axis = op.axis.value.data
    move_registers(ctx, op.src, op.result, lambda at: at[:axis] + at[axis + 1 :])


@SIMT_RULES.register(BroadcastOp)
def _broadcast(ctx: SimtContext, op: BroadcastOp) -> None:
    shape = shape_of(op.src.type)
    move_registers(
        ctx,
        op.src,
        op.result,
        lambda at: tuple(0 if extent == 1 else i for i, extent in zip(at, shape, strict=True)),
    )


@SIMT_RULES.register(TransOp)
def _trans(ctx: SimtContext, op: TransOp) -> None:
    order = op.permutation()
    inverse = tuple(order.index(dim) for dim in range(len(order)))
    move_registers(ctx, op.src, op.result, lambda at: tuple(at[d] for d in inverse))


@SIMT_RULES.register(ReshapeOp)
def _reshape(ctx: SimtContext, op: ReshapeOp) -> None:
    source, target = shape_of(op.src.type), shape_of(op.result.type)
    move_registers(ctx, op.src, op.result, lambda at: unflatten(flatten(at, target), source))


def flatten(at: Coordinates, shape: Coordinates) -> int:
    """The row-major index of coordinates."""
    index = 0
    for position, extent in zip(at, shape, strict=True):
        index = index * extent + position
    return index


def unflatten(index: int, shape: Coordinates) -> Coordinates:
    """The coordinates of a row-major index."""
    at: list[int] = []
    for extent in reversed(shape):
        at.append(index % extent)
        index //= extent
    return tuple(reversed(at))


@SIMT_RULES.register(JoinOp)
def _join(ctx: SimtContext, op: JoinOp) -> None:
    sides = (ctx.registers(op.lhs), ctx.registers(op.rhs))
    source, target = layout_of(op.lhs.type), layout_of(op.result.type)
    moves = registers_at(source, target, lambda at: at[:-1])
    last = [at[-1] for at in target.register_offsets()]
    rows = zip(moves, last, strict=True)
    # The side is the exclusive or of what the register and the thread say.
    thread = coordinate(ctx, target, target.rank - 1)
    if thread == "0":
        ctx.define_tile(op.result, [sides[side][index] for index, side in rows])
        return
    kind = llvm_type(element_type(op.lhs.type))
    is_second = ctx.fn.value(f"icmp ne i32 {thread}, 0")
    names = []
    for index, side in rows:
        first, second = sides[side][index], sides[1 - side][index]
        names.append(ctx.fn.value(f"select i1 {is_second}, {kind} {second}, {kind} {first}"))
    ctx.define_tile(op.result, names)


@SIMT_RULES.register(SplitOp)
def _split(ctx: SimtContext, op: SplitOp) -> None:
    for side, result in enumerate(op.results):
        _take_side(ctx, op, result, side)


def _take_side(ctx: SimtContext, op: Operation, result: SSAValue, side: int) -> None:
    source = op.operands[0]
    if has_layout(result.type):
        move_registers(ctx, source, result, lambda at: (*at, side))
        return
    offsets = layout_of(source.type).register_offsets()
    ctx.define_tile(result, [ctx.registers(source)[offsets.index((side,))]])
