"""How tiles lie in the slots of a ring that the copy engine fills."""

from __future__ import annotations

from xdsl.ir import Attribute

from tilewright.ir.encoding import SharedType, layout_of, shared_tile
from tilewright.ir.types import element_of, shape_of, storage_bytes
from tilewright.layout.build import shared_swizzled
from tilewright.ops.channels import GetOp
from tilewright.ops.staging import LocalAllocOp

# Source: PTX ISA 8.8, 5.5.6, "Swizzling modes": bytes of a row, the longest first.
_SWIZZLES = (128, 64, 32)


def read_type(gets: list[GetOp]) -> SharedType:
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
