"""Where materialised tiles live: row-major buffers of the worker's arena."""

from __future__ import annotations

from math import prod

from xdsl.ir import Attribute, SSAValue

from tilewright.support.dataclass import dataclass, replace


@dataclass(frozen=True)
class Buffer:
    """A tile in the arena, row-major over `shape`, as elements of `element`."""

    base: SSAValue
    shape: tuple[int, ...]
    element: Attribute

    def strides(self) -> tuple[int, ...]:
        """Elements between neighbours per dimension."""
        return row_major(self.shape)

    def reshaped(self, shape: tuple[int, ...]) -> Buffer:
        """The same elements under another shape."""
        assert prod(shape) == prod(self.shape), (shape, self.shape)
        return replace(self, shape=shape)


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides of `shape` in elements."""
    return tuple(prod(shape[dim + 1 :]) for dim in range(len(shape)))
