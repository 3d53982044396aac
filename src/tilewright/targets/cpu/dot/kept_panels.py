"""Panels of B that stay packed from one program to the next.

    program (m, n)                         program (m + 1, n), the next of this thread
    for k: pack b[k, n] to slot k          for k: slot k's tag says b[k, n]: nothing to pack
           multiply                               multiply

Programs run in ascending order, and neighbours mostly have the same columns of the result: rows
come first in a grid of two axes, and inside of groups of rows. A tag is where a tile begins, how
far its rows lie apart, and how much of it there is; a tile that is in no such piece is not kept.
Steps beyond the slots share
the last one. A thread forgets its tags when it begins a launch, and uses one slot for all steps
until a program begins with the tile of the one before.

*Why it is right.* What is kept was in memory when a program of this launch read it, and nothing
that this program wrote is there: its product stands in front of all that it writes. Programs that
nothing orders may each find what was there before the other; what orders them, atomics and reads
that are volatile, is in no kernel that keeps panels.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block, Operation, SSAValue

from tilewright.ir.effects import Access, Resource, effects_of
from tilewright.ir.op import build
from tilewright.ir.types import storage_bytes
from tilewright.ops.control_flow import ForOp, YieldOp
from tilewright.ops.elementwise.ir import ELEMENTWISE, PtrToIntOp
from tilewright.ops.function import FuncOp, function_around
from tilewright.support.dataclass import dataclass
from tilewright.targets.cpu import ops as cpu
from tilewright.targets.cpu.launch_ops import ForgetOp
from tilewright.targets.cpu.nests.emitter import Emitter
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.masks import NO_MASK
from tilewright.targets.cpu.schedule.bufferization import PackForm
from tilewright.targets.cpu.schedule.inline import owner
from tilewright.targets.cpu.schedule.lowering import Lowering
from tilewright.targets.cpu.schedule.storage import Buffer

MAX_SLOTS = 64
"""Steps of a loop that are kept.

Chosen, not measured: it bounds the tags, not the panels."""

L2_SIZES = 2
"""The panels take so many times the second-level cache, at most.

Measured on a Xeon with AMX and 2 MiB of it, 2026-11-28, one thread, bf16 4096³, tiles of 128x256x64
in groups of 8 rows: 195 ms with half of it, 170 with twice; from the third-level cache, too, they
come faster than they are packed."""

# By definition: where a tile begins, how far its rows lie apart, and how much of it there is.
_TAG_WORDS = 3
# By definition: four of them fit in a word.
_EXTENT_BITS = 15


@dataclass(frozen=True)
class Slot:
    """Where a tile is kept, and its tag: its address and its stride, i64.

    `is_used` (i1): a program of this thread has begun where the one before it did; None where a
    tile is the only one.
    """

    panels: Buffer
    tag: SSAValue
    is_used: SSAValue | None = None


def is_in_loop(form: PackForm) -> bool:
    """Whether an operand is loaded in the steps of a loop."""
    load = owner(form.value)
    return load is not None and isinstance(load.parent_op(), ForOp)


def slot_of(
    ev: Evaluator, form: PackForm, source: SSAValue, shape: tuple[int, int], count: int
) -> Slot | None:
    """The slot of the tile at `source`, `count` elements in panels; None where none is kept."""
    load = owner(form.value)
    if load is None or not _stays(load) or max(shape) >= 1 << _EXTENT_BITS:
        return None
    lowering, emit, loop = ev.lowering, ev.emit, load.parent_op()
    room = L2_SIZES * lowering.machine.l2_bytes - _taken(lowering)
    slots = min(max(0, room) // (count * storage_bytes(form.element)), MAX_SLOTS)
    if not isinstance(loop, ForOp):
        slots = min(slots, 1)
    if slots == 0:
        return None
    lowering.kept.add(form)
    panels = lowering.allocate((slots, count), form.element, "kept b", is_kept=True)
    tags = lowering.allocate((slots + 1, _TAG_WORDS), i64, "tags of kept b", is_kept=True)
    _forget_at_launch(lowering, tags, load)
    if not isinstance(loop, ForOp):
        return Slot(Buffer(panels.base, shape, form.element), tags.base)
    state = emit.advance(tags.base, slots * _TAG_WORDS)
    number, last = _number(ev, loop, emit.pure(PtrToIntOp, (source,), i64), state, slots)
    place, tag = (
        emit.advance(buffer.base, emit.integer("muli", number, emit.constant(i64, size)))
        for buffer, size in ((panels, count), (tags, _TAG_WORDS))
    )
    is_used = emit.compare("ne", last, emit.constant(i64, 0))
    return Slot(Buffer(place, shape, form.element), tag, is_used)


def _forget_at_launch(lowering: Lowering, tags: Buffer, load: Operation) -> None:
    """Have a thread's first program of a launch fill the tags with zeros."""
    made, length = tags.base.owner, IntegerAttr(prod(tags.shape), i64)
    assert isinstance(made, Operation)
    forgotten = build(ForgetOp, (tags.base,), (), {"num_elems": length}, location=load.location)
    lowering.entry.insert_op_after(forgotten, made)


def pack_unless_kept(
    emit: Emitter,
    slot: Slot,
    source: tuple[SSAValue, SSAValue],
    packing: Block,
    there: Sequence[SSAValue] = (),
) -> None:
    """Append a choice: the tile at `source`, its address and stride, is there, or it is packed.

    `packing` is the block that packs it, without an end; `there` what `cpu.pack` is told of how
    much of it there is.
    """
    address = emit.pure(PtrToIntOp, (source[0],), i64)
    words = address, emit.widen(source[1]), _extent_word(emit, there)
    places = slot.tag, *(emit.advance(slot.tag, word) for word in range(1, _TAG_WORDS))
    same = [emit.compare("eq", _word(emit, at), new) for at, new in zip(places, words, strict=True)]
    inner = Emitter(packing, emit.location)
    for at, word in zip(places, words, strict=True):
        inner.effect(cpu.StoreOp, (at, word))
    inner.effect(YieldOp, ())
    nothing = Block([build(YieldOp, location=emit.location)])
    is_same = emit.integer("andi", emit.integer("andi", same[0], same[1]), same[2])
    emit.choose(is_same, (nothing, packing))


def _extent_word(emit: Emitter, there: Sequence[SSAValue]) -> SSAValue:
    """Some extents in one word; 0 for all of a tile."""
    word = emit.constant(i64, 0)
    for extent in there:
        above = emit.integer("muli", word, emit.constant(i64, 1 << _EXTENT_BITS))
        word = emit.integer("addi", above, extent)
    return word


def forget(emit: Emitter, slot: Slot) -> None:
    """Say that a slot holds no tile that is kept."""
    emit.effect(cpu.StoreOp, (slot.tag, emit.constant(i64, 0)))


def _taken(lowering: Lowering) -> int:
    """The bytes that are kept already."""
    kept = [op for op in lowering.entry.ops if isinstance(op, cpu.AllocOp) and op.kept is not None]
    return sum(cpu.allocated_bytes(op) for op in kept)


def _number(
    ev: Evaluator, loop: ForOp, address: SSAValue, state: SSAValue, slots: int
) -> tuple[SSAValue, SSAValue]:
    """The slot of a step, its number or the last one, and which is the last: 0 until tiles have
    come again. Both are i64.

    `state` holds where the tile of the last program's first step was, and whether a program of this
    thread has begun where the one before it did. Where none has, all steps share a slot that stays
    in the cache.
    """
    emit, zero = ev.emit, ev.emit.constant(i64, 0)
    first, now, step = (
        emit.widen(ev.lowering.scalar(value))
        for value in (loop.lb, loop.body.block.args[0], loop.step)
    )
    number = emit.integer("divui", emit.integer("subi", now, first), step)
    is_first = emit.compare("eq", number, zero)
    places = state, emit.advance(state, 1)
    before, last = (_word(emit, place) for place in places)
    select = ELEMENTWISE["arith.select"]
    comes_again = emit.integer("andi", is_first, emit.compare("eq", before, address))
    last = emit.pure(select, (comes_again, emit.constant(i64, slots - 1), last), i64)
    words = emit.pure(select, (is_first, address, before), i64), last
    for place, word in zip(places, words, strict=True):
        emit.effect(cpu.StoreOp, (place, word))
    return emit.integer("minui", number, last), last


def _word(emit: Emitter, place: SSAValue) -> SSAValue:
    return emit.effect(cpu.LoadOp, (place,), (i64,), NO_MASK).results[0]


def _stays(load: Operation) -> bool:
    """Whether no program that reads what `load` does, once, can tell when it was read."""
    kernel = function_around(load)
    anchor = load if load.parent is kernel.body.block else load.parent_op()
    if anchor is None or anchor.parent is not kernel.body.block:
        return False
    if anchor is not load and not isinstance(anchor, ForOp):
        return False
    return not _is_ordered(kernel) and not _writes_until(kernel, anchor)


def _is_ordered(kernel: FuncOp) -> bool:
    """Whether programs of a kernel may wait for each other."""
    flags = (getattr(op, "is_volatile", None) for op in kernel.walk())
    if any(getattr(flag, "value", None) for flag in flags):
        return True
    accesses = (e for e in effects_of(kernel) if isinstance(e, Access))
    return any(e.atomic is not None or e.resource is Resource.ANY for e in accesses)


def _writes_until(kernel: FuncOp, anchor: Operation) -> bool:
    """Whether a program writes memory of its arguments before it is behind `anchor`."""
    for op in kernel.body.block.ops:
        for effect in effects_of(op):
            if isinstance(effect, Access) and effect.writes and effect.is_on(Resource.GLOBAL):
                return True
        if op is anchor:
            return False
    return True
