"""Where materialised tiles live: dense buffers of the worker's arena."""

from __future__ import annotations

from math import prod

from xdsl.ir import Attribute, SSAValue

from tilewright.support.dataclass import dataclass, replace


@dataclass(frozen=True)
class Buffer:
    """A tile in the arena over `shape`, dense, as elements of `element`.

    Neighbours along `last` lie next to each other, the other dimensions around it as in a
    row-major tile; None is the last dimension, a row-major tile. The rows of a matrix may lie
    `pitch` elements apart, more than they are long.
    """

    base: SSAValue
    shape: tuple[int, ...]
    element: Attribute
    last: int | None = None
    pitch: int | None = None

    @property
    def row_stride(self) -> int:
        """Elements between neighbours along the dimension before the last."""
        return self.shape[-1] if self.pitch is None else self.pitch

    def strides(self) -> tuple[int, ...]:
        """Elements between neighbours per dimension."""
        if self.pitch is not None:
            return self.pitch, 1
        if self.last is None:
            return row_major(self.shape)
        last, shape = self.last, self.shape
        rest = row_major((*shape[:last], *shape[last + 1 :]))
        outer = [stride * shape[last] for stride in rest]
        return (*outer[:last], 1, *outer[last:])

    def reshaped(self, shape: tuple[int, ...]) -> Buffer:
        """The same elements under another shape."""
        assert prod(shape) == prod(self.shape), (shape, self.shape)
        assert self.last is None and self.pitch is None, "only a dense tile has other shapes"
        return replace(self, shape=shape)


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides of `shape` in elements."""
    return tuple(prod(shape[dim + 1 :]) for dim in range(len(shape)))
