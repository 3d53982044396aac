"""Moving tiles between layouts and memories: what the laid-out levels (T1, T2) add.

A shared tile is a place; what orders accesses to it is a barrier between the warps of the
program, a token (the async ops of one role), or a ring (between roles, or from a copy engine).
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import IntegerAttr, UnitAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tilewright.ir.effects import (
    Allocation,
    Effect,
    Extent,
    Group,
    Order,
    Resource,
    Wait,
    read,
    write,
)
from tilewright.ir.encoding import SharedType, layout_of, shared_part
from tilewright.ir.op import ACCESSES, EXCHANGES, Array, DerivedAddress, SharedViewOp, TileOp
from tilewright.ir.plans import SHARED, ProductAttr
from tilewright.ir.types import element_of, shape_of
from tilewright.layout.parts import part_registers, part_step
from tilewright.ops.creation.ir import constant_of
from tilewright.ops.matmul.ir import ProductOp
from tilewright.ops.shape.ir import PermutingOp
from tilewright.support.errors import UnsupportedLayout


@irdl_op_definition
class ConvertLayoutOp(TileOp):
    """`src` in another layout; no element changes."""

    name = "ttg.convert_layout"
    src = operand_def()
    result = result_def()
    traits = traits_def(Pure(), DerivedAddress(), EXCHANGES)

    def verify_(self) -> None:
        """Shape and element stay."""
        same_shape = shape_of(self.src.type) == shape_of(self.result.type)
        if not same_shape or element_of(self.src.type) != element_of(self.result.type):
            raise VerifyException(f"{self.name}: {self.src.type} to {self.result.type}")

    def reference(self, src: Array) -> Array:
        return src


def _require_fitting(op: TileOp, tile: Attribute, shared: Attribute) -> None:
    assert isinstance(shared, SharedType)
    fits = layout_of(tile).shape == shared.extents() and element_of(tile) == shared.element
    if not fits:
        raise VerifyException(f"{op.name}: {tile} does not fit {shared}")


@irdl_op_definition
class LocalAllocOp(TileOp):
    """A new shared tile, holding `src` where there is one.

    `offset_bytes` is its place in the program's shared memory, given at T2.
    """

    name = "ttg.local_alloc"
    src = opt_operand_def()
    result = result_def(SharedType)
    offset_bytes = opt_prop_def(IntegerAttr)

    def effects(self) -> tuple[Effect, ...]:
        made = Allocation(Resource.SHARED, self.result)
        return (made,) if self.src is None else (made, write(Resource.SHARED, self.result))

    def verify_(self) -> None:
        """The source fits the place."""
        if self.src is not None:
            _require_fitting(self, self.src.type, self.result.type)


def shared_tiles_of(value: SSAValue) -> Iterator[LocalAllocOp]:
    """The shared tiles that are made of a value."""
    users = (use.operation for use in value.uses)
    return (user for user in users if isinstance(user, LocalAllocOp))


@irdl_op_definition
class LocalStoreOp(TileOp):
    """Write the tile `src` to the shared tile `dst`."""

    name = "ttg.local_store"
    src = operand_def()
    dst = operand_def(SharedType)

    def effects(self) -> tuple[Effect, ...]:
        return (write(Resource.SHARED, self.dst),)

    def verify_(self) -> None:
        """The source fits the place."""
        _require_fitting(self, self.src.type, self.dst.type)


@irdl_op_definition
class LocalLoadOp(TileOp):
    """The shared tile `src` as a register tile."""

    name = "ttg.local_load"
    src = operand_def(SharedType)
    result = result_def()

    def effects(self) -> tuple[Effect, ...]:
        return (read(Resource.SHARED, self.src),)

    def verify_(self) -> None:
        """The result fits the place."""
        _require_fitting(self, self.result.type, self.src.type)


@irdl_op_definition
class MemdescIndexOp(SharedViewOp):
    """Slot `index` (i32) of a shared tile of several slots."""

    name = "ttg.memdesc_index"
    src = operand_def(SharedType)
    index = operand_def()
    result = result_def(SharedType)
    traits = traits_def(Pure())

    def slot_number(self) -> int | None:
        """A constant index."""
        number = constant_of(self.index)
        return None if number is None else int(number)


@irdl_op_definition
class MemdescTransOp(PermutingOp, SharedViewOp):
    """A shared tile with its dimensions permuted: the same bytes, seen as `order`."""

    name = "ttg.memdesc_trans"
    src = operand_def(SharedType)
    result = result_def(SharedType)
    traits = traits_def(Pure())


@irdl_op_definition
class MemdescSliceOp(SharedViewOp):
    """Part number `part` (i32) along `dim` of a shared tile of one slot: a view of its bytes.

    The result is as large as one part, in the layout of the whole: rows of a part lie as far
    apart as those of the whole do.
    """

    name = "ttg.memdesc_slice"
    src = operand_def(SharedType)
    part = operand_def()
    dim = prop_def(IntegerAttr)
    result = result_def(SharedType)
    traits = traits_def(Pure())

    def step_elements(self) -> int:
        """The elements of memory from a part to the next. *Raises*: UnsupportedLayout."""
        return part_step(layout_of(self.src.type), self.dim.value.data, self.result.type.extents())

    def verify_(self) -> None:
        """Whole parts along one dim of a whole tile, each the first one moved."""
        whole, part, dim = self.src.type, self.result.type, self.dim.value.data
        assert isinstance(whole, SharedType) and isinstance(part, SharedType)
        if part != shared_part(whole, part.extents()) or whole.slots.data != 1:
            raise VerifyException(f"{self.name}: {part} is no part of {whole}")
        extents = list(zip(whole.extents(), part.extents(), strict=True))
        is_cut = [outer % inner == 0 for outer, inner in extents]
        others = [outer == inner for d, (outer, inner) in enumerate(extents) if d != dim]
        if not 0 <= dim < len(extents) or not all((*is_cut, *others)) or whole.is_part():
            raise VerifyException(f"{self.name}: {whole} is not cut along {dim} into {part}")
        try:
            self.step_elements()
        except UnsupportedLayout as error:
            raise VerifyException(f"{self.name}: {error}") from error


@irdl_op_definition
class ExtractSliceOp(TileOp):
    """Part number `part` along `dim` of a register tile: registers of the same threads."""

    name = "ttg.extract_slice"
    src = operand_def()
    dim = prop_def(IntegerAttr)
    part = prop_def(IntegerAttr)
    result = result_def()
    traits = traits_def(Pure())

    def first(self) -> tuple[int, ...]:
        """The coordinates of the part's first element."""
        extents, dim = shape_of(self.result.type), self.dim.value.data
        part = self.part.value.data
        return tuple(part * extent if d == dim else 0 for d, extent in enumerate(extents))

    def reference(self, src: Array) -> Array:
        sides = zip(self.first(), shape_of(self.result.type), strict=True)
        return src[tuple(slice(at, at + extent) for at, extent in sides)]

    def source_registers(self) -> tuple[int, ...]:
        """The register of `src` that each of the result is. *Raises*: UnsupportedLayout."""
        return part_registers(layout_of(self.src.type), layout_of(self.result.type), self.first())

    def verify_(self) -> None:
        """The part lies in the tile, and its elements stay in their threads."""
        whole, part, dim = shape_of(self.src.type), shape_of(self.result.type), self.dim.value.data
        fits = [
            at + inner <= outer and (d == dim or inner == outer)
            for d, (at, inner, outer) in enumerate(zip(self.first(), part, whole, strict=True))
        ]
        if not all(fits) or element_of(self.src.type) != element_of(self.result.type):
            raise VerifyException(f"{self.name}: {part} from {self.first()} on is not in {whole}")
        try:
            self.source_registers()
        except UnsupportedLayout as error:
            raise VerifyException(f"{self.name}: {error}") from error


@irdl_op_definition
class LaidOutDotOp(ProductOp):
    """A product as its plan says.

    `a` and `b` are register tiles in the instruction's operand layouts, or shared tiles, as
    `product` has it. `is_async` leaves the product running until a wait.
    """

    name = "ttg.dot"
    product = prop_def(ProductAttr)
    is_async = opt_prop_def(UnitAttr)

    def effects(self) -> tuple[Effect, ...]:
        """It reads its shared operands, with wgmma by the asynchronous unit."""
        is_wgmma = self.product.data.instruction == "wgmma"
        shared = [v for v in (self.a, self.b) if isinstance(v.type, SharedType)]
        if self.is_async is None:
            return tuple(read(Resource.SHARED, v, is_async=is_wgmma) for v in shared)
        start = Extent.START
        started = (read(Resource.SHARED, v, is_async=is_wgmma, extent=start) for v in shared)
        return (*started, Group(Resource.QUEUE, LaidOutDotOp), write(Resource.QUEUE))

    def verify_(self) -> None:
        """The product is one, and its operands are where planned."""
        super().verify_()
        plan = self.product.data
        for name, value, place in (("a", self.a, plan.a), ("b", self.b, plan.b)):
            if isinstance(value.type, SharedType) != (place == SHARED):
                raise VerifyException(f"{self.name}: {name} is {value.type}, planned is `{plan}`")


@irdl_op_definition
class DotWaitOp(TileOp):
    """Wait until at most `pending` async products still run; the results are `tiles`."""

    name = "ttg.dot_wait"
    tiles = var_operand_def()
    pending = prop_def(IntegerAttr)
    outputs = var_result_def()

    def effects(self) -> tuple[Effect, ...]:
        """The end of the reads of every product that the tiles come from."""
        pending = _number(self, "pending")
        ended = Wait(Resource.SHARED, tuple(self.tiles), (LaidOutDotOp,), pending=pending)
        return (write(Resource.QUEUE), ended)


def _number(op: TileOp, name: str) -> int | None:
    """A number of an op; None in one that is only described."""
    attribute = op.properties.get(name)
    return attribute.value.data if isinstance(attribute, IntegerAttr) else None


@irdl_op_definition
class LocalBarrierOp(TileOp):
    """Every warp of the program waits here; shared accesses before are done after."""

    name = "ttg.barrier"

    def effects(self) -> tuple[Effect, ...]:
        return (Order.BARRIER,)


@irdl_op_definition
class AsyncCopyOp(TileOp):
    """Start copying *ptr[i] (where mask[i], else `other` or zero) to the shared tile `dst`."""

    name = "ttg.async_copy_global_to_local"
    traits = traits_def(ACCESSES)
    ptr = operand_def()
    dst = operand_def(SharedType)
    mask = opt_operand_def()
    other = opt_operand_def()
    cache = opt_prop_def(IntegerAttr)
    evict = opt_prop_def(IntegerAttr)
    token = result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def effects(self) -> tuple[Effect, ...]:
        return (
            read(Resource.GLOBAL, self.ptr, extent=Extent.START),
            write(Resource.SHARED, self.dst, extent=Extent.START),
        )


@irdl_op_definition
class AsyncCommitOp(TileOp):
    """Close the group of the copies started so far; the token stands for the group."""

    name = "ttg.async_commit_group"
    tokens = var_operand_def()
    token = result_def()

    def effects(self) -> tuple[Effect, ...]:
        return (write(Resource.QUEUE), Group(Resource.QUEUE, AsyncCopyOp))


@irdl_op_definition
class AsyncWaitOp(TileOp):
    """Wait until at most `num` groups of this thread's copies are still running."""

    name = "ttg.async_wait"
    tokens = var_operand_def()
    num = prop_def(IntegerAttr)
    token = result_def()

    def effects(self) -> tuple[Effect, ...]:
        """The end of every copy in the groups that the tokens stand for."""
        through = (AsyncCopyOp, AsyncCommitOp, AsyncWaitOp)
        pending = _number(self, "num")
        ended = Wait(Resource.SHARED, tuple(self.tokens), through, pending=pending)
        return (write(Resource.QUEUE), ended)
