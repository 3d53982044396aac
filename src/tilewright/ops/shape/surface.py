"""User functions that move elements without computing."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase, UnitAttr, i32

from tilewright.language.core import block_type, tensor, tuple_
from tilewright.ops.arguments import (
    axis_of,
    boolean_constant,
    check_shape,
    integer_constant,
    integers,
    is_none,
    require_same_shape,
    sequence,
    tile_shape,
)
from tilewright.ops.builder import Builder, integer_property, ir_type, require_tensor, shaped, ssa
from tilewright.ops.casting import broadcast_pair, broadcast_tensor, to_tensor
from tilewright.ops.creation.surface import item, shape_arguments
from tilewright.ops.shape.ir import (
    CatOp,
    ExpandDimsOp,
    FlipOp,
    JoinOp,
    ReshapeOp,
    SplitOp,
    TransOp,
)
from tilewright.ops.surface import surface
from tilewright.support.errors import AxisOutOfRange, DtypeMismatch, ShapeMismatch


@surface()
def broadcast(b: Builder, input: object, other: object) -> tuple_:
    """Both tiles stretched to their common shape by NumPy's rules."""
    x, y = broadcast_pair(b, to_tensor(b, input), to_tensor(b, other))
    return tuple_([x, y])


@surface(member=True)
def broadcast_to(b: Builder, input: object, *shape: object) -> tensor:
    """`input` with its dimensions of size 1 (or a scalar) stretched to `shape`, equal rank."""
    x = to_tensor(b, input)
    extents = tile_shape(shape_arguments(shape), "broadcast_to", groups=b.groups)
    if x.static_shape and len(x.static_shape) != len(extents):
        raise ShapeMismatch(
            f"broadcast_to(): `input` has rank {len(x.static_shape)}, the shape "
            f"{list(extents)} has {len(extents)}",
            argument="shape",
            hint="add dimensions with x[:, None] or expand_dims first",
        )
    return broadcast_tensor(b, x, extents)


def insert_dim(b: Builder, x: tensor, axis: int) -> tensor:
    """`x` with a dimension of size 1 at `axis`, counted in the result."""
    shape = x.static_shape
    shape = (*shape[:axis], 1, *shape[axis:])
    if len(shape) == 1:
        return broadcast_tensor(b, x, shape)
    properties = {"axis": integer_property(axis)}
    return b.tensor(ExpandDimsOp, [x], block_type(x.dtype, shape), properties)


@surface(member=True)
def expand_dims(b: Builder, input: object, axis: object) -> tensor:
    """`input` with dimensions of size 1 inserted at `axis` (an int or several).

    Axes count in the result; negative ones from its end.
    """
    x = to_tensor(b, input)
    axes = [integer_constant(a, "expand_dims", "axis") for a in sequence(axis)]
    rank = len(x.static_shape) + len(axes)
    outside = [a for a in axes if not -rank <= a < rank]
    if outside:
        raise AxisOutOfRange(
            f"expand_dims(): axis {axes} is out of range for a result of {rank} dimension(s)",
            argument="axis",
            known_as=f"invalid axis {outside[0]}. Expected {-rank} <= axis < {rank}",
        )
    positions = sorted(a % rank for a in axes)
    if len(set(positions)) != len(positions):
        raise AxisOutOfRange(
            f"expand_dims(): axis {axes} names one dimension twice",
            known_as=f"expand_dims received duplicate axes, normalized axes = {positions}",
        )
    for position in positions:
        x = insert_dim(b, x, position)
    return x


@surface()
def unsqueeze(b: Builder, x: object, dim: object) -> tensor:
    """`x` with a dimension of size 1 inserted at `dim`."""
    return expand_dims(b, x, dim)


@surface()
def squeeze(b: Builder, x: object, dim: object) -> tensor:
    """`x` without its dimension `dim`, which must have size 1."""
    tile = require_tensor(x, "squeeze", "x")
    axis = axis_of(dim, len(tile.static_shape), "squeeze", "dim")
    if tile.static_shape[axis] != 1:
        raise ShapeMismatch(
            f"squeeze(): dimension {axis} has size {tile.static_shape[axis]}, not 1",
            argument="dim",
        )
    shape = tile.static_shape[:axis] + tile.static_shape[axis + 1 :]
    return reshape_to(b, tile, shape)


def reshape_to(b: Builder, x: tensor, shape: tuple[int, ...], can_reorder: bool = False) -> tensor:
    """`x` under another shape of as many elements."""
    if x.static_shape == shape:
        return x
    if not shape:
        return item(b, x)
    if not x.static_shape:
        return broadcast_tensor(b, x, shape)
    properties = {"allow_reorder": UnitAttr()} if can_reorder else None
    return b.tensor(ReshapeOp, [x], block_type(x.dtype, shape), properties)


def _numel(shape: tuple[int, ...]) -> int:
    result = 1
    for extent in shape:
        result *= extent
    return result


@surface(member=True)
def reshape(b: Builder, input: object, *shape: object, can_reorder: object = False) -> tensor:
    """`input` in row-major order under another shape; `reshape([])` of one element is `item`.

    Raises: ShapeMismatch when the number of elements differs.
    """
    x = to_tensor(b, input)
    extents = check_shape(
        integers(shape_arguments(shape), "reshape", "shape") if shape else (),
        "reshape",
        "shape",
        b.groups,
    )
    if _numel(x.static_shape) != _numel(extents):
        raise ShapeMismatch(
            f"reshape(): {list(x.static_shape)} has {_numel(x.static_shape)} elements, "
            f"{list(extents)} has {_numel(extents)}",
            argument="shape",
            known_as="reshape() cannot change total number of elements in tensor",
        )
    return reshape_to(b, x, extents, boolean_constant(can_reorder, "reshape", "can_reorder"))


@surface(member=True)
def view(b: Builder, input: object, *shape: object) -> tensor:
    """`reshape` with the order of elements left to the compiler (we keep row-major order)."""
    return reshape(b, input, *shape)


@surface(member=True)
def ravel(b: Builder, x: object, can_reorder: object = False) -> tensor:
    """`x` as one dimension, row-major."""
    tile = require_tensor(x, "ravel", "x")
    flag = boolean_constant(can_reorder, "ravel", "can_reorder")
    return reshape_to(b, tile, (_numel(tile.static_shape),), flag)


def transpose(b: Builder, x: tensor, order: tuple[int, ...]) -> tensor:
    """`x` with its dimensions in `order`."""
    if order == tuple(range(len(order))):
        return x
    shape = tuple(x.static_shape[d] for d in order)
    properties = {"order": DenseArrayBase.from_list(i32, order)}
    return b.tensor(TransOp, [x], block_type(x.dtype, shape), properties)


@surface(member=True)
def permute(b: Builder, input: object, *dims: object) -> tensor:
    """`input` with result dimension d taken from source dimension `dims[d]`."""
    x = require_tensor(input, "permute", "input")
    rank = len(x.static_shape)
    order = tuple(
        axis_of(d, rank, "permute", "dims")
        for d in integers(shape_arguments(dims), "permute", "dims")
    )
    if sorted(order) != list(range(rank)):
        raise ShapeMismatch(
            f"permute(): {list(order)} is no order of the {rank} dimension(s)", argument="dims"
        )
    return transpose(b, x, order)


@surface(member=True)
def trans(b: Builder, input: object, *dims: object) -> tensor:
    """`permute`; without `dims` the last two dimensions change places."""
    if dims and not (len(dims) == 1 and is_none(dims[0])):
        return permute(b, input, *dims)
    x = require_tensor(input, "trans", "input")
    rank = len(x.static_shape)
    if rank < 2:
        raise ShapeMismatch(
            f"trans(): a tile of rank {rank} has no two dimensions to exchange", argument="input"
        )
    return transpose(b, x, (*range(rank - 2), rank - 1, rank - 2))


@surface()
def join(builder: Builder, a: object, b: object) -> tensor:
    """A new last dimension of 2: result[..., 0] = a, result[..., 1] = b."""
    x, y = broadcast_pair(builder, to_tensor(builder, a), to_tensor(builder, b))
    if x.dtype != y.dtype:
        raise DtypeMismatch(
            f"join(): `a` is {x.dtype} but `b` is {y.dtype}", argument="b", hint="cast one side"
        )
    is_scalar = not x.static_shape
    if is_scalar:
        x, y = (broadcast_tensor(builder, v, (1,)) for v in (x, y))
    shape = check_shape((*x.static_shape, 2), "join", "a")
    joined = builder.tensor(JoinOp, [x, y], block_type(x.dtype, shape))
    return reshape_to(builder, joined, (2,)) if is_scalar else joined


@surface(member=True)
def split(b: Builder, a: object) -> tuple_:
    """The inverse of `join`: a[..., 0] and a[..., 1]."""
    x = require_tensor(a, "split", "a")
    if not x.static_shape or x.static_shape[-1] != 2:
        raise ShapeMismatch(
            f"split(): the last dimension must be 2, the shape is {list(x.static_shape)}",
            argument="a",
        )
    is_pair = len(x.static_shape) == 1
    if is_pair:
        x = reshape_to(b, x, (1, 2))
    type_ = shaped(x.dtype, x.static_shape[:-1])
    op = b.emit(SplitOp, [ssa(x)], [ir_type(type_)] * 2)
    parts = [tensor(result, type_) for result in op.results]
    return tuple_([item(b, part) for part in parts] if is_pair else parts)


@surface()
def interleave(builder: Builder, a: object, b: object) -> tensor:
    """The elements of both tiles alternating along the last dimension."""
    joined = join(builder, a, b)
    shape = joined.static_shape
    if len(shape) == 1:
        return joined
    return reshape_to(builder, joined, (*shape[:-2], 2 * shape[-2]))


@surface()
def cat(
    b: Builder, input: object, other: object, can_reorder: object = False, dim: object = 0
) -> tensor:
    """`input` followed by `other` along `dim`; both have one shape and dtype."""
    x = require_tensor(input, "cat", "input")
    y = require_tensor(other, "cat", "other")
    require_same_shape(x, y, "cat", ("input", "other"))
    if x.dtype != y.dtype:
        raise DtypeMismatch(f"cat(): `input` is {x.dtype}, `other` is {y.dtype}", argument="other")
    rank = len(x.static_shape)
    axis = axis_of(dim, rank, "cat", "dim")
    order = (axis, *(d for d in range(rank) if d != axis))
    x, y = transpose(b, x, order), transpose(b, y, order)
    shape = (2 * x.static_shape[0], *x.static_shape[1:])
    joined = b.tensor(CatOp, [x, y], block_type(x.dtype, check_shape(shape, "cat", "input")))
    return transpose(b, joined, tuple(order.index(d) for d in range(rank)))


@surface(member=True)
def flip(b: Builder, x: object, dim: object = None) -> tensor:
    """`x` reversed along `dim` (the last dimension by default)."""
    tile = require_tensor(x, "flip", "x")
    rank = len(tile.static_shape)
    axis = rank - 1 if is_none(dim) else axis_of(dim, rank, "flip", "dim")
    return b.tensor(FlipOp, [tile], tile.type, {"axis": integer_property(axis)})
