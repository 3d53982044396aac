"""Makes rings of the channels that the copy engine fills (T1 to T1).

    %x = descriptor_load %d[%i, %j]; put %ab, %x
    ⇒ %s = ring_acquire %ring; tma_fill %d[%i, %j] → %s, %ring; ring_commit %ring

    %x = get %ab … dot (local_alloc (slice %x, %r)), …
    ⇒ %s = ring_wait %ring; %p = memdesc_slice %s, %r … dot %p, … ; ring_release %ring

    %x = load %p; put %ab, %x
    ⇒ %s = ring_acquire %ring; async_copy %p → %s; ring_commit %ring by copies

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

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i32
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilewright.ir.attributes import integer_array
from tilewright.ir.edits import erase, insert_before
from tilewright.ir.encoding import SharedType, layout_of, shared_part, shared_tile
from tilewright.ir.op import build
from tilewright.ir.passes import Pass
from tilewright.ir.types import shape_of
from tilewright.ops.channels import ChannelOp, GetOp, PutOp, PutPartOp, SkipOp
from tilewright.ops.descriptors.ir import DescriptorLoadOp
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.ops.program.persistence import cluster_of
from tilewright.ops.rings import (
    RING,
    RingAcquireOp,
    RingCommitOp,
    RingOp,
    RingReleaseOp,
    RingSeekOp,
    RingWaitOp,
    slot_types,
)
from tilewright.ops.roles import ClusterWaitOp, RolesOp, TurnPassOp, TurnWaitOp, find_roles
from tilewright.ops.staging import ConvertLayoutOp, LocalAllocOp, LocalStoreOp, MemdescSliceOp
from tilewright.schedule.partition.form_roles import TURNS
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError
from tilewright.targets.nvidia.ops import FenceAsyncSharedOp
from tilewright.targets.nvidia.partition.copies import copies_of, fill_by_threads
from tilewright.targets.nvidia.partition.drain_rings import drain_rings
from tilewright.targets.nvidia.partition.landed import read_type
from tilewright.targets.nvidia.partition.read_slots import Reading
from tilewright.targets.nvidia.partition.stage_meets import keep_maps, stage_meets
from tilewright.targets.nvidia.tma.box_annotations import box_plan, copy_box
from tilewright.targets.nvidia.tma.stage import tile_type
from tilewright.targets.nvidia.tma_ops import TmaFillOp


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
        if isinstance(op, ChannelOp) and op.tiles.data:
            _stage(roles, op)
        elif isinstance(op, ChannelOp):
            stage_meets(roles, op)
    drain_rings(roles)
    keep_maps(roles)
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
    copied = copies_of(puts)
    is_read_so = parts or copied
    types = [read_type(gets)] if is_read_so else _landed_types(channel, puts)
    producers = _replicas_around(roles, parts) if parts else 1
    ring = _ring(channel, roles, types, producers, readers)
    if any(put.shared for put in puts):
        kernel = roles.parent_op()
        assert kernel is not None
        ring.properties["cluster"] = IntegerAttr(cluster_of(kernel), i32)
    for put in puts:
        if copied:
            fill_by_threads(put, ring)
        else:
            _fill(put, ring)
    for part in parts:
        _write(part, ring)
    takes_turns = TURNS in channel.attributes and ring.consumers.value.data > 1
    for get in gets:
        Reading(get, ring, takes_turns, is_written_by_threads=bool(copied)).run()
    for skip in skips:
        insert_before(
            skip, build(RingSeekOp, [ring.result, skip.count], (), location=skip.location)
        )
        erase(skip)
    erase(channel)


def _landed_types(channel: ChannelOp, puts: list[PutOp]) -> list[SharedType]:
    """How the tiles of a fill lie that the copy engine brings."""
    fills = [[tile_type(load, load.desc) for load in _loads(put)] for put in puts]
    if any(types != fills[0] for types in fills):
        raise InternalError(f"ring {channel.channel_name.data} is filled in several layouts")
    return fills[0]


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
    if channel.shares is not None:
        properties["shares"] = channel.shares
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
    erase(put)
    for op in (*gone, *loads):
        if op.parent is not None and all(result.first_use is None for result in op.results):
            erase(op)


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
    erase(put)
