"""User functions that look elements up, sort them and count them."""

from __future__ import annotations

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute

from tilewright.language.core import (
    block_type,
    dtype,
    float8e5,
    float32,
    int8,
    int32,
    tensor,
    tuple_,
)
from tilewright.ops.arguments import (
    axis_of,
    boolean_constant,
    check_shape,
    integer_constant,
    is_none,
)
from tilewright.ops.builder import Builder, integer_property, ir_type, require_tensor, shaped, ssa
from tilewright.ops.casting import broadcast_tensor, convert, to_tensor
from tilewright.ops.creation.surface import arange
from tilewright.ops.elementwise.operators import elementwise
from tilewright.ops.indexing.ir import GatherOp, HistogramOp, SortOp
from tilewright.ops.shape.surface import insert_dim
from tilewright.ops.surface import surface
from tilewright.support.errors import (
    DtypeNotAllowed,
    InvalidOption,
    ShapeMismatch,
    UnsupportedError,
)


@surface(member=True, example="tl.gather(x, n // 2, 0)")
def gather(b: Builder, src: object, index: object, axis: object) -> tensor:
    """result[..., i, ...] = src[..., index[..., i, ...], ...] along `axis`.

    Shapes: `index` has the rank of `src` and its extents but for `axis`; the result has the
    shape of `index`. Dtypes: `index` is an integer.
    Undefined: an index outside of `src`.
    Raises: DtypeNotAllowed, ShapeMismatch, AxisOutOfRange.
    """
    x = require_tensor(src, "gather", "src")
    positions = require_tensor(index, "gather", "index")
    if not positions.dtype.is_int() or positions.dtype.is_bool():
        raise DtypeNotAllowed(
            f"gather(): `index` is {positions.dtype}; an integer is needed", argument="index"
        )
    rank = len(x.static_shape)
    if rank == 0:
        raise ShapeMismatch("gather(): `src` is a scalar; a tile is needed", argument="src")
    dim = axis_of(axis, rank, "gather")
    shape = positions.static_shape
    fits = len(shape) == rank and all(
        shape[d] == x.static_shape[d] for d in range(rank) if d != dim
    )
    if not fits:
        raise ShapeMismatch(
            f"gather(): `index` of shape {list(shape)} does not fit `src` of shape "
            f"{list(x.static_shape)}: all dimensions but {dim} must be equal",
            argument="index",
            types={"src": str(x.type), "index": str(positions.type)},
        )
    properties = {"axis": integer_property(dim)}
    return b.tensor(GatherOp, [x, positions], block_type(x.dtype, shape), properties)


def _last_dim(x: tensor, dim: object, function: str) -> int:
    rank = len(x.static_shape)
    if rank == 0:
        raise ShapeMismatch(f"{function}(): `x` is a scalar; a tile is needed", argument="x")
    axis = rank - 1 if is_none(dim) else axis_of(dim, rank, function, "dim")
    if axis != rank - 1:
        raise UnsupportedError(
            f"{function}(): `dim` is {axis}; only the last dimension, {rank - 1}, can be sorted",
            argument="dim",
            hint="move the dimension to the end with tl.permute, and back afterwards",
        )
    return axis


def _sorted(
    b: Builder, x: object, dim: object, descending: object, function: str, kept: int | None = None
) -> tuple[tensor, tensor]:
    """The values of `x` in order along its last dimension, and where they came from.

    Nobody looks at more than the first `kept`, where that is given.
    """
    tile = require_tensor(x, function, "x")
    if not (tile.dtype.is_int() or tile.dtype.is_floating()):
        raise DtypeNotAllowed(
            f"{function}(): `x` is {tile.dtype}; numbers are needed", argument="x"
        )
    _last_dim(tile, dim, function)
    key = _signed_key(b, tile)
    is_descending = boolean_constant(descending, function, "descending")
    properties: dict[str, Attribute] = {"descending": UnitAttr()} if is_descending else {}
    if kept is not None and kept < tile.static_shape[-1]:
        properties["kept"] = integer_property(kept)
    types = [key.type, block_type(int32, tile.static_shape)]
    op = b.emit(SortOp, [ssa(key)], [ir_type(t) for t in types], properties)
    values, positions = (tensor(r, t) for r, t in zip(op.results, types, strict=True))
    return _from_signed_key(b, values, tile.dtype), positions


def _signed_key(b: Builder, x: tensor) -> tensor:
    """`x` as values that sort the same as signed integers or wide floats."""
    if x.dtype.is_fp8():
        return convert(b, x, float32)
    if x.dtype.is_bool():
        return convert(b, x, int8)
    if x.dtype.is_int_unsigned():
        return _flip_sign(b, x)
    return x


def _from_signed_key(b: Builder, key: tensor, to: dtype) -> tensor:
    if to.is_int_unsigned() and not to.is_bool():
        return _flip_sign(b, tensor(key.handle, shaped(to, key.static_shape)))
    # The way back is exact, and towards zero it keeps infinities.
    return convert(b, key, to, "rtz" if to == float8e5 else None)


def _flip_sign(b: Builder, x: tensor) -> tensor:
    """Unsigned integers moved by half their range, so that they order like signed ones."""
    half = b.constant(1 << (x.dtype.primitive_bitwidth - 1), x.type)
    return elementwise(b, "arith.xori", x, half)


@surface(member=True, example="tl.sort(x, descending=True)")
def sort(
    b: Builder,
    x: object,
    dim: object = None,
    descending: object = False,
    return_indices: object = False,
) -> object:
    """`x` in ascending order along its last dimension; equal values keep their order.

    `return_indices` adds the int32 positions that the values came from. NaN sorts as the
    greatest value.
    Raises: DtypeNotAllowed, ShapeMismatch; UnsupportedError for another dimension.
    """
    values, positions = _sorted(b, x, dim, descending, "sort")
    if boolean_constant(return_indices, "sort", "return_indices"):
        return tuple_([values, positions])
    return values


@surface(member=True, example="tl.argsort(x)")
def argsort(b: Builder, x: object, dim: object = None, descending: object = False) -> tensor:
    """The int32 positions that put `x` in order along its last dimension; see `sort`."""
    return _sorted(b, x, dim, descending, "argsort")[1]


def _leading(b: Builder, x: tensor, count: int) -> tensor:
    """The first `count` elements along the last dimension."""
    if count == x.static_shape[-1]:
        return x
    shape = (*x.static_shape[:-1], count)
    positions = arange(b, 0, count)
    for _ in shape[:-1]:
        positions = insert_dim(b, positions, 0)
    return gather(b, x, broadcast_tensor(b, positions, shape), len(shape) - 1)


@surface(member=True, example="tl.topk(x, 4)")
def topk(
    b: Builder,
    x: object,
    k: object,
    dim: object = None,
    descending: object = True,
    return_indices: object = False,
) -> object:
    """The `k` greatest values along the last dimension, the greatest first.

    With `descending=False` the `k` least, the least first. `return_indices` adds their int32
    positions. Constraints: `k` a power of two, at most the dimension's size.
    Raises: InvalidOption, NotPowerOfTwo; else as `sort`.
    """
    count = integer_constant(k, "topk", "k")
    check_shape((count,), "topk", "k")
    values, positions = _sorted(b, x, dim, descending, "topk", count)
    if count > values.static_shape[-1]:
        raise InvalidOption(
            f"topk(): `k` is {count} but the dimension has {values.static_shape[-1]} elements",
            argument="k",
        )
    first = _leading(b, values, count)
    if boolean_constant(return_indices, "topk", "return_indices"):
        return tuple_([first, _leading(b, positions, count)])
    return first


@surface(member=True, example="tl.bitonic_merge(tl.where(b, -x, x))")
def bitonic_merge(b: Builder, x: object, dim: object = None, descending: object = False) -> tensor:
    """`x` in order along its last dimension, for an `x` that first rises and then falls there.

    Undefined: what becomes of an `x` that is not bitonic (it is sorted, at present).
    Raises: as `sort`.
    """
    return _sorted(b, x, dim, descending, "bitonic_merge")[0]


def _mask(b: Builder, mask: object, shape: tuple[int, ...]) -> tensor:
    value = to_tensor(b, mask)
    if not value.dtype.is_bool():
        raise DtypeNotAllowed(
            f"histogram(): `mask` must be int1, got {value.type}", argument="mask"
        )
    return broadcast_tensor(b, value, shape)


@surface(member=True, example="tl.histogram(n, 8, mask=b)")
def histogram(b: Builder, input: object, num_bins: object, mask: object = None) -> tensor:
    """result[v] = the number of elements of `input` that equal v, for v in [0, num_bins).

    Shapes: `input` [N], `mask` broadcasts to it, the result [num_bins]. Values outside of the
    bins and elements with a false mask are not counted.
    Dtypes: 32-bit integers; the result is int32.
    Raises: DtypeNotAllowed, ShapeMismatch, NotPowerOfTwo.
    """
    x = require_tensor(input, "histogram", "input")
    if len(x.static_shape) != 1:
        raise ShapeMismatch(
            f"histogram(): `input` has {len(x.static_shape)} dimensions, not 1",
            argument="input",
            hint="flatten it with tl.ravel",
        )
    if not x.dtype.is_int() or x.dtype.primitive_bitwidth != 32:
        raise DtypeNotAllowed(
            f"histogram(): `input` is {x.dtype}; a 32-bit integer is needed",
            argument="input",
            hint="convert it with .to(tl.int32)",
        )
    count = integer_constant(num_bins, "histogram", "num_bins")
    bins = check_shape((count,), "histogram", "num_bins")
    chosen = None if is_none(mask) else _mask(b, mask, x.static_shape)
    operands = [v for v in (x, chosen) if v is not None]
    return b.tensor(HistogramOp, operands, block_type(int32, bins))
