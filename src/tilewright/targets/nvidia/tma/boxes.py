"""How a block of a tensor is moved by the copy engine: its shared layout, and in which boxes.

The engine moves boxes of at most 256 elements along each dim, whose rows with a swizzle are at
most as long as the swizzle. A block that is larger takes several.

*Source*: CUDA driver API 13.0, `cuTensorMapEncodeTiled`; PTX ISA 8.8, 5.5, "Tensors".
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from tilewright.layout.build import shared_swizzled
from tilewright.layout.linear import LinearLayout
from tilewright.runtime.tensor_descriptor import MAX_RANK
from tilewright.support.dataclass import dataclass

# Chosen, not measured: a block of more copies goes by plain accesses, which are always right.
MAX_BOXES = 64
MAX_TILE_BYTES = 128 << 10
"""What a block may take of shared memory before plain accesses are the better choice.

Chosen, not measured: more than half of what a program of an H100 can have."""
# Source: CUDA driver API 13.0, cuTensorMapEncodeTiled: the extents of a box and the bytes of its
# rows; PTX ISA 8.8, cp.async.bulk.tensor: where it lies in shared memory.
_MAX_EXTENT = 256
_CHUNK_BYTES = 16
_ALIGNMENT_BYTES = 128
# By definition: fewer rows than the pattern of a swizzle has gain nothing by one.
_SWIZZLED_ROWS = 8


@dataclass(frozen=True)
class BoxPlan:
    """The boxes of a block of `shape`, all of one extent, and where they lie.

    *Units*: `swizzle_bytes` is 0, 32, 64 or 128.
    """

    shape: tuple[int, ...]
    element_bytes: int
    swizzle_bytes: int
    box: tuple[int, ...]

    @property
    def num_bytes(self) -> int:
        """The bytes of the whole block."""
        return prod(self.shape) * self.element_bytes

    def layout(self, rank: int | None = None) -> LinearLayout:
        """The layout of the block in shared memory, as a tile of its last `rank` dims.

        *Constraints*: the dims before those have one element.
        """
        shape = self.shape if rank is None else self.shape[len(self.shape) - rank :]
        order = tuple(reversed(range(len(shape))))
        return shared_swizzled(shape, self.element_bytes, self.swizzle_bytes, order)

    def copies(self) -> list[tuple[int, tuple[int, ...]]]:
        """For each box the byte of the tile that it starts at, and its first coordinates."""
        steps = [range(0, n, b) for n, b in zip(self.shape, self.box, strict=True)]
        return [(self._offset(at) * self.element_bytes, at) for at in product(*steps)]

    def _offset(self, at: Sequence[int]) -> int:
        """The element at which a box lies: rows of a panel first, then panels."""
        width = self.shape[-1]
        if self.swizzle_bytes:
            width = self.swizzle_bytes // self.element_bytes
        row = 0
        for index, extent in zip(at[:-1], self.shape[:-1], strict=True):
            row = row * extent + index
        panel, inside = divmod(at[-1], width)
        return (panel * prod(self.shape[:-1]) + row) * width + inside


def plan_boxes(shape: tuple[int, ...], element_bytes: int) -> BoxPlan | str:
    """The boxes of a block; why the copy engine does not move it where it does not."""
    row_bytes = shape[-1] * element_bytes
    if not 1 <= len(shape) <= MAX_RANK:
        return f"a block of {len(shape)} dimensions; 1 to {MAX_RANK} are possible"
    if row_bytes % _CHUNK_BYTES:
        return f"rows of {row_bytes} bytes are no multiple of {_CHUNK_BYTES}"
    if prod(shape) * element_bytes > MAX_TILE_BYTES:
        return f"{prod(shape) * element_bytes} bytes are much for shared memory"
    swizzle = 0
    if prod(shape[:-1]) >= _SWIZZLED_ROWS:
        swizzle = next((s for s in (128, 64, 32) if row_bytes % s == 0), 0)
    plan = BoxPlan(shape, element_bytes, swizzle, _box(shape, element_bytes, swizzle))
    return _copies_reason(plan) or plan


def box_reason(plan: BoxPlan) -> str:
    """Why the engine does not move a block in given boxes; '' where it does."""
    decided = plan_boxes(plan.shape, plan.element_bytes)
    if isinstance(decided, str):
        return decided
    if len(plan.box) != len(plan.shape):
        return f"it has {len(plan.box)} dims, the block has {len(plan.shape)}"
    if any(not 1 <= b <= _MAX_EXTENT or n % b for n, b in zip(plan.shape, plan.box, strict=True)):
        return f"the block is {'x'.join(map(str, plan.shape))}"
    if plan.swizzle_bytes not in (0, 32, 64, 128):
        return "a swizzle has 32, 64 or 128 bytes, or 0"
    row_bytes, box_bytes = (e[-1] * plan.element_bytes for e in (plan.shape, plan.box))
    if row_bytes % (plan.swizzle_bytes or row_bytes):
        return f"rows of {row_bytes} bytes are no multiple of the swizzle"
    if plan.swizzle_bytes and box_bytes != plan.swizzle_bytes:
        return f"rows of {box_bytes} bytes are not as long as the swizzle"
    if not _is_contiguous(plan):
        return "the box is not contiguous in shared memory"
    unit = _SWIZZLED_ROWS * plan.swizzle_bytes
    if unit and any(offset % unit for offset, _ in plan.copies()):
        return f"parts of the block do not start where the swizzle does, at multiples of {unit}"
    return _copies_reason(plan)


def _is_contiguous(plan: BoxPlan) -> bool:
    """Whether a box lies in one piece: past the first dim that it has a part of, one of each."""
    is_whole = bool(plan.swizzle_bytes) or plan.box[-1] == plan.shape[-1]
    for extent, part in zip(reversed(plan.shape[:-1]), reversed(plan.box[:-1]), strict=True):
        if not is_whole and part != 1:
            return False
        is_whole = is_whole and part == extent
    return True


def _copies_reason(plan: BoxPlan) -> str:
    copies = plan.copies()
    if len(copies) > MAX_BOXES:
        return f"the block takes {len(copies)} copies"
    if any(offset % _ALIGNMENT_BYTES for offset, _ in copies):
        return f"parts of the block do not start at multiples of {_ALIGNMENT_BYTES} bytes"
    return ""


def _box(shape: tuple[int, ...], element_bytes: int, swizzle_bytes: int) -> tuple[int, ...]:
    """The largest box that is contiguous in shared memory."""
    width = swizzle_bytes // element_bytes if swizzle_bytes else _extent(shape[-1])
    is_whole = bool(swizzle_bytes) or width == shape[-1]
    box = [width]
    for extent in reversed(shape[:-1]):
        box.append(_extent(extent) if is_whole else 1)
        is_whole = is_whole and box[-1] == extent
    return tuple(reversed(box))


def _extent(extent: int) -> int:
    """The largest part of an extent that a box may have."""
    return next(n for n in range(min(extent, _MAX_EXTENT), 0, -1) if extent % n == 0)
