"""User functions of block pointers: a base, a shape, strides, and the offsets of one block.

A block pointer is a scalar whose type is a pointer to a tile type. The upstream language dropped
them in version 3.9; many published kernels use them.
"""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase, i32

from tilewright.language.core import (
    block_type,
    dtype,
    int32,
    int64,
    pointer_type,
    tensor,
    uint32,
    uint64,
    unwrap,
)
from tilewright.ops.arguments import integers, sequence, tile_shape
from tilewright.ops.block_pointers.ir import AdvanceOp, MakeTensorPtrOp
from tilewright.ops.builder import Builder, ir_type, require_tensor, ssa
from tilewright.ops.casting import convert, is_number, to_tensor
from tilewright.ops.elementwise.surface import minimum
from tilewright.ops.memory.surface import as_bytes, is_block_pointer, pointee, require_pointer
from tilewright.ops.surface import surface
from tilewright.support.errors import (
    DtypeNotAllowed,
    InvalidOption,
    LiteralOutOfRange,
    NotAPointer,
    ShapeMismatch,
)


def index_scalar(b: Builder, value: object, to: dtype, function: str, argument: str) -> tensor:
    """An extent, stride or offset as a scalar of `to`.

    Raises: DtypeNotAllowed, ShapeMismatch, LiteralOutOfRange.
    """
    plain = unwrap(value)
    if isinstance(plain, int) and not isinstance(plain, bool):
        if not to.get_int_min_value() <= plain <= to.get_int_max_value():
            raise LiteralOutOfRange(
                f"{function}(): {plain} in `{argument}` does not fit {to}", argument=argument
            )
        return b.constant(plain, to)
    x = to_tensor(b, value) if is_number(value) else require_tensor(plain, function, argument)
    if x.static_shape:
        raise ShapeMismatch(
            f"{function}(): `{argument}` holds {x.type}; scalars are needed", argument=argument
        )
    if not x.dtype.is_int() or x.dtype.is_bool():
        raise DtypeNotAllowed(
            f"{function}(): `{argument}` holds {x.dtype}; integers are needed", argument=argument
        )
    return convert(b, x, to)


def index_scalars(
    b: Builder, values: object, rank: int, to: dtype, function: str, argument: str
) -> list[tensor]:
    """One scalar of `to` per dimension. Raises: ShapeMismatch, DtypeNotAllowed."""
    parts = sequence(values)
    if len(parts) != rank:
        raise ShapeMismatch(
            f"{function}(): `{argument}` has {len(parts)} value(s) for {rank} dimension(s)",
            argument=argument,
        )
    return [index_scalar(b, part, to, function, argument) for part in parts]


def _narrow(offsets: object, function: str) -> tuple[object, ...]:
    """Offsets of a block, which are int32. *Raises*: DtypeNotAllowed for wider ones."""
    parts = tuple(sequence(offsets))
    for part in parts:
        plain = unwrap(part)
        if isinstance(plain, tensor) and plain.dtype in (int64, uint64):
            raise DtypeNotAllowed(
                f"{function}(): `offsets` holds {plain.dtype}; offsets of a block are int32",
                argument="offsets",
                hint="convert them with .to(tl.int32), or add what is more to `base`",
            )
    return parts


def extents_in_reach(b: Builder, shape: object) -> list[object]:
    """The extents as far as offsets of int32 reach; their high bits are not cut off."""
    return [
        minimum(b, extent, int32.get_int_max_value()) if _may_exceed(extent) else extent
        for extent in sequence(shape)
    ]


def _may_exceed(extent: object) -> bool:
    """Whether only the run knows that an extent fits int32; a literal that does not is refused."""
    plain = unwrap(extent)
    is_scalar = isinstance(plain, tensor) and not plain.static_shape
    return is_scalar and plain.dtype in (int64, uint32, uint64)


def segments(*counts: int) -> DenseArrayBase:
    """The `operandSegmentSizes` of an op with several groups of operands."""
    return DenseArrayBase.from_list(i32, counts)


@surface()
def make_block_ptr(
    b: Builder,
    base: object,
    shape: object,
    strides: object,
    offsets: object,
    block_shape: object,
    order: object,
) -> tensor:
    """A pointer to the block at `offsets` of the tensor at `base`.

    Shapes: all sequences have one entry per dimension; `block_shape` holds powers of two.
    Dtypes: `shape` and `strides` become int64, `offsets` int32; all count in elements.
    `order` lists the dimensions from the fastest to the slowest in memory: a hint.
    Raises: NotAPointer, ShapeMismatch, DtypeNotAllowed, NotPowerOfTwo, InvalidOption.
    """
    name = "make_block_ptr"
    pointer = require_pointer(base, name)
    if pointer.static_shape or is_block_pointer(pointer):
        raise NotAPointer(
            f"{name}(): `base` is {pointer.type}; a scalar pointer is needed", argument="base"
        )
    pointer = as_bytes(b, pointer)
    extents = tile_shape(block_shape, name, "block_shape")
    rank = len(extents)
    dims = integers(order, name, "order")
    if sorted(dims) != list(range(rank)):
        raise InvalidOption(
            f"{name}(): `order` {list(dims)} must list the dimensions 0 to {rank - 1} once each",
            argument="order",
        )
    operands = [
        pointer,
        *index_scalars(b, shape, rank, int64, name, "shape"),
        *index_scalars(b, strides, rank, int64, name, "strides"),
        *index_scalars(b, _narrow(offsets, name), rank, int32, name, "offsets"),
    ]
    assert isinstance(pointer.dtype, pointer_type)
    type_ = pointer_type(block_type(pointee(pointer), extents), const=pointer.dtype.const)
    properties = {
        "order": DenseArrayBase.from_list(i32, dims),
        "operandSegmentSizes": segments(1, rank, rank, rank),
    }
    op = b.emit(MakeTensorPtrOp, [ssa(v) for v in operands], [ir_type(type_)], properties)
    return tensor(op.results[0], type_)


@surface(member=True)
def advance(b: Builder, base: object, offsets: object) -> tensor:
    """The block pointer `base` moved by `offsets` elements per dimension; `base` stays.

    Raises: NotAPointer, ShapeMismatch, DtypeNotAllowed.
    """
    pointer = require_tensor(unwrap(base), "advance", "base")
    if not is_block_pointer(pointer):
        raise NotAPointer(
            f"advance(): `base` is {pointer.type}; a block pointer is needed",
            argument="base",
            hint="add offsets to a plain pointer with `+`",
        )
    rank = len(pointee(pointer).shape)
    moves = index_scalars(b, _narrow(offsets, "advance"), rank, int32, "advance", "offsets")
    return b.tensor(AdvanceOp, [pointer, *moves], pointer.type)
