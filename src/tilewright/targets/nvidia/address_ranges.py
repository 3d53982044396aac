"""Where accesses may be, as numbers that a launch bounds over all its programs and iterations.

Of plain pointers it follows from the affine form of an access, of blocks from their tensor map: an
index is somewhere in its block, inside the tensor.
"""

from __future__ import annotations

import json

from xdsl.ir import Operation, SSAValue

from tilewright.analysis.affine.access import AccessDim, Accesses, TileAccess
from tilewright.analysis.affine.expression import Expression
from tilewright.ir.types import DescriptorType, shape_of
from tilewright.ops.descriptors.ir import (
    DescriptorLoadOp,
    DescriptorReduceOp,
    DescriptorStoreOp,
)
from tilewright.ops.function import is_argument
from tilewright.ops.memory.ir import LoadOp, StoreOp
from tilewright.runtime.launch_numbers import LaunchNumber
from tilewright.support.dataclass import dataclass
from tilewright.targets.nvidia.tensor_map import TensorMapRecipe
from tilewright.targets.nvidia.tma.launch_conditions import range_of
from tilewright.targets.nvidia.tma_ops import TensorMapOp

# By definition: a launch computes in as many bits as addresses have.
_BITS = 64
_ZERO: LaunchNumber = ("constant", 0)
_ONE: LaunchNumber = ("constant", 1)


@dataclass(frozen=True)
class AddressRange:
    """The address of an element of `element_bytes` that an access may touch."""

    address: LaunchNumber
    element_bytes: int

    def before(self, other: AddressRange) -> LaunchNumber:
        """How many bytes lie between this access and another one behind it; else negative."""
        return subtract(subtract(other.address, self.address), ("constant", self.element_bytes))


def range_of_access(op: Operation, accesses: Accesses) -> AddressRange | str:
    """Where a load or store may be; why not, where a launch does not know."""
    if isinstance(op, DescriptorLoadOp | DescriptorStoreOp | DescriptorReduceOp):
        return _range_of_block(op)
    if not isinstance(op, LoadOp | StoreOp):
        return f"{op.name} is no plain access"
    access = accesses.of(op)
    if isinstance(access, str):
        return access
    address = _address_of(access)
    if address is None:
        return "its place does not follow from arguments"
    return AddressRange(address, access.element_bytes)


def apart(load: Operation, store: Operation, accesses: Accesses) -> LaunchNumber | str:
    """A number that is negative where two accesses may touch an element both; or why there is none.

    A bound of it from below tells that no program and no iteration of either meets the other.
    """
    first, second = (range_of_access(op, accesses) for op in (load, store))
    if isinstance(first, str):
        return first
    if isinstance(second, str):
        return second
    return ("max", _BITS, first.before(second), second.before(first))


def no_overlap(one: SSAValue, other: SSAValue) -> str:
    """What a launch has to keep to, in the names of two arguments."""
    names = [value.name_hint or "an argument" for value in (one, other)]
    return f"{names[0]} and {names[1]} do not overlap"


def _address_of(access: TileAccess) -> LaunchNumber | None:
    """The address of an element that an access may touch, in bytes; None if it is not known."""
    base, start, span = range_of(symbol(access.base)), range_of(access.offset), span_of(access)
    starts = [range_of(dim.stride.times(dim.start)) for dim in access.dims if dim.modulus is None]
    if not is_argument(access.base) or base is None or start is None or span is None:
        return None
    total: LaunchNumber = ("add", _BITS, start, span)
    for part in starts:
        if part is None:
            return None
        total = ("add", _BITS, total, part)
    scaled: LaunchNumber = ("mul", _BITS, total, ("constant", access.element_bytes))
    return ("add", _BITS, base, scaled)


def span_of(access: TileAccess) -> LaunchNumber | None:
    """How far behind its start an element of an access may lie, in elements."""
    total = _ZERO
    for dim in access.dims:
        stride, count = range_of(dim.stride), _count_of(dim)
        if stride is None or count is None:
            return None
        total = ("add", _BITS, total, ("mul", _BITS, stride, count))
    return total


def symbol(value: SSAValue) -> Expression:
    """A scalar as an expression."""
    return Expression(((1, (value,)),))


def subtract(left: LaunchNumber, right: LaunchNumber) -> LaunchNumber:
    """The difference of two numbers."""
    return ("sub", _BITS, left, right)


def _count_of(dim: AccessDim) -> LaunchNumber | None:
    """An index of a dimension: those that the mask hides do not count."""
    if dim.indices is not None:
        return None
    end: LaunchNumber = ("constant", dim.extent)
    if dim.modulus is not None:
        period = range_of(dim.modulus)
        if period is None:
            return None
        end = period
    else:
        for limit in map(range_of, dim.upper):
            end = end if limit is None else ("min", _BITS, end, limit)
    return _index_below(end)


def _index_below(end: LaunchNumber) -> LaunchNumber:
    return ("count", _BITS, _ZERO, end, _ONE)


def _range_of_block(
    op: DescriptorLoadOp | DescriptorStoreOp | DescriptorReduceOp,
) -> AddressRange | str:
    """Where the elements of a block may be that are inside its tensor."""
    made = op.desc.owner
    if not isinstance(made, TensorMapOp):
        return "its descriptor is no tensor map that the launch makes"
    recipe = TensorMapRecipe.from_metadata(json.loads(made.recipe.data))
    assert isinstance(op.desc.type, DescriptorType)
    address = recipe.base
    for dim, extent in enumerate(shape_of(op.desc.type.block)):
        index = _index_of(range_of(symbol(op.indices[dim])), extent, recipe.shape[dim])
        if dim < len(recipe.strides):
            index = ("mul", _BITS, index, recipe.strides[dim])
        step: LaunchNumber = ("mul", _BITS, index, ("constant", recipe.element_bytes))
        address = ("add", _BITS, address, step)
    return AddressRange(address, recipe.element_bytes)


def _index_of(start: LaunchNumber | None, extent: int, end: LaunchNumber) -> LaunchNumber:
    """An index of a block that is inside of its tensor; any of those where its start is unknown."""
    if start is None:
        return _index_below(end)
    somewhere: LaunchNumber = ("add", _BITS, start, _index_below(("constant", extent)))
    last: LaunchNumber = subtract(end, _ONE)
    return ("max", _BITS, _ZERO, ("min", _BITS, somewhere, last))
