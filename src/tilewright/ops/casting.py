"""Conversions: Python numbers to tensors, tensors to other dtypes and shapes."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr

from tilewright.language.core import (
    block_type,
    dtype,
    float32,
    int1,
    int64,
    tensor,
    unwrap,
)
from tilewright.ops.arguments import boolean_constant, choice, dtype_constant, is_none, shown
from tilewright.ops.builder import Builder, integer_property, require_tensor, shaped
from tilewright.ops.creation.ir import SplatOp
from tilewright.ops.elementwise.comparisons import CmpFOp, CmpIOp
from tilewright.ops.elementwise.ir import (
    BitcastOp,
    ExtFOp,
    ExtSIOp,
    ExtUIOp,
    FpToFpOp,
    FPToSIOp,
    FPToUIOp,
    IntToPtrOp,
    PtrToIntOp,
    SIToFPOp,
    TruncFOp,
    TruncIOp,
    UIToFPOp,
)
from tilewright.ops.elementwise.promotion import literal_dtype, natural_dtype
from tilewright.ops.shape.ir import BroadcastOp, ExpandDimsOp
from tilewright.ops.surface import surface
from tilewright.support.errors import BroadcastMismatch, DtypeNotAllowed, InvalidOption

_NOT_EQUAL_INT = 1
_UNORDERED_NOT_EQUAL = 13


def is_number(value: object) -> bool:
    """Whether a value (constexpr or plain) is a Python number."""
    return isinstance(unwrap(value), bool | int | float)


@surface()
def to_tensor(b: Builder, x: object) -> tensor:
    """A Python number as a scalar of the runtime.

    Dtypes: bool → int1; int → the first of int32, uint32, int64, uint64 that holds it; float →
    fp32 if it is normal there (or 0, inf, NaN), else fp64.
    """
    plain = unwrap(x)
    if isinstance(plain, tensor):
        return plain
    if isinstance(plain, bool | int | float):
        return b.constant(plain, natural_dtype(plain))
    raise DtypeNotAllowed(f"{shown(plain)} is no number and cannot become a tile")


def to_tensor_beside(b: Builder, value: object, other: dtype) -> tensor:
    """`value` as a tensor; a Python number takes the dtype it has beside `other`."""
    plain = unwrap(value)
    if isinstance(plain, bool | int | float) and not other.is_ptr():
        return b.constant(plain, literal_dtype(plain, other))
    return to_tensor(b, plain)


def broadcast_shapes(lhs: tuple[int, ...], rhs: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape under NumPy's rules: left padding by 1, then 1 stretches."""
    rank = max(len(lhs), len(rhs))
    padded = [(1,) * (rank - len(s)) + s for s in (lhs, rhs)]
    result = []
    for a, c in zip(*padded, strict=True):
        if a != c and 1 not in (a, c):
            raise BroadcastMismatch(
                f"shapes {list(lhs)} and {list(rhs)} do not broadcast: {a} against {c}",
                hint="add a dimension with x[:, None], or make the sizes equal",
                known_as="Cannot make_shape_compatible: incompatible dimensions "
                f"at index {len(result)}: {a} and {c}",
            )
        result.append(max(a, c))
    return tuple(result)


def broadcast_tensor(b: Builder, x: tensor, shape: tuple[int, ...]) -> tensor:
    """`x` stretched to `shape`, which must be reachable by NumPy's rules."""
    current = x.static_shape
    if current == shape:
        return x
    if not current:
        return b.tensor(SplatOp, [x], shaped(x.dtype, shape))
    if broadcast_shapes(current, shape) != shape:
        raise BroadcastMismatch(f"shape {list(current)} does not broadcast to {list(shape)}")
    while len(current) < len(shape):
        current = (1, *current)
        x = b.tensor(ExpandDimsOp, [x], block_type(x.dtype, current), {"axis": integer_property(0)})
    return x if current == shape else b.tensor(BroadcastOp, [x], block_type(x.dtype, shape))


def broadcast_pair(b: Builder, lhs: tensor, rhs: tensor) -> tuple[tensor, tensor]:
    """Both tensors stretched to their common shape."""
    shape = broadcast_shapes(lhs.static_shape, rhs.static_shape)
    return broadcast_tensor(b, lhs, shape), broadcast_tensor(b, rhs, shape)


def convert(b: Builder, x: tensor, to: dtype, rounding: str | None = None) -> tensor:
    """`x` with every element converted to the scalar dtype `to`."""
    source = x.dtype
    target = shaped(to, x.static_shape)
    if source == to:
        return x
    if source.is_ptr() or to.is_ptr():
        return _convert_pointer(b, x, to, target)
    if to.is_bool():
        return _is_nonzero(b, x)
    if source.is_floating() and to.is_floating():
        return _convert_float(b, x, to, target, rounding)
    if source.is_floating():
        return b.tensor(FPToSIOp if to.is_int_signed() else FPToUIOp, [_standard(b, x)], target)
    if to.is_floating():
        return _integer_to_float(b, x, to, target)
    return _convert_integer(b, x, to, target)


def _standard(b: Builder, x: tensor) -> tensor:
    return convert(b, x, float32) if x.dtype.is_fp8() else x


def _convert_integer(b: Builder, x: tensor, to: dtype, target: dtype) -> tensor:
    narrower = to.primitive_bitwidth - x.dtype.primitive_bitwidth
    if narrower == 0:
        return tensor(x.handle, target)
    if narrower < 0:
        return b.tensor(TruncIOp, [x], target)
    return b.tensor(ExtSIOp if x.dtype.is_int_signed() else ExtUIOp, [x], target)


def _integer_to_float(b: Builder, x: tensor, to: dtype, target: dtype) -> tensor:
    if to.is_fp8():
        return convert(b, convert(b, x, float32), to)
    return b.tensor(SIToFPOp if x.dtype.is_int_signed() else UIToFPOp, [x], target)


def _convert_float(b: Builder, x: tensor, to: dtype, target: dtype, rounding: str | None) -> tensor:
    source = x.dtype
    widens = source.primitive_bitwidth < to.primitive_bitwidth
    narrows = source.primitive_bitwidth > to.primitive_bitwidth
    if rounding is not None and not (narrows or widens):
        raise InvalidOption(
            f"cast(): fp_downcast_rounding needs a narrower float; {source} to {to} is none",
            argument="fp_downcast_rounding",
        )
    if widens:
        rounding = None
    if source.is_fp8() or to.is_fp8() or rounding == "rtz":
        properties = None if rounding is None else {"rounding": StringAttr(rounding)}
        return b.tensor(FpToFpOp, [x], target, properties)
    if narrows:
        return b.tensor(TruncFOp, [x], target)
    if source.primitive_bitwidth == to.primitive_bitwidth:
        return convert(b, convert(b, x, float32), to)
    return b.tensor(ExtFOp, [x], target)


def _is_nonzero(b: Builder, x: tensor) -> tensor:
    if x.dtype.is_fp8():
        x = convert(b, x, float32)
    zero = b.constant(0, x.type)
    target = shaped(int1, x.static_shape)
    if x.dtype.is_floating():
        predicate = integer_property(_UNORDERED_NOT_EQUAL, 64)
        return b.tensor(CmpFOp, [x, zero], target, {"predicate": predicate})
    predicate = integer_property(_NOT_EQUAL_INT, 64)
    return b.tensor(CmpIOp, [x, zero], target, {"predicate": predicate})


def _convert_pointer(b: Builder, x: tensor, to: dtype, target: dtype) -> tensor:
    source = x.dtype
    if source.is_ptr() and to.is_ptr():
        return b.tensor(BitcastOp, [x], target)
    if source.is_ptr() and to.is_int() and to.primitive_bitwidth == 64:
        return b.tensor(PtrToIntOp, [x], target)
    if source.is_ptr() and to.is_bool():
        return _is_nonzero(b, b.tensor(PtrToIntOp, [x], shaped(int64, x.static_shape)))
    if to.is_ptr() and source.is_int() and source.primitive_bitwidth == 64:
        return b.tensor(IntToPtrOp, [x], target)
    raise DtypeNotAllowed(
        f"cast(): {source} does not convert to {to}",
        argument="dtype",
        hint="pointers convert to int64, uint64, int1 and other pointers",
    )


def reinterpret_bits(b: Builder, x: tensor, to: dtype) -> tensor:
    """`x` with every element's bits read as the dtype `to` of the same width."""
    if x.dtype.is_ptr() or to.is_ptr():
        return convert(b, x, to)
    if x.dtype.primitive_bitwidth != to.primitive_bitwidth:
        raise InvalidOption(
            f"cast(): bitcast from {x.dtype} ({x.dtype.primitive_bitwidth} bits) to {to} "
            f"({to.primitive_bitwidth} bits) changes the width",
            argument="dtype",
            known_as=f"Cannot bitcast data-type of size {x.dtype.primitive_bitwidth} "
            f"to data-type of size {to.primitive_bitwidth}",
        )
    target = shaped(to, x.static_shape)
    if x.dtype.is_int() and to.is_int():
        return tensor(x.handle, target)
    return b.tensor(BitcastOp, [x], target)


def _to(
    b: Builder,
    input: object,
    dtype: object,
    fp_downcast_rounding: object = None,
    bitcast: object = False,
) -> tensor:
    """`input` converted to `dtype`, element by element.

    Dtypes: float to narrower float rounds to nearest even, or towards zero with
    `fp_downcast_rounding="rtz"`; float to int goes towards zero; anything to int1 tests `!= 0`;
    pointers convert to and from 64-bit integers. `bitcast=True` keeps the bits (equal width).
    fp8 saturates: what is too large becomes the largest number (448 for float8e4nv, 57344 for
    float8e5), infinity too, but for "rtz" to float8e5, where it stays; NaN stays NaN, or becomes
    1.875, the largest, in float8e4b15, which has none.
    `fp_downcast_rounding` has no effect where every value is kept.
    Undefined: NaN or out-of-range float to int.
    Raises: InvalidOption for a rounding mode of a conversion that is not from float to float, or
    rounds to a float of equal width, or for a bitcast that changes the width; DtypeNotAllowed for
    pointers to other types.
    """
    to = dtype_constant(dtype, "cast")
    x = to_tensor(b, input) if is_number(input) else require_tensor(input, "cast", "input")
    to = to.scalar
    rounding = None
    if not is_none(fp_downcast_rounding):
        allowed = ("rtne", "rtz")
        rounding = str(choice(fp_downcast_rounding, allowed, "cast", "fp_downcast_rounding"))
        if x.dtype != to and not (x.dtype.is_floating() and to.is_floating()):
            raise InvalidOption(
                f"cast(): fp_downcast_rounding applies to float to float, not {x.dtype} to {to}",
                argument="fp_downcast_rounding",
            )
    if boolean_constant(bitcast, "cast", "bitcast"):
        return reinterpret_bits(b, x, to)
    return convert(b, x, to, rounding)


cast = surface("cast", member=True)(_to)
to = surface("to", member=True)(_to)
