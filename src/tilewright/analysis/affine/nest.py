"""Whether an access is one of a loop nest: each dimension a stride, known when the loop starts."""

from __future__ import annotations

from tilewright.analysis.affine.stride import Stride
from tilewright.analysis.affine.tile import AffineTile
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class NestAccess:
    """The strides of a tile of pointers, all known; a stride that jumps is tested at run time."""

    strides: tuple[Stride, ...]

    @property
    def jumping(self) -> tuple[int, ...]:
        """The dimensions along which addresses may jump."""
        return tuple(d for d, stride in enumerate(self.strides) if stride.jumps)

    def contiguous(self) -> tuple[int, ...]:
        """The dimensions along which elements are adjacent."""
        return tuple(d for d, stride in enumerate(self.strides) if stride.as_int() == 1)


def as_nest_access(tile: AffineTile) -> NestAccess | str:
    """The strides of a tile; which dimension has none where one has none."""
    for dim, stride in enumerate(tile.strides):
        if stride is None:
            return f"its pointers are not affine along dimension {dim}"
    return NestAccess(tuple(stride for stride in tile.strides if stride is not None))
