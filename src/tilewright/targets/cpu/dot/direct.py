"""Where a product that is part of a direct store writes, and the store itself.

A step of the loop writes to the sum's own place, the last one to the user's memory where all this
holds: rows of the result do not overlap, they are apart from the rows of A and of B that this step
reads, and the store's mask hides whole rows and columns at the ends of the tile, not all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i64
from xdsl.ir import Block, SSAValue

from tilewright.ir.op import build
from tilewright.ir.types import (
    PointerType,
    element_of,
    i1,
    i32,
    pointer_to,
    shape_of,
    storage_bytes,
)
from tilewright.ops.control_flow import ForOp, YieldOp
from tilewright.ops.elementwise.ir import ELEMENTWISE, PtrToIntOp
from tilewright.ops.matmul.ir import DotOp
from tilewright.support.dataclass import dataclass
from tilewright.targets.cpu import ops as cpu
from tilewright.targets.cpu.nests import nest
from tilewright.targets.cpu.nests.coordinates import constant_coords
from tilewright.targets.cpu.nests.emitter import Emitter
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.masks import segments
from tilewright.targets.cpu.nests.prefixes import exact_extents
from tilewright.targets.cpu.nests.recompute import can_recompute, with_scalars_of
from tilewright.targets.cpu.nests.separation import polynomial
from tilewright.targets.cpu.schedule.block_steps import Step
from tilewright.targets.cpu.schedule.lowering import DirectStore, Limits, Lowering
from tilewright.targets.cpu.schedule.storage import Buffer


@dataclass(frozen=True)
class Matrix:
    """Rows in memory: where they start, the elements between them, how many, how long."""

    base: SSAValue
    stride: SSAValue
    rows: SSAValue
    columns: SSAValue

    @property
    def element_bytes(self) -> int:
        """Bytes of an element."""
        assert isinstance(self.base.type, PointerType)
        return storage_bytes(self.base.type.pointee)


def begin(lowering: Lowering, out: Block, direct: DirectStore) -> None:
    """Before the loops: nothing is stored yet."""
    flag = lowering.allocate((1,), i32, "stored")
    lowering.flags[direct] = flag
    emit = Emitter(out, direct.store.location)
    emit.effect(cpu.StoreOp, (flag.base, emit.constant(i32, 0)))


def finish(lowering: Lowering, out: Block, direct: DirectStore, step: Step) -> None:
    """In the place of the store: do it if no product has, with zeros if there was none."""
    emit = Emitter(out, direct.store.location)
    flag = emit.effect(
        cpu.LoadOp, (lowering.flags[direct].base,), (i32,), segments(1, 0, 0)
    ).results[0]
    is_stored = emit.compare("ne", flag, emit.constant(i32, 0))
    storing, filling = Block(), Block()
    nest.emit_nest(lowering, filling, [direct.fill], is_rare=True)
    inner = Emitter(storing, direct.store.location)
    is_empty = _are_empty(lowering, inner, direct.loops)
    inner.choose(is_empty, (_closed(filling, direct), _closed(Block(), direct)))
    nest.emit_nest(lowering, storing, step.roots, is_rare=True)
    emit.choose(is_stored, (_closed(Block(), direct), _closed(storing, direct)))


def _closed(block: Block, direct: DirectStore) -> Block:
    block.add_op(build(YieldOp, location=direct.store.location))
    return block


def _are_empty(lowering: Lowering, emit: Emitter, loops: Sequence[ForOp]) -> SSAValue:
    """An i1: none of some loops has a step; see `_have_known_bounds`."""
    total = emit.constant(i1, 1)
    for loop in loops:
        # Bounds of a loop that comes later may be computed between the loops.
        low, high = (
            with_scalars_of(lowering, emit, bound).lowering.scalar(bound)
            for bound in (loop.lb, loop.ub)
        )
        total = emit.integer("andi", emit.compare("sge", low, high), total)
    return total


def _have_known_bounds(lowering: Lowering, loops: Sequence[ForOp]) -> bool:
    """Whether the first and last number of some loops can be told here."""
    return all(can_recompute(lowering, bound) for loop in loops for bound in (loop.lb, loop.ub))


def redirection(
    lowering: Lowering,
    emit: Emitter,
    op: DotOp,
    operands: tuple[tuple[SSAValue, SSAValue], tuple[SSAValue, SSAValue]],
    limits: Limits,
) -> tuple[SSAValue, ...]:
    """Where a product writes its sum, the stride there, and whether it is the first.

    `operands`: addresses and strides of A and B as they are read now.
    """
    here = lowering.buffer(op.result)
    stride = emit.constant(i64, here.row_stride)
    is_first = _is_first(lowering, emit, op)
    found = _last_store(lowering, emit, op, _operands(operands, limits), limits)
    if found is None:
        return here.base, stride, is_first
    place, is_last = found
    select = ELEMENTWISE["arith.select"]
    target = emit.pure(select, (is_last, place.base, here.base), here.base.type)
    return target, emit.pure(select, (is_last, place.stride, stride), i64), is_first


def amx_redirection(
    lowering: Lowering,
    emit: Emitter,
    op: DotOp,
    a: SSAValue,
    a_stride: Sequence[SSAValue],
    limits: Limits,
) -> tuple[SSAValue, ...]:
    """The same on AMX, and whether the sum goes there, rounded to the type there.

    B is packed before, and A, where it has no stride.
    """
    here = lowering.buffer(op.result)
    read = [Matrix(a, stride, limits.rows, limits.depth) for stride in a_stride]
    is_first = _is_first(lowering, emit, op)
    found = _last_store(lowering, emit, op, read, limits)
    if found is None:
        stride = emit.constant(i64, here.row_stride)
        return here.base, stride, is_first, emit.constant(i1, 0)
    place, is_last = found
    return place.base, place.stride, is_first, is_last


def _is_first(lowering: Lowering, emit: Emitter, op: DotOp) -> SSAValue:
    """An i1: nothing was added up before a product."""
    direct = lowering.direct[op]
    number = direct.products.index(op)
    loop = direct.loops[number]
    variable, low = (emit.widen(lowering.scalar(v)) for v in (loop.body.block.args[0], loop.lb))
    before = _are_empty(lowering, emit, direct.loops[:number])
    return emit.integer("andi", emit.compare("eq", variable, low), before)


def _last_store(
    lowering: Lowering, emit: Emitter, op: DotOp, read: Sequence[Matrix], limits: Limits
) -> tuple[Matrix, SSAValue] | None:
    """Where the program wants a sum, and an i1: this product stores it there, as is noted.

    `read`: what the product reads meanwhile. None where the place cannot be known yet.
    """
    direct = lowering.direct[op]
    number = direct.products.index(op)
    loop = direct.loops[number]
    if not _have_known_bounds(lowering, direct.loops[number + 1 :]):
        return None
    result = _result(lowering, emit, direct, lowering.buffer(op.result))
    if result is None:
        return None
    place, is_shown = result
    for extent, seen in ((place.rows, limits.rows), (place.columns, limits.columns)):
        is_shown = emit.integer("andi", emit.compare("eq", extent, seen), is_shown)
    variable, high, step = (
        emit.widen(lowering.scalar(v)) for v in (loop.body.block.args[0], loop.ub, loop.step)
    )
    is_last = emit.compare("sge", emit.integer("addi", variable, step), high)
    later = _are_empty(lowering, emit, direct.loops[number + 1 :])
    is_last = emit.integer("andi", emit.integer("andi", is_last, later), is_shown)
    for matrix in read:
        is_last = emit.integer("andi", is_last, _are_apart(emit, place, matrix))
    emit.effect(cpu.StoreOp, (lowering.flags[direct].base, _as_i32(emit, is_last)))
    return place, is_last


def _as_i32(emit: Emitter, flag: SSAValue) -> SSAValue:
    ones = (flag, emit.constant(i32, 1), emit.constant(i32, 0))
    return emit.pure(ELEMENTWISE["arith.select"], ones, i32)


def _result(
    lowering: Lowering, emit: Emitter, direct: DirectStore, here: Buffer
) -> tuple[Matrix, SSAValue] | None:
    """Where the store writes, and an i1: a product may write there what the mask shows.

    None where that cannot be known yet.
    """
    store = direct.store
    tiles = (store.ptr,) if store.mask is None else (store.ptr, store.mask)
    if not all(can_recompute(lowering, tile) for tile in tiles):
        return None
    ev = with_scalars_of(lowering, emit, store.ptr)
    base = ev.element(store.ptr, constant_coords((0, 0)), False)
    stored = element_of(store.value.type)
    is_rounded = stored != element_of(direct.products[0].result.type)
    if base.type != (pointer_to(stored) if is_rounded else here.base.type):
        return None
    pitch = _pitch(ev, store.ptr)
    if pitch is None:
        return None
    rows, columns = (emit.constant(i64, size) for size in shape_of(store.ptr.type))
    is_shown = emit.constant(i1, 1)
    if store.mask is not None:
        ev = with_scalars_of(lowering, emit, store.mask)
        comparisons = exact_extents(ev, store.mask)
        if comparisons is None:
            return None
        sizes = [rows, columns]
        for dim, found in comparisons.items():
            for comparison in found:
                extent = comparison.extent(ev)
                some = emit.compare("sgt", extent, emit.constant(i64, 0))
                fits = comparison.fits(ev, shape_of(store.ptr.type)[dim])
                is_shown = emit.integer("andi", emit.integer("andi", some, fits), is_shown)
                sizes[dim] = emit.integer("minsi", sizes[dim], extent)
        rows, columns = sizes
    # Rows that overlap are written in the order of the store.
    is_shown = emit.integer("andi", emit.compare("sge", pitch, columns), is_shown)
    return Matrix(base, pitch, rows, columns), is_shown


def _pitch(ev: Evaluator, ptr: SSAValue) -> SSAValue | None:
    """The elements between the rows of a pointer tile, where its factors are known."""
    pitch = ev.lowering.bufferization.structure.strides(ptr)[0]
    assert pitch is not None
    known = ev.lowering.scalars
    if any(factor not in known for _, factors in pitch.terms for factor in factors):
        return None
    return polynomial(ev, pitch)


def _operands(
    operands: tuple[tuple[SSAValue, SSAValue], tuple[SSAValue, SSAValue]], limits: Limits
) -> tuple[Matrix, Matrix]:
    """The rows that a product reads."""
    (a, a_stride), (b, b_stride) = operands
    left = Matrix(a, a_stride, limits.rows, limits.depth)
    return left, Matrix(b, b_stride, limits.depth, limits.columns)


def _are_apart(emit: Emitter, place: Matrix, other: Matrix) -> SSAValue:
    """An i1: two matrices share no byte."""
    (low, high), (start, end) = (_range(emit, each) for each in (place, other))
    before, after = emit.compare("sle", high, start), emit.compare("sle", end, low)
    return emit.integer("ori", before, after)


def _range(emit: Emitter, matrix: Matrix) -> tuple[SSAValue, SSAValue]:
    """The byte addresses [low, high) that rows cover."""
    size, zero = emit.constant(i64, matrix.element_bytes), emit.constant(i64, 0)
    last = emit.integer("subi", matrix.rows, emit.constant(i64, 1))
    span = emit.integer("muli", emit.integer("muli", last, matrix.stride), size)
    base = emit.pure(PtrToIntOp, (matrix.base,), i64)
    low = emit.integer("addi", base, emit.integer("minsi", span, zero))
    high = emit.integer("addi", base, emit.integer("maxsi", span, zero))
    return low, emit.integer("addi", high, emit.integer("muli", matrix.columns, size))
