"""Makes copies of the accesses through tensor maps (T1 to T1): shared tiles, starts and waits.

    %x = descriptor_load %d[%i, %j] … use %x
    ⇒ %s = local_alloc; %t = tma_load %d[%i, %j] → %s … tma_wait %t; %x = local_load %s; use %x

    descriptor_store %d[%i, %j], %v
    ⇒ %s = local_alloc %v; %t = tma_store %s → %d[%i, %j]; tma_store_wait %t

What a matrix product takes from shared memory in the same layout it takes from where the copy
lands; another layout is read from there, too. A wait stands as late as it may: before the first
use, before what writes global memory, and before control flow.

Requires T1; produces T1 without accesses through descriptors but copies.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ModuleOp, i32
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from tilewright.analysis.alias import tile_bytes
from tilewright.ir.attributes import integer_array
from tilewright.ir.edits import erase, replace_by
from tilewright.ir.effects import stops_reads, touches_only_shared
from tilewright.ir.encoding import TOKEN, SharedType, layout_of, shared_tile
from tilewright.ir.op import build
from tilewright.ir.passes import Pass
from tilewright.ir.regions import ancestor_in, is_control_flow
from tilewright.ir.schedule_attributes import anchor_of, name_anchor
from tilewright.ir.types import DescriptorType, element_of, shape_of
from tilewright.layout.build import shared_linear
from tilewright.layout.linear import LinearLayout
from tilewright.ops.descriptors.ir import DescriptorLoadOp, DescriptorReduceOp, DescriptorStoreOp
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.ops.roles import RolesOp, role_around
from tilewright.ops.shape.ir import PermutingOp
from tilewright.ops.staging import (
    ConvertLayoutOp,
    LocalAllocOp,
    LocalLoadOp,
    MemdescIndexOp,
    MemdescTransOp,
)
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError
from tilewright.targets.nvidia.tensor_map import MAP_BYTES
from tilewright.targets.nvidia.tma.box_annotations import box_plan, copy_box
from tilewright.targets.nvidia.tma.join_waits import number_barriers
from tilewright.targets.nvidia.tma_ops import (
    InitBarriersOp,
    MakeTensorMapOp,
    TakeMapSlotOp,
    TensorMapOp,
    TmaLoadOp,
    TmaStoreOp,
    TmaStoreWaitOp,
    TmaWaitOp,
)


@dataclass(frozen=True)
class StageTensorMaps(Pass):
    """The pass; see the module."""

    name = "stage-tensor-maps"
    requires = "T1"
    produces = "T1"
    after = ("select-tensor-maps",)

    def apply(self, module: ModuleOp) -> None:
        """Rewrite the kernel."""
        stage_tensor_maps(find_kernel(module))


def stage_tensor_maps(kernel: FuncOp) -> int:
    """Rewrite the accesses of a kernel; how many mbarriers its loads take, one each."""
    if not any(isinstance(op, TensorMapOp | TakeMapSlotOp) for op in kernel.walk()):
        return 0
    accesses = [op for op in kernel.walk() if isinstance(op, _STAGED)]
    loads = [op for op in accesses if isinstance(op, DescriptorLoadOp)]
    for load in loads:
        _stage_load(load)
    num_barriers = number_barriers(kernel)
    stores = [op for op in accesses if not isinstance(op, DescriptorLoadOp)]
    blocks = dict.fromkeys(op.parent for op in stores if op.parent is not None)
    for store in stores:
        _stage_store(store)
    for block in blocks:
        _wait_for_stores(block)
    for op in tuple(kernel.walk()):
        if isinstance(op, MakeTensorMapOp):
            _add_workspace(op)
    if loads:
        first = kernel.body.block.first_op
        assert first is not None
        count: dict[str, Attribute] = {"count": IntegerAttr(num_barriers, i32)}
        init = build(InitBarriersOp, properties=count, location=kernel.location)
        kernel.body.block.insert_op_before(init, first)
    return num_barriers


def _add_workspace(op: MakeTensorMapOp) -> None:
    """Shared memory in which a program makes a tensor map."""
    block, scratch = op.parent, op.scratch
    assert block is not None and scratch is not None
    layout = shared_linear((MAP_BYTES // 4,), (0,))
    around = role_around(op)
    if around is None:
        workspace = build(LocalAllocOp, (), [shared_tile(i32, layout)], location=op.location)
    else:
        workspace = _of_replica(op, layout, *around)
    block.insert_op_before(workspace, op)
    rank = len(op.shape)
    op.operands = [op.base, *op.shape, *op.strides, workspace.results[0], scratch]
    op.properties["operandSegmentSizes"] = integer_array((1, rank, rank, 1, 1))


def _of_replica(
    op: MakeTensorMapOp, layout: LinearLayout, roles: RolesOp, number: int
) -> Operation:
    """The part of a replica of a tile that stands in front of the roles, and is theirs alone."""
    replicas = roles.described()[number].replicas
    whole = build(LocalAllocOp, (), [shared_tile(i32, layout, replicas)], location=op.location)
    assert roles.parent is not None
    roles.parent.insert_op_before(whole, roles)
    (replica,) = roles.bodies[number].block.args
    operands = [whole.results[0], replica]
    return build(MemdescIndexOp, operands, [shared_tile(i32, layout)], location=op.location)


# What stores may hold of shared memory before they are waited for. Chosen, not measured: a wait
# more or less changes no result.
_TOGETHER_BYTES = 64 << 10
_STAGED = (DescriptorLoadOp, DescriptorStoreOp, DescriptorReduceOp)


def tile_type(op: Operation, desc: SSAValue, rank: int | None = None) -> SharedType:
    """The shared tile of the block of an access or a map, in which its boxes lie.

    A tile may have fewer dims than its block. An access shows how many; a map may be told `rank`.
    """
    assert isinstance(desc.type, DescriptorType)
    shapes = [shape_of(value.type) for value in (*op.results, *op.operands)]
    rank = next((len(shape) for shape in shapes if shape), rank)
    layout = box_plan(op, desc).layout(rank)
    return shared_tile(element_of(desc.type.block), layout)


# A wait for one load, whose phase is not known yet.
_ONE_TOKEN: dict[str, Attribute] = {"operandSegmentSizes": integer_array((1, 0))}


# --- loads ------------------------------------------------------------------------------------


def _stage_load(load: DescriptorLoadOp) -> None:
    block = load.parent
    assert block is not None
    type_ = tile_type(load, load.desc)
    tile = build(LocalAllocOp, (), [type_], location=load.location)
    operands = [load.desc, tile.results[0], *load.indices]
    start = build(TmaLoadOp, operands, [TOKEN], location=load.location)
    copy_box(load, start)
    anchor = anchor_of(load)
    if anchor is not None:
        name_anchor(start, anchor)
    wait = build(TmaWaitOp, [start.results[0]], (), dict(_ONE_TOKEN), location=load.location)
    place = _earliest(load)
    for op in (tile, start):
        block.insert_op_before(op, place)
    block.insert_op_before(wait, _latest(load, type_))
    _Readers(tile.results[0], type_, wait).replace(load.result)
    erase(load)


def _earliest(load: DescriptorLoadOp) -> Operation:
    """The first op that the start of a load may stand before.

    It stays behind its operands, behind what writes global memory or waits for other programs,
    behind control flow, which its tile would outlive, and behind the loads before it.
    """
    operands = {operand.owner for operand in load.operands}
    place: Operation = load
    op = load.prev_op
    while op is not None and op not in operands and not is_control_flow(op):
        if isinstance(op, TmaLoadOp) or stops_reads(op):
            break
        place = op
        op = op.prev_op
    return place


def _latest(load: DescriptorLoadOp, shared: SharedType) -> Operation:
    """The op before which the wait for a load must stand."""
    assert load.parent is not None
    users = {ancestor_in(load.parent, user) for user in _readers(load.result, shared)}
    op = load.next_op
    while op is not None:
        if op in users or _ends_stretch(op) or stops_reads(op):
            return op
        op = op.next_op
    raise InternalError("a block without a terminator")


def _ends_stretch(op: Operation) -> bool:
    """Whether control leaves the straight line here."""
    return is_control_flow(op) or op.has_trait(IsTerminator)


def _readers(value: SSAValue, shared: SharedType) -> Iterator[Operation]:
    """The ops that will read the shared tile: users of a register tile, or of what goes away."""
    for use in value.uses:
        user = use.operation
        if not _goes_away(user, shared):
            yield user
            continue
        seen = _transposed(shared, user) if isinstance(user, PermutingOp) else shared
        yield from _readers(user.results[0], seen)


def _goes_away(op: Operation, shared: SharedType) -> bool:
    """Whether what an op makes of the loaded tile is the shared tile, or is read from it."""
    if isinstance(op, PermutingOp):
        type_ = _transposed(shared, op)
        users = [use.operation for use in op.result.uses]
        return all(isinstance(u, LocalAllocOp) and u.result.type == type_ for u in users)
    if isinstance(op, LocalAllocOp):
        return op.result.type == shared
    return isinstance(op, ConvertLayoutOp)


def _transposed(shared: SharedType, trans: PermutingOp) -> SharedType:
    """The type of a shared tile, seen transposed."""
    layout = layout_of(shared).permute(trans.permutation())
    return shared_tile(shared.element, layout)


class _Readers:
    """Puts what reads a shared tile behind the wait for it, in the place of a register tile."""

    def __init__(self, tile: SSAValue, shared: SharedType, wait: Operation) -> None:
        self._tile = tile
        self._shared = shared
        self._wait = wait
        self._last = wait
        self._read: dict[Attribute, SSAValue] = {}

    def replace(self, value: SSAValue) -> None:
        """Let the uses of a register tile take the shared tile, directly where they can."""
        for use in tuple(value.uses):
            user = use.operation
            if not _goes_away(user, self._shared):
                operands = list(user.operands)
                operands[use.index] = self._register_tile(value.type)
                user.operands = operands
            elif isinstance(user, PermutingOp):
                self._replace_transposed(user)
            elif isinstance(user, LocalAllocOp):
                replace_by(user, self._tile)
            else:
                replace_by(user, self._register_tile(user.results[0].type))

    def _replace_transposed(self, trans: PermutingOp) -> None:
        """Let the allocations of the transposed tile be the shared tile, seen transposed."""
        order = trans.permutation()
        properties: dict[str, Attribute] = {"order": DenseArrayBase.from_list(i32, order)}
        type_ = _transposed(self._shared, trans)
        view = build(MemdescTransOp, [self._tile], [type_], properties, location=trans.location)
        self._insert(view)
        for use in tuple(trans.result.uses):
            replace_by(use.operation, view.results[0])
        erase(trans)

    def _register_tile(self, type_: Attribute) -> SSAValue:
        if type_ not in self._read:
            read = build(LocalLoadOp, [self._tile], [type_], location=self._wait.location)
            self._insert(read)
            self._read[type_] = read.results[0]
        return self._read[type_]

    def _insert(self, op: Operation) -> None:
        block = self._last.parent
        assert block is not None
        block.insert_op_after(op, self._last)
        self._last = op


# --- stores -----------------------------------------------------------------------------------


def _stage_store(op: DescriptorStoreOp | DescriptorReduceOp) -> None:
    block = op.parent
    assert block is not None
    tile = build(LocalAllocOp, [op.src], [tile_type(op, op.desc)], location=op.location)
    properties: dict[str, Attribute] = {}
    if isinstance(op, DescriptorReduceOp):
        properties["kind"] = op.kind
    operands = [op.desc, tile.results[0], *op.indices]
    store = build(TmaStoreOp, operands, [TOKEN], properties, location=op.location)
    copy_box(op, store)
    for new in (tile, store):
        block.insert_op_before(new, op)
    erase(op)


def _wait_for_stores(block: Block) -> None:
    """Wait for the stores of a block before anything else touches global memory, and at its end.

    Stores of small tiles run together; a large one waits until the tiles before it are free.
    """
    started: list[SSAValue] = []
    size = 0
    for op in tuple(block.ops):
        grown = size + _stored_bytes(op)
        if started and (_ends_stores(op) or (grown > size and grown > _TOGETHER_BYTES)):
            block.insert_op_before(build(TmaStoreWaitOp, started, location=op.location), op)
            started, grown = [], grown - size
        size = grown if started or grown else 0
        if isinstance(op, TmaStoreOp):
            started.append(op.token)


def _stored_bytes(op: Operation) -> int:
    """The bytes of a tile that is made to be stored."""
    if not isinstance(op, LocalAllocOp):
        return 0
    is_stored = any(isinstance(use.operation, TmaStoreOp) for use in op.result.uses)
    assert isinstance(op.result.type, SharedType)
    return tile_bytes(op.result.type) if is_stored else 0


def _ends_stores(op: Operation) -> bool:
    if isinstance(op, TmaStoreOp):
        return False
    if _ends_stretch(op):
        return True
    return not touches_only_shared(op)
