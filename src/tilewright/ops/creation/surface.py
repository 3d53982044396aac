"""User functions that create tiles."""

from __future__ import annotations

from tilewright.language.core import block_type, dtype, int32, int64, tensor, unwrap
from tilewright.ops.arguments import (
    check_shape,
    dtype_constant,
    integer_constant,
    sequence,
    tile_shape,
)
from tilewright.ops.builder import Builder, integer_property, require_tensor, shaped
from tilewright.ops.casting import broadcast_tensor, convert, to_tensor
from tilewright.ops.creation.ir import MakeRangeOp, UnsplatOp
from tilewright.ops.surface import surface
from tilewright.support.errors import (
    DtypeNotAllowed,
    InvalidOption,
    LiteralOutOfRange,
    ShapeMismatch,
)


@surface()
def arange(b: Builder, start: object, end: object) -> tensor:
    """The 1-D tile start, start + 1, …, end - 1 of int32.

    Constraints: both constexpr, `end - start` a power of two, values within int32.
    """
    first = integer_constant(start, "arange", "start")
    last = integer_constant(end, "arange", "end")
    if last <= first:
        raise InvalidOption(
            f"arange(): `end` is {last}, not greater than `start`, {first}",
            argument="end",
            known_as="arange's end argument must be greater than the start argument",
        )
    if first < -(2**31) or last > 2**31 - 1:
        raise InvalidOption("arange(): `start` and `end` must fit int32", argument="end")
    shape = check_shape((last - first,), "arange", "end", b.groups)
    properties = {"start": integer_property(first), "end": integer_property(last)}
    return b.tensor(MakeRangeOp, [], block_type(int32, shape), properties)


@surface()
def full(b: Builder, shape: object, value: object, dtype: object) -> tensor:
    """A tile of `shape` filled with `value` (a number, a scalar or a size-1 tile).

    Dtypes: any; a number as a pointer is an address, of which 0 leads nowhere.
    """
    extents = tile_shape(shape, "full", groups=b.groups)
    return _filled(b, extents, value, dtype_constant(dtype, "full").scalar)


def _filled(b: Builder, extents: tuple[int, ...], value: object, to: dtype) -> tensor:
    plain = unwrap(value)
    if isinstance(plain, bool | int) and to.is_ptr():
        _require_fit(plain, int64)
        plain = b.constant(plain, int64)
    if isinstance(plain, bool | int | float):
        is_whole = not to.is_ptr() and (isinstance(plain, int) or plain.is_integer())
        if not to.is_floating() and not is_whole:
            raise DtypeNotAllowed(
                f"full(): {plain} is no value of {to}", argument="value", hint="use a float dtype"
            )
        if to.is_int():
            _require_fit(int(plain), to)
        if not to.is_fp8():
            return b.constant(plain, shaped(to, extents))
        return broadcast_tensor(b, convert(b, to_tensor(b, float(plain)), to), extents)
    scalar = require_tensor(plain, "full", "value")
    if scalar.static_shape:
        scalar = item(b, scalar)
    return broadcast_tensor(b, convert(b, scalar, to), extents)


def _require_fit(value: int, to: dtype) -> None:
    """Hold a number to those that the bits of a dtype hold, with a sign or without."""
    bits = to.primitive_bitwidth
    if not -(1 << bits - 1) <= value < 1 << bits:
        raise LiteralOutOfRange(
            f"full(): the number {value} does not fit {to}",
            argument="value",
            hint=f"its {bits} bits hold {-(1 << bits - 1)} to {(1 << bits) - 1}, with a sign or "
            "without; take a wider dtype",
        )


@surface()
def zeros(b: Builder, shape: object, dtype: object) -> tensor:
    """A tile of `shape` filled with 0."""
    extents = tile_shape(shape, "zeros", groups=b.groups)
    return _filled(b, extents, 0, dtype_constant(dtype, "zeros").scalar)


@surface()
def zeros_like(b: Builder, input: object) -> tensor:
    """A tile of zeros with the shape and dtype of `input`."""
    like = require_tensor(input, "zeros_like", "input")
    return _filled(b, like.static_shape, 0, like.dtype)


@surface(member=True)
def item(b: Builder, input: object) -> tensor:
    """The one element of a size-1 tile as a scalar."""
    tile = require_tensor(input, "item", "input")
    if not tile.static_shape:
        return tile
    if any(extent != 1 for extent in tile.static_shape):
        raise ShapeMismatch(
            f"item(): the tile has shape {list(tile.static_shape)}, not one element",
            argument="input",
        )
    return b.tensor(UnsplatOp, [tile], tile.dtype)


def shape_arguments(values: tuple[object, ...]) -> object:
    """`f(a, b)` and `f((a, b))` alike: the varargs, or the one sequence among them."""
    if len(values) == 1:
        return sequence(values[0])
    return list(values)
