"""How a loaded tile waits for its iteration: in a slot of a ring, or in registers."""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from tilewright.ir.annotations import annotated
from tilewright.ir.encoding import SharedType, has_layout, layout_of, shared_tile
from tilewright.ir.plans import AccessAttr, CopyAttr
from tilewright.ir.types import element_of, shape_of, storage_bytes
from tilewright.layout.build import shared_linear
from tilewright.ops.memory.ir import LoadOp
from tilewright.ops.staging import LocalAllocOp, shared_tiles_of
from tilewright.schedule.plan.copies import copy_elems
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import LayoutError


@dataclass(frozen=True)
class Fetch:
    """A load that runs ahead; `inputs` are what it takes.

    With a `tile` it is copied to slots of that type, `elems` by one instruction of a lane or all
    `by_engine`; what reads it is `alloc`, a shared operand, or else a load from the slot. Without
    one its registers are carried to the next iteration.
    """

    load: Operation
    inputs: tuple[SSAValue, ...]
    tile: SharedType | None = None
    elems: int = 0
    alloc: LocalAllocOp | None = None
    by_engine: bool = False

    @property
    def slot_bytes(self) -> int:
        """The bytes of a slot; 0 where there is none."""
        return 0 if self.tile is None else layout_bytes(self.tile)


def layout_bytes(tile: SharedType) -> int:
    """The bytes of one slot of a shared tile."""
    return layout_of(tile).size("offset") * storage_bytes(tile.element)


def fetch_of(load: LoadOp) -> Fetch:
    """How a laid-out load runs ahead: as a copy to shared memory where it can be one."""
    alloc, inputs = _alloc_of(load), tuple(load.operands)
    plan = annotated(load, CopyAttr)
    if alloc is not None and plan is not None and plan.is_async:
        assert isinstance(alloc.result.type, SharedType)
        return Fetch(load, inputs, alloc.result.type, plan.elems, alloc)
    if not isinstance(load.result.type, TensorType) or not has_layout(load.result.type):
        return Fetch(load, inputs)
    tile = _plain_tile(load)
    elems = _plain_elems(load, tile)
    return Fetch(load, inputs, tile, elems) if elems else Fetch(load, inputs)


def _alloc_of(load: LoadOp) -> LocalAllocOp | None:
    """The shared tile that is all that becomes of a load, in its block."""
    alloc = next(shared_tiles_of(load.result), None)
    is_all = alloc is not None and load.result.has_one_use() and alloc.parent is load.parent
    return alloc if is_all else None


def _plain_elems(load: LoadOp, tile: SharedType) -> int:
    try:
        return copy_elems(load, tile)
    except LayoutError:  # extents that no threads share evenly
        return 0


def _plain_tile(load: LoadOp) -> SharedType:
    """A shared tile in which elements lie as the load finds them in memory."""
    type_ = load.result.type
    plan = annotated(load, AccessAttr)
    rank = len(shape_of(type_))
    order = plan.order if plan is not None else tuple(reversed(range(rank)))
    return shared_tile(element_of(type_), shared_linear(shape_of(type_), order))
