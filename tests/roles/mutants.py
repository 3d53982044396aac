"""Mutants of programs with roles: every one breaks what rings, turns, places or grants ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Operation, SSAValue

from tilewright.ir.attributes import integer_array, integers_of
from tilewright.ir.op import build
from tilewright.ir.types import i1, i32, pointer_to
from tilewright.ops.control_flow import ForOp, IfOp, YieldOp
from tilewright.ops.creation.ir import ConstantOp
from tilewright.ops.debug.ir import BarrierOp
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.ops.function import FuncOp
from tilewright.ops.memory.ir import LoadOp
from tilewright.ops.rings import (
    RingAcquireOp,
    RingCommitOp,
    RingFill,
    RingOp,
    RingReleaseOp,
    RingSeekOp,
    RingSettled,
    RingWaitOp,
)
from tilewright.ops.roles import RolesOp, TurnPassOp, TurnWaitOp
from tilewright.ops.staging import (
    DotWaitOp,
    LaidOutDotOp,
    LocalAllocOp,
    LocalBarrierOp,
    MemdescIndexOp,
)
from tilewright.targets.nvidia.ops import FenceAsyncSharedOp
from tilewright.targets.nvidia.tma_ops import TmaStoreOp, TmaStoreWaitOp

Change = Callable[[Operation], None]
_ENTERS = (RingAcquireOp, RingWaitOp)
_LEAVES = (RingCommitOp, RingReleaseOp)
_SIMPLE = (*_LEAVES, RingFill, TurnWaitOp, TurnPassOp)
_ORDERS = (LocalBarrierOp, FenceAsyncSharedOp, TmaStoreWaitOp)


@dataclass(frozen=True)
class Mutant:
    """A change of the op of a number, in the order of the text."""

    name: str
    number: int
    change: Change

    def apply(self, module: ModuleOp) -> None:
        """Make the change."""
        self.change(list(module.walk())[self.number])


def mutants_of(module: ModuleOp) -> Iterator[Mutant]:
    """Every mutant of a placed module, by op and kind."""
    for number, op in enumerate(module.walk()):
        for kind, change in _changes(op):
            yield Mutant(f"{kind} {op.name} {number}", number, change)


def _changes(op: Operation) -> Iterator[tuple[str, Change]]:
    if isinstance(op, _ENTERS):
        yield "dropped", enter_unasked
        yield "doubled", _double
        for by in (1, -1, 2):
            yield f"{by} fills on", lambda op, by=by: _move_operand(op, 2, by)
        if op.ring_of().num_slots > 1:
            yield "another slot", lambda op: _move_operand(op, 1, 1)
        for index, what in ((1, "slot"), (2, "fill")):
            if not isinstance(op.operands[index].owner, ConstantOp):
                name = f"always the first {what}"
                yield name, lambda op, index=index: _replace_operand(op, index, 0)
    if isinstance(op, _SIMPLE):
        yield "dropped", _drop
        yield "doubled", _double
    if isinstance(op, _LEAVES):
        if isinstance(op, RingCommitOp) or op.condition is None:
            yield "given back first", _to_its_entrance
        if op.ring_of().num_slots > 1:
            yield "another slot", lambda op: _move_operand(op, 1, 1)
    if isinstance(op, (*_ENTERS, *_LEAVES, RingFill)):
        for other in _rings_like(op):
            name = f"on ring {other.ring_name.data} instead"
            yield name, lambda op, n=other.ring_name.data: _take_ring(op, n)
    if isinstance(op, RingFill):
        yield "behind the commit", _behind_the_block_but_one
    if isinstance(op, RingWaitOp) and op.meets is None:
        yield "at a barrier", lambda op: op.properties.update(meets=UnitAttr())
    elif isinstance(op, RingWaitOp):
        yield "in front of the commit", _in_front_of_the_commit
    if isinstance(op, RingReleaseOp) and op.condition is not None:
        yield "without its condition", _without_condition
        yield "under the other condition", _other_condition
    if isinstance(op, RingCommitOp) and op.announced_bytes is not None:
        all_bytes = op.announced_bytes.value.data
        for kind, by in (("few", -16), ("many", 16), ("twice as many", all_bytes)):
            yield f"{kind} bytes", lambda op, by=by: _count_on(op, "announced_bytes", by)
    if isinstance(op, RingOp):
        yield "one producer more", lambda op: _count_on(op, "producers", 1)
        yield "one consumer more", lambda op: _count_on(op, "consumers", 1)
        if op.consumers.value.data > 1:
            yield "one consumer less", lambda op: _count_on(op, "consumers", -1)
        yield "barriers in a tile", lambda op: _set(op, "offset_bytes", 0)
        for other in _other_rings(op):
            place = other.offset_bytes
            if place is not None:
                name = f"barriers of ring {other.ring_name.data} for"
                yield name, lambda op, at=place.value.data: _set(op, "offset_bytes", at)
    if isinstance(op, RingSeekOp) and any(map(_is_asked_for, op.results)):
        yield "dropped", _stand_still
        yield "one further", lambda op: _move_operand(op, 1, 1)
        yield "no further", lambda op: _replace_operand(op, 1, 0)
    if isinstance(op, RingSettled):
        yield "dropped", _drop
        if _what_follows(op) is not None:
            yield "behind what follows", _behind_what_follows
        yield "1 fills on", lambda op: _move_operand(op, 2, 1)
        for other in _other_rings(op):
            name = f"on ring {other.ring_name.data} instead"
            yield name, lambda op, n=other.ring_name.data: _take_ring(op, n)
    if isinstance(op, RingOp) and op.shares is not None:
        yield "nobody's memory for", _has_its_own
    if isinstance(op, TurnWaitOp | TurnPassOp):
        yield "of other turns", lambda op: op.properties.update(turns=StringAttr("others"))
    if isinstance(op, TurnPassOp):
        yield "passed first", _to_the_front
    if isinstance(op, DotWaitOp):
        yield "dropped", _unwaited
        yield "one more pending", lambda op: _count_on(op, "pending", 1)
        if _release_behind(op) is not None:
            yield "behind a release", _behind_a_release
    if isinstance(op, _ORDERS):
        yield "dropped", _drop
    if isinstance(op, TmaStoreWaitOp):
        yield "one more pending", _wait_for_fewer_stores
    if isinstance(op, TmaStoreOp):
        if _fence_before(op) is not None:
            yield "in front of the fence", _in_front_of_the_fence
        if op.kind is not None:
            yield "stored instead of added", _stored_instead
            yield "doubled", _double
    if isinstance(op, LaidOutDotOp):
        for number in _from_slots(op):
            name = f"operand {number} of the slot behind for"
            yield name, lambda op, n=number: _take_the_slot_behind(op, n)
    if isinstance(op, LocalAllocOp) and _is_elsewhere(op):
        yield "in the first tile", lambda op: _set(op, "offset_bytes", 0)
    if isinstance(op, ForOp) and any(isinstance(o, (*_ENTERS, *_LEAVES)) for o in op.walk()):
        yield "one more time", lambda op: _move_operand(op, 1, _step_of(op))
        yield "one time less", lambda op: _move_operand(op, 1, -_step_of(op))
        yield "as often as it finds in memory", _bound_from_a_tile
        for number in _counters_from_before(op):
            name = f"counter {number} from the start in"
            yield name, lambda op, n=number: _replace_operand(op, n, 0)
    if isinstance(op, RolesOp):
        yield from _changes_of_roles(op)


def _is_asked_for(value: SSAValue) -> bool:
    """Whether anything follows from a value: where a role leaves a ring for good, nobody asks."""
    for use in value.uses:
        branch = use.operation.parent_op()
        if not (isinstance(use.operation, YieldOp) and isinstance(branch, IfOp)):
            return True
        if _is_asked_for(branch.results[use.index]):
            return True
    return False


def _changes_of_roles(op: RolesOp) -> Iterator[tuple[str, Change]]:
    for number, role in enumerate(op.described()):
        if role.registers:
            for count in (role.registers + 16, role.registers + 4, 16, 264):
                name = f"{count} registers for {role.name} of"
                yield name, lambda op, n=number, c=count: _set_entry(op, "registers", n, c)
        if role.shared_bytes:
            name = f"tiles of {role.name} at the start of"
            yield name, lambda op, n=number: _set_entry(op, "shared_start", n, 0)
        if role.shared_bytes and role.replicas > 1:
            name = f"one place for all of {role.name} of"
            yield name, lambda op, n=number: _set_entry(op, "shared_bytes", n, 0)
        name = f"a barrier of the program in {role.name} of"
        yield name, lambda op, n=number: _insert_barrier(op, n)


def _other_rings(op: Operation) -> list[RingOp]:
    """The rings of the program but that of an op, or but itself."""
    own = op if isinstance(op, RingOp) else _ring_of(op)
    return [o for o in _kernel_of(op).walk() if isinstance(o, RingOp) and o is not own]


def _ring_of(op: Operation) -> Operation:
    owner = (op.ring if isinstance(op, RingFill) else op.operands[0]).owner
    assert isinstance(owner, RingOp)
    return owner


def _rings_like(op: Operation) -> list[RingOp]:
    """Other rings of as many slots of the same tiles."""
    own = _ring_of(op)
    kinds = [value.type for value in own.operands]
    return [ring for ring in _other_rings(op) if [v.type for v in ring.operands] == kinds]


def _release_behind(op: Operation) -> Operation | None:
    """The first release behind an op in its block, if nothing is asked before it."""
    following = op.next_op
    while following is not None and not isinstance(following, RingReleaseOp):
        following = following.next_op
    is_plain = isinstance(following, RingReleaseOp) and following.condition is None
    return following if is_plain else None


def _counters_from_before(op: ForOp) -> list[int]:
    """The operands that are where a ring stood before a loop, behind another loop or a seek."""
    waits = [o for o in op.body.block.ops if isinstance(o, (*_ENTERS, *_LEAVES))]
    asked = {value for wait in waits for value in wait.operands}
    arguments = zip(op.iter_args, op.body.block.args[1:], strict=True)
    return [
        3 + number
        for number, (value, inside) in enumerate(arguments)
        if inside in asked and isinstance(value.owner, ForOp | RingSeekOp)
    ]


def _is_elsewhere(op: LocalAllocOp) -> bool:
    return op.offset_bytes is not None and op.offset_bytes.value.data != 0


def _step_of(op: Operation) -> int:
    """By how much an iteration goes on, where the program says so."""
    step = op.operands[2].owner
    return int(step.splat_value()) if isinstance(step, ConstantOp) else 1


# --- changes ------------------------------------------------------------------------------------


def _drop(op: Operation) -> None:
    op.detach()
    op.erase()


def _double(op: Operation) -> None:
    assert op.parent is not None
    op.parent.insert_op_after(op.clone(), op)


def enter_unasked(op: Operation) -> None:
    """The tiles of the slot, without a wait."""
    assert isinstance(op, RingAcquireOp | RingWaitOp) and op.parent is not None
    for tile, result in zip(op.ring_of().tiles, tuple(op.results), strict=True):
        operands = [tile, op.position[0]]
        view = build(MemdescIndexOp, operands, [result.type], location=op.location)
        op.parent.insert_op_before(view, op)
        result.replace_all_uses_with(view.results[0])
    _drop(op)


def _take_ring(op: Operation, name: str) -> None:
    """The same on the ring of another name."""
    ring = next(r for r in _other_rings(op) if r.ring_name.data == name)
    index = next(i for i, v in enumerate(op.operands) if v.owner is _ring_of(op))
    _give(op, index, ring.results[0])


def _behind_what_follows(op: Operation) -> None:
    """The op behind the next one that does something."""
    following, block = _what_follows(op), op.parent
    assert following is not None and block is not None
    op.detach()
    block.insert_op_after(op, following)


def _what_follows(op: Operation) -> Operation | None:
    """The next op of the block that does something; None where the block only ends."""
    following = op.next_op
    while following is not None and not (following.regions or isinstance(following, _ENTERS)):
        following = following.next_op
    return following


def _has_its_own(op: Operation) -> None:
    """A ring that says nothing of whose memory it has."""
    del op.properties["shares"]


def _behind_a_release(op: Operation) -> None:
    """A wait for products behind the release of what they read: nothing in between needs it."""
    release, block = _release_behind(op), op.parent
    assert isinstance(op, DotWaitOp) and release is not None and block is not None
    release.detach()
    block.insert_op_before(release, op)


def _wait_for_fewer_stores(op: Operation) -> None:
    """Let one store more run on; a wait that counts none names those that it waits for."""
    assert isinstance(op, TmaStoreWaitOp)
    if op.pending is None:
        _set(op, "pending", 0)
    _count_on(op, "pending", 1)


def _fence_before(op: Operation) -> Operation | None:
    """The fence in an op's block that shows what threads wrote to the engine, before the op."""
    before = op.prev_op
    while before is not None and not isinstance(before, FenceAsyncSharedOp):
        before = before.prev_op
    return before


def _in_front_of_the_commit(op: Operation) -> None:
    """Let replicas meet before they have filled what they wait for."""
    assert isinstance(op, RingWaitOp)
    around = [
        use.operation for use in op.ring_of().result.uses if use.operation.parent is op.parent
    ]
    commit = next(other for other in around if isinstance(other, RingCommitOp))
    op.detach()
    assert commit.parent is not None
    commit.parent.insert_op_before(op, commit)


def _in_front_of_the_fence(op: Operation) -> None:
    """Without what it stores having been shown: its place and numbers are known there."""
    fence, block = _fence_before(op), op.parent
    assert fence is not None and block is not None
    fence.detach()
    block.insert_op_after(fence, op)


def _stored_instead(op: Operation) -> None:
    del op.properties["kind"]


def _from_slots(op: LaidOutDotOp) -> list[int]:
    """The operands of a product that lie in slots of a ring of several, seen directly."""
    return [
        number
        for number, value in enumerate(op.operands[:2])
        if isinstance(value.owner, RingWaitOp) and value.owner.ring_of().num_slots > 1
    ]


def _take_the_slot_behind(op: Operation, number: int) -> None:
    """Read the slot that is filled next: that of a product that starts too early."""
    value = op.operands[number]
    wait = value.owner
    assert isinstance(wait, RingWaitOp) and op.parent is not None
    ring = wait.ring_of()
    tile = ring.tiles[list(wait.results).index(value)]
    one, slots = _constant(op, 1), _constant(op, ring.num_slots)
    following = build(
        ELEMENTWISE["arith.addi"], [wait.position[0], one], [i32], location=op.location
    )
    inside = build(
        ELEMENTWISE["arith.remsi"], [following.results[0], slots], [i32], location=op.location
    )
    view = build(MemdescIndexOp, [tile, inside.results[0]], [value.type], location=op.location)
    for new in (following, inside, view):
        op.parent.insert_op_before(new, op)
    _give(op, number, view.results[0])


def _stand_still(op: Operation) -> None:
    assert isinstance(op, RingSeekOp)
    for before, after in zip(op.before, tuple(op.after), strict=True):
        after.replace_all_uses_with(before)
    _drop(op)


def _unwaited(op: Operation) -> None:
    assert isinstance(op, DotWaitOp)
    for tile, output in zip(op.tiles, tuple(op.outputs), strict=True):
        output.replace_all_uses_with(tile)
    _drop(op)


def _constant(op: Operation, value: int) -> SSAValue:
    assert op.parent is not None
    properties = {"value": IntegerAttr(value, i32)}
    made = build(ConstantOp, [], [i32], properties, location=op.location)
    op.parent.insert_op_before(made, op)
    return made.results[0]


def _give(op: Operation, index: int, value: SSAValue) -> None:
    operands = list(op.operands)
    operands[index] = value
    op.operands = operands


def _replace_operand(op: Operation, index: int, value: int) -> None:
    _give(op, index, _constant(op, value))


def _move_operand(op: Operation, index: int, by: int) -> None:
    """Another number: a slot stays one of the ring."""
    assert op.parent is not None
    operands = [op.operands[index], _constant(op, by)]
    moved = build(ELEMENTWISE["arith.addi"], operands, [i32], location=op.location)
    op.parent.insert_op_before(moved, op)
    value = moved.results[0]
    if isinstance(op, (*_ENTERS, *_LEAVES)) and index == 1:
        slots = _constant(op, op.ring_of().num_slots)
        inside = build(ELEMENTWISE["arith.remsi"], [value, slots], [i32], location=op.location)
        op.parent.insert_op_before(inside, op)
        value = inside.results[0]
    _give(op, index, value)


def _to_its_entrance(op: Operation) -> None:
    """Right behind where the slot was entered, before it is used."""
    assert isinstance(op, RingCommitOp | RingReleaseOp) and op.parent is not None
    kind = RingAcquireOp if isinstance(op, RingCommitOp) else RingWaitOp
    ring = op.ring_of()
    entrance = op.prev_op
    while entrance is not None:
        if isinstance(entrance, kind) and entrance.ring_of() is ring:
            block = op.parent
            op.detach()
            block.insert_op_after(op, entrance)
            return
        entrance = entrance.prev_op
    _double(op)  # no entrance in its block: too many releases break it as well


def _behind_the_block_but_one(op: Operation) -> None:
    block = op.parent
    assert block is not None and block.last_op is not None
    op.detach()
    block.insert_op_before(op, block.last_op)


def _to_the_front(op: Operation) -> None:
    block = op.parent
    assert block is not None and block.first_op is not None
    op.detach()
    block.insert_op_before(op, block.first_op)


def _without_condition(op: Operation) -> None:
    op.operands = list(op.operands)[:2]
    op.properties["operandSegmentSizes"] = integer_array((1, 1, 0))


def _other_condition(op: Operation) -> None:
    assert op.parent is not None
    properties = {"value": IntegerAttr(1, i1)}
    true = build(ConstantOp, [], [i1], properties, location=op.location)
    operands = [op.operands[2], true.results[0]]
    other = build(ELEMENTWISE["arith.xori"], operands, [i1], location=op.location)
    for new in (true, other):
        op.parent.insert_op_before(new, op)
    _give(op, 2, other.results[0])


def _count_on(op: Operation, name: str, by: int) -> None:
    before = op.properties[name]
    assert isinstance(before, IntegerAttr)
    _set(op, name, before.value.data + by)


def _set(op: Operation, name: str, value: int) -> None:
    op.properties[name] = IntegerAttr(value, i32)


def _set_entry(op: Operation, name: str, number: int, value: int) -> None:
    entries = list(integers_of(op.properties[name]))
    entries[number] = value
    op.properties[name] = integer_array(entries)


def _insert_barrier(op: Operation, number: int) -> None:
    block = op.regions[number].block
    assert block.first_op is not None
    block.insert_op_before(build(BarrierOp, location=op.location), block.first_op)


def _bound_from_a_tile(op: Operation) -> None:
    """The loop runs as often as a number in global memory says."""
    assert op.parent is not None
    pointer = _kernel_of(op).body.block.args[0]
    cast = build(ELEMENTWISE["tt.bitcast"], [pointer], [pointer_to(i32)], location=op.location)
    properties = {
        "cache": IntegerAttr(1, i32),
        "evict": IntegerAttr(1, i32),
        "isVolatile": IntegerAttr(0, i1),
        "operandSegmentSizes": integer_array((1, 0, 0)),
        "boundaryCheck": integer_array(()),
    }
    load = build(LoadOp, cast.results, [i32], properties, location=op.location)
    for new in (cast, load):
        op.parent.insert_op_before(new, op)
    _give(op, 1, load.results[0])


def _kernel_of(op: Operation) -> FuncOp:
    parent = op.parent_op()
    assert parent is not None
    return parent if isinstance(parent, FuncOp) else _kernel_of(parent)
