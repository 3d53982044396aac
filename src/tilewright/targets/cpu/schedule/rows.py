"""Which tiles of pointers go from element to element: rows."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tilewright.analysis.affine.tiles import AffineTiles
from tilewright.ir.types import PointerType, element_of, shape_of


def is_row(structure: AffineTiles, pointer: SSAValue) -> bool:
    """Whether pointers go from element to element along the one dimension that they have."""
    pairs = zip(structure.strides(pointer), shape_of(pointer.type), strict=True)
    moving = [stride for stride, extent in pairs if extent > 1]
    if len(moving) != 1 or moving[0] is None or moving[0].jumps:
        return False
    return moving[0].as_int() == 1


def is_loaded_row(structure: AffineTiles, value: SSAValue, pointer: SSAValue) -> bool:
    """Whether a value that is loaded along a row lies in memory as it would in the arena."""
    kind = element_of(pointer.type)
    is_same = isinstance(kind, PointerType) and kind.pointee == element_of(value.type)
    return is_same and is_row(structure, pointer)
