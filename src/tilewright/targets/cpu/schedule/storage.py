"""Where materialised tiles live: dense buffers of the worker's arena."""

from __future__ import annotations

from math import prod

from xdsl.ir import Attribute, SSAValue

from tilewright.support.dataclass import dataclass, replace


@dataclass(frozen=True)
class Buffer:
    """A tile in the arena over `shape`, dense, as elements of `element`.

    Neighbours along `last` lie next to each other, the other dimensions around it as in a
    row-major tile; None is the last dimension, a row-major tile.
    """

    base: SSAValue
    shape: tuple[int, ...]
    element: Attribute
    last: int | None = None

    def strides(self) -> tuple[int, ...]:
        """Elements between neighbours per dimension."""
        if self.last is None:
            return row_major(self.shape)
        last, shape = self.last, self.shape
        rest = row_major((*shape[:last], *shape[last + 1 :]))
        outer = [stride * shape[last] for stride in rest]
        return (*outer[:last], 1, *outer[last:])

    def reshaped(self, shape: tuple[int, ...]) -> Buffer:
        """The same elements under another shape."""
        assert prod(shape) == prod(self.shape), (shape, self.shape)
        assert self.last is None, "only a row-major tile has other shapes"
        return replace(self, shape=shape)


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides of `shape` in elements."""
    return tuple(prod(shape[dim + 1 :]) for dim in range(len(shape)))
