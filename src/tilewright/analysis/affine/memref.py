"""Whether an access is a `memref.reinterpret_cast` of its argument, and what is cut from it.

    %view = memref.reinterpret_cast %base to offset: [o], sizes: [64, 32], strides: [s, 1]

A dimension that wraps is two views, one behind the other, and one that is looked up is a view for
each of its indices, as is one along which a vector of i1 says what is accessed. A mask is, along
each dimension, the length of what is copied.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from tilewright.analysis.affine.access import TileAccess
from tilewright.analysis.affine.expression import Expression
from tilewright.analysis.affine.mask import Choice
from tilewright.analysis.affine.text import name_of
from tilewright.ops.function import is_argument
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class ViewDim:
    """One dimension of a view; indices from the greatest of `lower` to the least of `upper` count.

    `start` elements of the dimension are in the view's offset, unless it wraps at `modulus`: then
    it starts at start mod modulus, and goes on at 0 where it ends.
    """

    size: int
    stride: Expression
    start: Expression
    modulus: Expression | None
    lower: tuple[Expression, ...]
    upper: tuple[Expression, ...]


@dataclass(frozen=True)
class MemrefView:
    """A view of `base`, `offset` elements from its start; see the module.

    `offset` leaves out what wraps and what is looked up. `looked_up` is the dimension that a view
    is one index of, and the vector of these indices. `choices` are vectors that say, each along
    one dimension, which of its indices count. Starts of dimensions that wrap are taken not
    to be negative: there is nothing before such a dimension.
    """

    base: SSAValue
    offset: Expression
    dims: tuple[ViewDim, ...]
    looked_up: tuple[int, SSAValue] | None = None
    choices: tuple[Choice, ...] = ()

    @property
    def wraps(self) -> tuple[int, ...]:
        """The dimensions that wrap."""
        return tuple(d for d, dim in enumerate(self.dims) if dim.modulus is not None)


def as_reinterpret_cast(
    access: TileAccess, is_store: bool = False, takes_choices: bool = False
) -> MemrefView | str:
    """The view that an access is; why there is none where there is none.

    Only with `takes_choices` is it one where a vector of i1 says which of its indices count.
    """
    if not is_argument(access.base):
        return f"its pointer {name_of(access.base)} is no argument"
    choices = access.mask.choices if takes_choices else []
    if len(access.mask.opaque) > len(choices):
        return "its mask is no bound along a dimension"
    looked_up = [d for d, dim in enumerate(access.dims) if dim.indices is not None]
    if len(looked_up) > 1:
        return f"dimensions {looked_up[0]} and {looked_up[1]} are both looked up"
    offset, dims = access.offset, list[ViewDim]()
    for number, dim in enumerate(access.dims):
        if is_store and dim.extent > 1 and dim.stride.is_zero():
            return f"it writes the same elements all along dimension {number}"
        if dim.modulus is not None and (dim.lower or dim.upper):
            return f"dimension {number} wraps and has a mask"
        if dim.modulus is None:
            offset = offset.plus(dim.start.times(dim.stride))
        view = ViewDim(dim.extent, dim.stride, dim.start, dim.modulus, dim.lower, dim.upper)
        dims.append(view)
    indices = access.dims[looked_up[0]].indices if looked_up else None
    found = None if indices is None else (looked_up[0], indices)
    return MemrefView(access.base, offset, tuple(dims), found, tuple(choices))
