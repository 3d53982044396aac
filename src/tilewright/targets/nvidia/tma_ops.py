"""The ops of the copy engine: tensor maps, copies between tensors and shared tiles, mbarriers.

A load is announced to an mbarrier, and every thread waits for its phase; a phase of a parity has
ended when the bytes are there. A store is a group of its thread, which waits for it by count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import (
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
)
from xdsl.irdl import (
    AttrSizedOperandSegments,
    Operand,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tilewright.ir.effects import (
    Access,
    Effect,
    Extent,
    Group,
    Order,
    Resource,
    Wait,
    read,
    update,
    write,
)
from tilewright.ir.encoding import SharedType
from tilewright.ir.op import DerivedAddress, OneThreadOp, SharedViewOp, TileOp
from tilewright.ir.types import DescriptorType, element_of, i1, i32, shape_of
from tilewright.ops.function import FuncOp
from tilewright.ops.rings import RingFill, RingOp, RingType


@irdl_op_definition
class TensorMapOp(TileOp):
    """A tensor descriptor that the launch makes and passes as parameter `index` of the maps.

    `recipe` is how it follows from the kernel's arguments: a `TensorMapRecipe` as JSON.
    `arguments` are those, the one that its address comes from first.
    """

    name = "ttng.tensor_map"
    arguments = var_operand_def()
    recipe = prop_def(StringAttr)
    index = prop_def(IntegerAttr)
    result = result_def()
    traits = traits_def(Pure(), DerivedAddress())


@irdl_op_definition
class MakeTensorMapOp(OneThreadOp):
    """A tensor descriptor that the program makes, in a slot of global memory of its own.

    `number` is what the elements are to the engine, `index` which map of the program this is.
    `workspace` (a shared tile of 128 bytes) and `scratch` come at T1.
    """

    name = "ttng.make_tensor_map"
    base = operand_def()
    shape = var_operand_def()
    strides = var_operand_def()
    workspace = opt_operand_def(SharedType)
    scratch = opt_operand_def()
    number = prop_def(StringAttr)
    fills_nan = opt_prop_def(UnitAttr)
    index = prop_def(IntegerAttr)
    result = result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(DerivedAddress())

    def effects(self) -> tuple[Effect, ...]:
        """One thread writes its workspace and copies it to the slot.

        A part of a tile of all replicas is for that thread alone: there is nothing to order.
        """
        made = write(Resource.WORKSPACE, self.scratch)
        space = self.workspace
        is_own = space is None or isinstance(space.owner, SharedViewOp)
        return (made,) if is_own else (write(Resource.SHARED, space), made)


@irdl_op_definition
class TakeMapSlotOp(OneThreadOp):
    """A slot for `num_maps` tensor maps that no other running program has, of `num_slots`.

    The address is for the one thread to know that starts the copies: a word that says that the
    slot is taken, and from byte 128 on the maps. `takers` is how many of a program take one, and
    the number of the first replica that does so here.
    """

    name = "ttng.take_map_slot"
    num_slots = prop_def(IntegerAttr)
    num_maps = prop_def(IntegerAttr)
    takers = opt_prop_def(DenseArrayBase[IntegerType])
    result = result_def()

    def effects(self) -> tuple[Effect, ...]:
        return (update(Resource.WORKSPACE),)


@irdl_op_definition
class LeaveMapSlotOp(OneThreadOp):
    """Give a slot back: no copy uses its maps any more."""

    name = "ttng.leave_map_slot"
    slot = operand_def()

    def effects(self) -> tuple[Effect, ...]:
        return (update(Resource.WORKSPACE, self.slot),)


def _require_block(op: TileOp, desc: object, tile: SharedType) -> None:
    assert isinstance(desc, DescriptorType)
    shape, extents = shape_of(desc.block), tile.extents()
    first = len(shape) - len(extents)
    is_shape = first >= 0 and shape == (1,) * first + extents
    is_block = is_shape and element_of(desc.block) == tile.element
    if not is_block:
        raise VerifyException(f"{op.name}: {tile} is no block of {desc}")


@irdl_op_definition
class InitBarriersOp(TileOp):
    """Make `count` mbarriers, for one arrival each, before any warp goes on.

    `offset_bytes` is their place in the program's shared memory, given at T2.
    """

    name = "ttng.init_mbarriers"
    count = prop_def(IntegerAttr)
    offset_bytes = opt_prop_def(IntegerAttr)

    def effects(self) -> tuple[Effect, ...]:
        return (Order.BARRIER,)


class BlockLoad(TileOp):
    """The facet of ops that start copying a block of the tensor `desc` to the tile `dst`."""

    if TYPE_CHECKING:  # each op defines them
        desc: Operand
        dst: Operand

    def effects(self) -> tuple[Effect, ...]:
        return (
            read(Resource.GLOBAL, self.desc, is_async=True, extent=Extent.START),
            write(Resource.SHARED, self.dst, is_async=True, extent=Extent.START),
        )

    def verify_(self) -> None:
        """The tile is a block of the tensor."""
        assert isinstance(self.dst.type, SharedType)
        _require_block(self, self.desc.type, self.dst.type)


@irdl_op_definition
class TmaLoadOp(BlockLoad):
    """Start copying the block at `indices` to the shared tile `dst`.

    Mbarrier number `barrier`, whose place is `barrier_bytes`, counts the bytes. The first of the
    loads that share a phase of it has `announced_bytes`, those of all. `is_fenced`: it may read
    what threads wrote in this launch.
    """

    name = "ttng.tma_load"
    desc = operand_def()
    dst = operand_def(SharedType)
    indices = var_operand_def()
    barrier = prop_def(IntegerAttr)
    barrier_bytes = opt_prop_def(IntegerAttr)
    announced_bytes = opt_prop_def(IntegerAttr)
    is_fenced = opt_prop_def(UnitAttr)
    token = result_def()


@irdl_op_definition
class TmaFillOp(BlockLoad, RingFill):
    """Start copying the block at `indices` to the shared tile `dst` of a slot of `ring`.

    The slot is full when the copy is done and the role has committed it with its bytes. At T2
    `slot` (i32) is given; at T1 it is the one that the role acquired last. Where `shared` holds,
    the program beside this one copies the same block: each copies half of it to both.
    """

    name = "ttng.tma_fill"
    desc = operand_def()
    dst = operand_def(SharedType)
    ring = operand_def(RingType)
    slot = opt_operand_def()
    indices = var_operand_def()
    shared = opt_operand_def(i1)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def verify_(self) -> None:
        """The ring is named itself, and shared where the block is; the slot is i32."""
        super().verify_()
        if not isinstance(self.ring.owner, RingOp):
            raise VerifyException(f"{self.name}: its ring is no result of {RingOp.name}")
        if self.slot is not None and self.slot.type != i32:
            raise VerifyException(f"{self.name}: the slot is i32")
        if self.shared is not None and self.ring.owner.programs == 1:
            raise VerifyException(f"{self.name}: the programs of a cluster do not share the ring")


@irdl_op_definition
class TmaWaitOp(TileOp):
    """Wait in every thread until the loads of `tokens` are done, which share an mbarrier.

    `phase` (i32, given at T2) is the parity of the mbarrier's phase.
    """

    name = "ttng.tma_wait"
    tokens = var_operand_def()
    phase = opt_operand_def()
    barrier = prop_def(IntegerAttr)
    barrier_bytes = opt_prop_def(IntegerAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def effects(self) -> tuple[Effect, ...]:
        """Every thread waits for the mbarrier itself, so what it does next is ordered."""
        arrived = Wait(Resource.SHARED, tuple(self.tokens), (TmaLoadOp,), is_joint=True)
        return (write(Resource.QUEUE), arrived)


@irdl_op_definition
class TmaLoadSlotOp(BlockLoad):
    """Where `condition` holds, start copying the block at `indices` to `dst`, slot `slot`.

    Slots have an mbarrier each, from number `barrier` on, at `barrier_bytes`. The first of the
    loads to a slot has `announced_bytes`, those of all. `is_fenced`: as of `ttng.tma_load`.
    """

    name = "ttng.tma_load_slot"
    desc = operand_def()
    dst = operand_def(SharedType)
    slot = operand_def(i32)
    condition = operand_def(i1)
    indices = var_operand_def()
    barrier = prop_def(IntegerAttr)
    barrier_bytes = opt_prop_def(IntegerAttr)
    announced_bytes = opt_prop_def(IntegerAttr)
    is_fenced = opt_prop_def(UnitAttr)


@irdl_op_definition
class TmaWaitSlotOp(TileOp):
    """Wait in every thread until the loads to slot `slot`, whose tiles these are, are done.

    `phase` (i32) is the parity of the phase of the slot's mbarrier.
    """

    name = "ttng.tma_wait_slot"
    tiles = var_operand_def(SharedType)
    slot = operand_def(i32)
    phase = operand_def(i32)
    barrier = prop_def(IntegerAttr)
    barrier_bytes = opt_prop_def(IntegerAttr)

    def effects(self) -> tuple[Effect, ...]:
        """Every thread waits for the mbarrier itself, so what it does next is ordered."""
        arrived = Wait(Resource.SHARED, tuple(self.tiles), (TmaLoadSlotOp,), is_joint=True)
        return (write(Resource.QUEUE), arrived)


@irdl_op_definition
class TmaDoneOp(TileOp):
    """No load to a slot of the rings `tiles` runs: each that was started has been waited for.

    A fact, and no instruction: loads that run ahead of a loop start for its iterations only.
    """

    name = "ttng.tma_done"
    tiles = var_operand_def(SharedType)

    def effects(self) -> tuple[Effect, ...]:
        arrived = Wait(Resource.SHARED, tuple(self.tiles), (TmaLoadSlotOp,), is_joint=True)
        return (write(Resource.QUEUE), arrived)


@irdl_op_definition
class TmaStoreOp(TileOp):
    """Start copying the shared tile `src` to the block at `indices`, as a group.

    With `kind` (as in `tt.atomic_rmw`) it is combined atomically, element by element.
    """

    name = "ttng.tma_store"
    desc = operand_def()
    src = operand_def(SharedType)
    indices = var_operand_def()
    kind = opt_prop_def(IntegerAttr)
    token = result_def()

    def effects(self) -> tuple[Effect, ...]:
        global_ = Access(
            Resource.GLOBAL,
            reads=self.kind is not None,
            writes=True,
            value=self.desc,
            is_async=True,
            extent=Extent.START,
        )
        read_here = read(Resource.SHARED, self.src, is_async=True, extent=Extent.START)
        return (read_here, global_, Group(Resource.QUEUE, TmaStoreOp))

    def verify_(self) -> None:
        """The tile is a block of the tensor."""
        assert isinstance(self.src.type, SharedType)
        _require_block(self, self.desc.type, self.src.type)


@irdl_op_definition
class TmaStoreWaitOp(TileOp):
    """Wait in the thread that started them until the stores of `tokens` have read their tiles.

    Where `pending` is given, it is for all stores of the role but the last so many, and `tokens`
    may be shared tiles, which are kept until here. With `is_complete` also until they have
    written, as other programs see it.
    """

    name = "ttng.tma_store_wait"
    tokens = var_operand_def()
    pending = opt_prop_def(IntegerAttr)
    is_complete = opt_prop_def(UnitAttr)

    def effects(self) -> tuple[Effect, ...]:
        """One thread waits, so others need a barrier behind it."""
        pending = None if self.pending is None else self.pending.value.data
        ended = Wait(Resource.GLOBAL, tuple(self.tokens), (TmaStoreOp,), pending=pending)
        return (write(Resource.QUEUE), ended)


def find_init(kernel: FuncOp) -> InitBarriersOp | None:
    """The op that makes the mbarriers of a kernel, which has some where it loads."""
    return next((op for op in kernel.body.block.ops if isinstance(op, InitBarriersOp)), None)


TENSOR_MAP_OPS = (TensorMapOp, MakeTensorMapOp, TakeMapSlotOp, LeaveMapSlotOp)
"""What stands in T0 already: which accesses the engine makes is decided there."""
TMA_OPS = (
    *TENSOR_MAP_OPS,
    InitBarriersOp,
    TmaLoadOp,
    TmaFillOp,
    TmaWaitOp,
    TmaLoadSlotOp,
    TmaWaitSlotOp,
    TmaDoneOp,
    TmaStoreOp,
    TmaStoreWaitOp,
)
