"""Makes rings of the channels that the copy engine fills (T1 to T1).

    %x = descriptor_load %d[%i, %j]; put %ab, %x
    ⇒ %s = ring_acquire %ring; tma_fill %d[%i, %j] → %s, %ring; ring_commit %ring

    %x = get %ab … dot (local_alloc (slice %x, %r)), …
    ⇒ %s = ring_wait %ring; %p = memdesc_slice %s, %r … dot %p, … ; ring_release %ring

    put_part %ch, %x, %r
    ⇒ %s = ring_acquire %ring; local_store %x → memdesc_slice %s, %r; fence; ring_commit %ring

What a product takes from shared memory in the layout in which the copies land it takes from the
slot; another layout is read from there. A wait stands as late as it may, a release behind the
last op that reads the slot. Where the schedule has turns, replicas take them around the product;
those that take whole tiles, around all that they take from rings for one. A ring of parts lies as
the product reads it, and its slot is full when each replica has written its part.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ModuleOp, StringAttr, i32
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilewright.ir.attributes import integer_array
from tilewright.ir.encoding import SharedType, layout_of, shared_part, shared_tile
from tilewright.ir.op import build
from tilewright.ir.passes import Pass
from tilewright.ir.types import element_of, shape_of, storage_bytes
from tilewright.layout.build import shared_swizzled
from tilewright.ops.channels import ChannelOp, GetOp, PutOp, PutPartOp, SkipOp, SliceOp
from tilewright.ops.descriptors.ir import DescriptorLoadOp
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.ops.program.persistence import cluster_of
from tilewright.ops.roles import (
    RING,
    ClusterWaitOp,
    RingAcquireOp,
    RingCommitOp,
    RingOp,
    RingReleaseOp,
    RingSeekOp,
    RingWaitOp,
    RolesOp,
    TurnPassOp,
    TurnWaitOp,
    find_roles,
    slot_types,
)
from tilewright.ops.shape.ir import BroadcastOp, ExpandDimsOp, PermutingOp
from tilewright.ops.staging import (
    ConvertLayoutOp,
    LaidOutDotOp,
    LocalAllocOp,
    LocalLoadOp,
    LocalStoreOp,
    MemdescSliceOp,
    MemdescTransOp,
)
from tilewright.schedule.partition.form_roles import TURNS
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError
from tilewright.targets.nvidia.ops import FenceAsyncSharedOp
from tilewright.targets.nvidia.tma.box_annotations import box_plan, copy_box
from tilewright.targets.nvidia.tma.stage import tile_type
from tilewright.targets.nvidia.tma_ops import TmaFillOp

# Source: PTX ISA 8.8, 5.5.6, "Swizzling modes": bytes of a row, the longest first.
_SWIZZLES = (128, 64, 32)


@dataclass(frozen=True)
class StageChannels(Pass):
    """The pass; see the module."""

    name = "stage-channels"
    requires = "T1"
    produces = "T1"
    after = ("assign-layouts",)

    def apply(self, module: ModuleOp) -> None:
        """Rewrite the channels of the kernel."""
        stage_channels(find_kernel(module))


def stage_channels(kernel: FuncOp) -> None:
    """Rewrite every channel of a kernel's roles."""
    roles = find_roles(kernel)
    if roles is None:
        return
    for op in tuple(kernel.body.block.ops):
        if isinstance(op, ChannelOp):
            _stage(roles, op)
    for body in roles.bodies:
        _take_turns_for_tiles(body.block)
        _wait_for_cluster(body.block)


def _stage(roles: RolesOp, channel: ChannelOp) -> None:
    users = [use.operation for use in tuple(channel.result.uses)]
    puts = [op for op in users if isinstance(op, PutOp)]
    parts = [op for op in users if isinstance(op, PutPartOp)]
    gets = [op for op in users if isinstance(op, GetOp)]
    skips = [op for op in users if isinstance(op, SkipOp)]
    # Each fill is for one of those that skip.
    readers = 1 if skips else _replicas_around(roles, gets)
    types = [_read_type(gets)] if parts else _landed_types(channel, puts)
    producers = _replicas_around(roles, parts) if parts else 1
    ring = _ring(channel, roles, types, producers, readers)
    if any(put.shared for put in puts):
        kernel = roles.parent_op()
        assert kernel is not None
        ring.properties["cluster"] = IntegerAttr(cluster_of(kernel), i32)
    for put in puts:
        _fill(put, ring)
    for part in parts:
        _write(part, ring)
    takes_turns = TURNS in channel.attributes and ring.consumers.value.data > 1
    for get in gets:
        _Reading(get, ring, takes_turns).run()
    for skip in skips:
        _before(skip, build(RingSeekOp, [ring.result, skip.count], (), location=skip.location))
        _erase(skip)
    _erase(channel)


def _landed_types(channel: ChannelOp, puts: list[PutOp]) -> list[SharedType]:
    """How the tiles of a fill lie that the copy engine brings."""
    fills = [[tile_type(load, load.desc) for load in _loads(put)] for put in puts]
    if any(types != fills[0] for types in fills):
        raise InternalError(f"ring {channel.channel_name.data} is filled in several layouts")
    return fills[0]


def _read_type(gets: list[GetOp]) -> SharedType:
    """How a tile lies as the first product takes it from shared memory; in rows, if none does."""
    (value, *_) = gets[0].values
    for use in value.uses:
        user = use.operation
        if isinstance(user, LocalAllocOp):
            return user.result.type
    return swizzled_rows(value.type)


def swizzled_rows(tile: Attribute) -> SharedType:
    """How a tile lies in rows, swizzled as far as they are long."""
    extents, size = shape_of(tile), storage_bytes(tile)
    order = tuple(reversed(range(len(extents))))
    row_bytes = extents[-1] * size
    swizzle = next((s for s in _SWIZZLES if row_bytes % s == 0 and len(extents) > 1), 0)
    return shared_tile(element_of(tile), shared_swizzled(extents, size, swizzle, order))


def _ring(
    channel: ChannelOp, roles: RolesOp, types: list[SharedType], producers: int, readers: int
) -> RingOp:
    """The ring of a channel, in front of the roles."""
    slots = channel.slots.value.data
    block = roles.parent
    assert block is not None
    tiles: list[SSAValue] = []
    for type_ in types:
        whole = shared_tile(type_.element, layout_of(type_), slots)
        alloc = build(LocalAllocOp, (), [whole], location=channel.location)
        block.insert_op_before(alloc, roles)
        tiles.append(alloc.results[0])
    properties: dict[str, Attribute] = {
        "ring_name": channel.channel_name,
        "producers": IntegerAttr(producers, i32),
        "consumers": IntegerAttr(readers, i32),
    }
    ring = build(RingOp, tiles, [RING], properties, location=channel.location)
    assert isinstance(ring, RingOp)
    block.insert_op_before(ring, roles)
    return ring


def _replicas_around(roles: RolesOp, ends: Sequence[Operation]) -> int:
    """The replicas that do ops of a channel."""
    count = 0
    for role, body in zip(roles.described(), roles.bodies, strict=True):
        inside = set(body.walk())
        count += role.replicas * any(end in inside for end in ends)
    return count


def _take_turns_for_tiles(body: Block) -> None:
    """Let replicas wait for the fills of their tiles in turn.

    *Why*: a wait knows an odd fill from an even one, and no more. Who waits in turn finds that all
    fills before its own have come.
    """
    skipped = {op.ring_of() for op in body.walk() if isinstance(op, RingSeekOp)}
    waits = [op for op in body.walk() if isinstance(op, RingWaitOp) and op.ring_of() in skipped]
    if not waits:
        return
    loop = next(op for op in body.ops if any(wait in waits for wait in op.walk()))
    inside = loop.regions[0].block
    taking = [op for op in inside.ops if any(inner in waits for inner in op.walk())]
    turns: dict[str, Attribute] = {"turns": StringAttr(_TILES)}
    first, last = taking[0], taking[-1]
    inside.insert_op_before(build(TurnWaitOp, (), (), dict(turns), location=first.location), first)
    behind = last if last.regions else _release_of(last)
    inside.insert_op_after(build(TurnPassOp, (), (), dict(turns), location=last.location), behind)


_TILES = "tiles"


def _wait_for_cluster(body: Block) -> None:
    """Let a role that reads what other programs bring end when they do."""
    waits = [op for op in body.walk() if isinstance(op, RingWaitOp)]
    end = body.last_op
    assert end is not None
    if any(wait.ring_of().programs > 1 for wait in waits):
        body.insert_op_before(build(ClusterWaitOp, location=end.location), end)


def _release_of(wait: Operation) -> Operation:
    """The release of the slot that is waited for in its block."""
    assert isinstance(wait, RingWaitOp)
    op = wait.next_op
    while op is not None and not (isinstance(op, RingReleaseOp) and op.ring_of() is wait.ring_of()):
        op = op.next_op
    assert op is not None
    return op


# --- the role that loads ------------------------------------------------------------------------


def _loads(put: PutOp) -> list[DescriptorLoadOp]:
    """The loads of a fill. *Raises*: InternalError where something else makes a tile."""
    loads: list[DescriptorLoadOp] = []
    for value in put.values:
        owner = value.owner
        while isinstance(owner, ConvertLayoutOp):
            owner = owner.src.owner
        if not isinstance(owner, DescriptorLoadOp):
            raise InternalError(f"channel {put.channel_of().channel_name.data} has no copies")
        loads.append(owner)
    return loads


def _fill(put: PutOp, ring: RingOp) -> None:
    """Start the copies of a fill, where it is put."""
    block, loads = put.parent, _loads(put)
    assert block is not None
    acquire = build(RingAcquireOp, [ring.result], slot_types(ring), location=put.location)
    block.insert_op_before(acquire, put)
    for index, (load, tile) in enumerate(zip(loads, acquire.results, strict=True)):
        shared = put.shared[index : index + 1]
        sizes: dict[str, Attribute] = {
            "operandSegmentSizes": integer_array((1, 1, 1, 0, len(load.indices), len(shared)))
        }
        operands = [load.desc, tile, ring.result, *load.indices, *shared]
        fill = build(TmaFillOp, operands, (), sizes, location=load.location)
        copy_box(load, fill)
        block.insert_op_before(fill, put)
    num_bytes = sum(box_plan(load, load.desc).num_bytes for load in loads)
    announced: dict[str, Attribute] = {"announced_bytes": IntegerAttr(num_bytes, i32)}
    commit = build(RingCommitOp, [ring.result], (), announced, location=put.location)
    block.insert_op_before(commit, put)
    gone: list[Operation] = [v.owner for v in put.values if isinstance(v.owner, Operation)]
    _erase(put)
    for op in (*gone, *loads):
        if op.parent is not None and all(result.first_use is None for result in op.results):
            _erase(op)


def _write(put: PutPartOp, ring: RingOp) -> None:
    """Write a part of a slot, where it is put."""
    block, (slot_type,) = put.parent, slot_types(ring)
    assert block is not None and isinstance(slot_type, SharedType)
    acquire = build(RingAcquireOp, [ring.result], [slot_type], location=put.location)
    part = shared_part(slot_type, shape_of(put.value.type))
    properties: dict[str, Attribute] = {"dim": put.dim}
    operands = [acquire.results[0], put.part]
    view = build(MemdescSliceOp, operands, [part], properties, location=put.location)
    store = build(LocalStoreOp, [put.value, view.results[0]], location=put.location)
    # Products read by a proxy of their own: what this thread wrote is made known to it first.
    fence = build(FenceAsyncSharedOp, location=put.location)
    commit = build(RingCommitOp, [ring.result], location=put.location)
    for op in (acquire, view, store, fence, commit):
        block.insert_op_before(op, put)
    _erase(put)


# --- the roles that read ------------------------------------------------------------------------


class _Reading:
    """Puts the slot of a ring in the place of what a role gets."""

    def __init__(self, get: GetOp, ring: RingOp, takes_turns: bool) -> None:
        self._takes_turns = takes_turns
        self._get = get
        self._ring = ring
        assert get.parent is not None
        self._block: Block = get.parent
        self._read: dict[tuple[SSAValue, Attribute], SSAValue] = {}

    def run(self) -> None:
        """Rewrite what reads, and put the wait in front of it and the release behind."""
        get = self._get
        wait = build(RingWaitOp, [self._ring.result], slot_types(self._ring), location=get.location)
        self._block.insert_op_after(wait, get)
        for value, tile in zip(get.values, wait.results, strict=True):
            assert isinstance(tile.type, SharedType)
            self._replace(value, tile, tile.type)
        _erase(get)
        wait.detach()
        self._block.insert_op_before(wait, self._first(wait))
        if self._takes_turns:
            self._take_turn(wait)
        self._release(wait)

    def _take_turn(self, wait: Operation) -> None:
        """Let replicas take turns for the first product that reads the slot.

        The product is done when its op is: who comes next multiplies while this one goes on.
        """
        products = [op for op in self._users(wait) if isinstance(op, LaidOutDotOp)]
        if not products:
            return
        turns: dict[str, Attribute] = {"turns": self._ring.ring_name}
        first = products[0]
        _before(first, build(TurnWaitOp, (), (), dict(turns), location=first.location))
        passing = build(TurnPassOp, (), (), dict(turns), location=first.location)
        self._block.insert_op_after(passing, first)

    def _replace(self, value: SSAValue, tile: SSAValue, landed: SharedType) -> None:
        """Let uses of a register tile take a shared one; `landed` is how its elements lie."""
        uses = tuple(value.uses)
        first = self._first_of({self._beside(use.operation) for use in uses})
        for use in uses:
            user = use.operation
            if isinstance(user, SliceOp):
                self._slice(user, tile)
            elif isinstance(user, LocalAllocOp) and user.result.type == landed:
                _take(user, tile)
            elif isinstance(user, ConvertLayoutOp):
                loaded = self._loaded(first, tile, user.result.type)
                _replace_op(user, loaded)
                _read_late(loaded)
            elif isinstance(user, PermutingOp) and self._transpose(user, tile, landed):
                continue
            else:
                operands = list(user.operands)
                operands[use.index] = self._loaded(first, tile, value.type)
                user.operands = operands

    def _slice(self, op: SliceOp, tile: SSAValue) -> None:
        """See the part of a slot that a replica takes."""
        whole = tile.type
        assert isinstance(whole, SharedType)
        extents = shape_of(op.result.type)
        properties: dict[str, Attribute] = {"dim": op.dim}
        view = build(
            MemdescSliceOp,
            [tile, op.part],
            [shared_part(whole, extents)],
            properties,
            location=op.location,
        )
        _before(op, view)
        self._replace(op.result, view.results[0], part_landed(whole, extents))
        _erase(op)

    def _transpose(self, op: PermutingOp, tile: SSAValue, landed: SharedType) -> bool:
        """See the slot transposed, where all that reads it so takes it from shared memory."""
        order = op.permutation()
        seen = shared_tile(landed.element, layout_of(landed).permute(order))
        users = [use.operation for use in op.result.uses]
        if not all(isinstance(u, LocalAllocOp) and u.result.type == seen for u in users):
            return False
        view = _transposed(op, tile, order)
        for user in users:
            _replace_op(user, view)
        _erase(op)
        return True

    def _loaded(self, first: Operation, tile: SSAValue, type_: Attribute) -> SSAValue:
        """The tile as a register tile of a type, read once, in front of `first`."""
        key = tile, type_
        if key not in self._read:
            load = build(LocalLoadOp, [tile], [type_], location=first.location)
            _before(first, load)
            self._read[key] = load.results[0]
        return self._read[key]

    def _users(self, wait: Operation) -> list[Operation]:
        """The ops of the block that read the slot, or have what reads it inside, in order."""
        found: set[Operation] = set()
        pending = list(wait.results)
        while pending:
            for use in pending.pop().uses:
                op = use.operation
                if isinstance(op, MemdescSliceOp | MemdescTransOp):
                    pending.append(op.results[0])
                found.add(self._beside(op))
        return [op for op in self._block.ops if op in found]

    def _first_of(self, ops: set[Operation]) -> Operation:
        """The op that stands first in the block; its end, where there is none."""
        end = self._block.last_op
        assert end is not None
        return next((op for op in self._block.ops if op in ops), end)

    def _beside(self, op: Operation) -> Operation:
        while op.parent is not self._block:
            parent = op.parent_op()
            assert parent is not None
            op = parent
        return op

    def _first(self, wait: Operation) -> Operation:
        """The op in front of which the wait stands."""
        return self._first_of(set(self._users(wait)))

    def _release(self, wait: Operation) -> None:
        """Give the slot back behind the last op that reads it."""
        sizes: dict[str, Attribute] = {"operandSegmentSizes": integer_array((1, 0, 0))}
        last = self._users(wait)
        release = build(RingReleaseOp, [self._ring.result], (), sizes, location=wait.location)
        self._block.insert_op_after(release, last[-1] if last else wait)


def _read_late(loaded: SSAValue) -> None:
    """Move a read, and views of what it gives, in front of the one op that takes it.

    *Why*: its registers are free until then, and a wait for a product may stand in between.
    """
    chain: list[Operation] = []
    value = loaded
    while value.has_one_use():
        assert isinstance(value.owner, Operation)
        chain.append(value.owner)
        (use,) = value.uses
        user = use.operation
        if user.parent is not value.owner.parent:
            return
        if not isinstance(user, ExpandDimsOp | BroadcastOp):
            for op in chain:
                op.detach()
                _before(user, op)
            return
        value = user.results[0]


def _transposed(before: Operation, tile: SSAValue, order: tuple[int, ...]) -> SSAValue:
    """A view of a shared tile with its dimensions permuted; of a part, the part of such a view."""
    type_, maker = tile.type, tile.owner
    assert isinstance(type_, SharedType)
    if type_.is_part():
        assert isinstance(maker, MemdescSliceOp)
        whole = _transposed(before, maker.src, order)
        assert isinstance(whole.type, SharedType)
        extents = tuple(type_.extents()[dim] for dim in order)
        part = shared_part(whole.type, extents)
        properties: dict[str, Attribute] = {
            "dim": IntegerAttr(order.index(maker.dim.value.data), i32)
        }
        operands = [whole, maker.part]
        view = build(MemdescSliceOp, operands, [part], properties, location=before.location)
    else:
        seen = shared_tile(type_.element, layout_of(type_).permute(order))
        properties = {"order": DenseArrayBase.from_list(i32, order)}
        view = build(MemdescTransOp, [tile], [seen], properties, location=before.location)
    _before(before, view)
    return view.results[0]


def _take(alloc: LocalAllocOp, tile: SSAValue) -> None:
    """Let who reads a tile of its own read a slot, or a part of one, transposed or not."""
    assert isinstance(tile.type, SharedType)
    for use in tuple(alloc.result.uses):
        seen = use.operation
        if tile.type.is_part() and isinstance(seen, MemdescTransOp):
            _replace_op(seen, _transposed(seen, tile, seen.permutation()))
    _replace_op(alloc, tile)


def part_landed(whole: SharedType, extents: tuple[int, ...]) -> SharedType:
    """The type of a tile of its own that lies as a part of a slot does, but for its panels.

    *Raises*: UnsupportedLayout where a part has no whole panels.
    """
    size = storage_bytes(whole.element)
    order = tuple(reversed(range(len(extents))))
    row_bytes = whole.extents()[-1] * size
    swizzles = (s for s in _SWIZZLES if row_bytes % s == 0)
    laid = layout_of(whole)
    swizzle = next(
        (s for s in swizzles if laid == shared_swizzled(whole.extents(), size, s, order)), 0
    )
    return shared_tile(whole.element, shared_swizzled(extents, size, swizzle, order))


def _before(op: Operation, new: Operation) -> None:
    assert op.parent is not None
    op.parent.insert_op_before(new, op)


def _replace_op(op: Operation, value: SSAValue) -> None:
    op.results[0].replace_all_uses_with(value)
    _erase(op)


def _erase(op: Operation) -> None:
    op.detach()
    op.erase()
