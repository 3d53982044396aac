"""User functions of elementwise math, choice and arithmetic."""

from __future__ import annotations

import warnings

from tilewright.ir.locations import call_chain
from tilewright.ir.op import ElementwiseOp
from tilewright.language.core import (
    PropagateNan,
    constexpr,
    dtype,
    float8e5,
    float32,
    float64,
    int1,
    tensor,
    tuple_,
    unwrap,
)
from tilewright.ops.arguments import boolean_constant, constant
from tilewright.ops.builder import Builder, integer_property, require_tensor
from tilewright.ops.casting import broadcast_shapes, broadcast_tensor, convert, is_number, to_tensor
from tilewright.ops.elementwise.ir import ClampFOp, FmaOp, SelectOp
from tilewright.ops.elementwise.logical import magnitude, negate
from tilewright.ops.elementwise.operators import arithmetic, binary, elementwise, meet
from tilewright.ops.surface import surface
from tilewright.support.errors import DtypeNotAllowed, InvalidOption

_UPCAST = "upcast first: x.to(tl.float32)"


def _float_argument(b: Builder, x: object, function: str, allowed: tuple[dtype, ...]) -> tensor:
    value = to_tensor(b, x) if is_number(x) else require_tensor(unwrap(x), function, "x")
    if value.dtype not in allowed:
        names = " or ".join(str(a) for a in allowed)
        raise DtypeNotAllowed(
            f"{function}(): `x` is {value.dtype}; it must be {names}",
            argument="x",
            types={"x": str(value.type)},
            known_as=f"Expected dtype {[str(a) for a in allowed]} but got {value.dtype}",
            hint=_UPCAST if value.dtype.is_floating() else "convert first: x.to(tl.float32)",
        )
    return value


def _define_unary(name: str, op: str, meaning: str, allowed: tuple[dtype, ...]) -> None:
    def function(b: Builder, x: object) -> tensor:
        return elementwise(b, op, _float_argument(b, x, name, allowed))

    function.__name__ = name
    function.__doc__ = f"{meaning}, element by element.\n\nDtypes: " + ", ".join(
        str(a) for a in allowed
    )
    surface(name, member=True)(function)
    surface(name, module="math")(function)


_WIDE = (float32, float64)
for _name, _op, _meaning, _allowed in (
    ("exp", "math.exp", "e to the power x", _WIDE),
    ("exp2", "math.exp2", "2 to the power x", _WIDE),
    ("log", "math.log", "The natural logarithm of x", _WIDE),
    ("log2", "math.log2", "The logarithm of x to base 2", _WIDE),
    ("sin", "math.sin", "The sine of x", _WIDE),
    ("cos", "math.cos", "The cosine of x", _WIDE),
    ("sqrt", "math.sqrt", "The square root of x", _WIDE),
    ("sqrt_rn", "tt.precise_sqrt", "The square root of x rounded to nearest even", (float32,)),
    ("rsqrt", "math.rsqrt", "1 over the square root of x", _WIDE),
    ("erf", "math.erf", "The error function of x", _WIDE),
    ("floor", "math.floor", "The greatest integral value not above x", _WIDE),
    ("ceil", "math.ceil", "The least integral value not below x", _WIDE),
):
    _define_unary(_name, _op, _meaning, _allowed)


@surface(member=True)
@surface(module="math")
def abs_(b: Builder, x: object) -> tensor:
    """The magnitude of x, element by element; unsigned integers stay as they are."""
    value = to_tensor(b, x)
    if value.dtype.is_floating():
        return magnitude(b, value)
    if value.dtype.is_int_signed():
        return elementwise(b, "math.absi", value)
    if value.dtype.is_int_unsigned():
        return value
    raise DtypeNotAllowed(f"abs(): `x` is {value.dtype}", argument="x")


def _nan_rule(value: object, function: str) -> bool:
    plain = constant(value, function, "propagate_nan")
    if not isinstance(plain, PropagateNan):
        raise InvalidOption(
            f"{function}(): `propagate_nan` must be tl.PropagateNan.NONE or .ALL, got {plain!r}",
            argument="propagate_nan",
        )
    return plain is PropagateNan.ALL


_EXTREMA = {
    "minimum": ("arith.minsi", "arith.minui", "arith.minnumf", "arith.minimumf"),
    "maximum": ("arith.maxsi", "arith.maxui", "arith.maxnumf", "arith.maximumf"),
}


def extremum(b: Builder, name: str, x: object, y: object, propagates_nan: bool) -> tensor:
    """minimum or maximum of two tensors after promotion."""
    left, right = meet(b, x, y)
    signed, unsigned, number, propagating = _EXTREMA[name]
    if left.dtype == float8e5:
        return _extremum_of_float8e5(b, name, left, right, propagates_nan)
    if left.dtype.is_floating():
        return elementwise(b, propagating if propagates_nan else number, left, right)
    return elementwise(b, signed if left.dtype.is_int_signed() else unsigned, left, right)


def _extremum_of_float8e5(
    b: Builder, name: str, x: tensor, y: tensor, propagates_nan: bool
) -> tensor:
    """Found in float32; the way back is exact, and towards zero it keeps infinities."""
    wide = extremum(b, name, convert(b, x, float32), convert(b, y, float32), propagates_nan)
    return convert(b, wide, float8e5, "rtz")


@surface()
def minimum(b: Builder, x: object, y: object, propagate_nan: object = PropagateNan.NONE) -> tensor:
    """The lesser of x and y; a NaN loses (NONE, IEEE minNum) or wins (ALL)."""
    return extremum(b, "minimum", x, y, _nan_rule(propagate_nan, "minimum"))


@surface()
def maximum(b: Builder, x: object, y: object, propagate_nan: object = PropagateNan.NONE) -> tensor:
    """The greater of x and y; a NaN loses (NONE, IEEE maxNum) or wins (ALL)."""
    return extremum(b, "maximum", x, y, _nan_rule(propagate_nan, "maximum"))


@surface()
def clamp(
    b: Builder,
    x: object,
    min: object,
    max: object,
    propagate_nan: object = PropagateNan.NONE,
) -> tensor:
    """x limited to [min, max]; floats only. Undefined for min > max."""
    propagates = _nan_rule(propagate_nan, "clamp")
    value, low = meet(b, x, min)
    value, high = meet(b, value, max)
    low = broadcast_tensor(b, convert(b, low, value.dtype), value.static_shape)
    if not value.dtype.is_floating():
        raise DtypeNotAllowed(
            f"clamp(): `x` is {value.dtype}; it must be a float",
            argument="x",
            hint="use tl.minimum(tl.maximum(x, low), high) for integers",
        )
    code = PropagateNan.ALL.value if propagates else PropagateNan.NONE.value
    properties = {"propagateNan": integer_property(code)}
    if value.dtype != float8e5:
        return b.tensor(ClampFOp, [value, low, high], value.type, properties)
    # Found in float32; the way back is exact, and towards zero it keeps infinities.
    wide = [convert(b, each, float32) for each in (value, low, high)]
    return convert(b, b.tensor(ClampFOp, wide, wide[0].type, properties), float8e5, "rtz")


def select(b: Builder, condition: tensor, x: tensor, y: tensor) -> tensor:
    """x where condition holds, else y; all of one shape, x and y of one dtype."""
    cls: type[ElementwiseOp] = SelectOp
    return b.tensor(cls, [condition, x, y], x.type)


@surface()
def where(b: Builder, condition: object, x: object, y: object) -> tensor:
    """x where `condition` holds, else y; both are evaluated.

    Shapes: all three broadcast together. Dtypes: x and y are promoted like `x + y`; a
    condition that is no int1 tests `!= 0`, with a warning: Triton announces to refuse it.
    """
    chooser = to_tensor(b, condition)
    if not chooser.dtype.is_bool():
        _warn_of_condition(b, chooser.dtype)
        chooser = convert(b, chooser, int1)
    if is_pointer_pair(x, y):
        left, right = require_tensor(x, "where", "x"), require_tensor(y, "where", "y")
    else:
        left, right = meet(b, x, y)
    shape = left.static_shape
    from_all = [chooser, left, right]
    for value in from_all:
        shape = broadcast_shapes(shape, value.static_shape)
    chooser, left, right = (broadcast_tensor(b, v, shape) for v in from_all)
    return select(b, chooser, left, right)


def _warn_of_condition(b: Builder, type_: dtype) -> None:
    """Warn at the kernel's line, once a compilation, that a condition is no int1."""
    spans = call_chain(b.location)
    file, line = (spans[0].file, spans[0].line) if spans else ("<kernel>", 1)
    message = f"tl.where with a non-boolean condition is deprecated: got {type_}; write `x != 0`"
    warnings.warn_explicit(message, UserWarning, file, line)


def is_pointer_pair(x: object, y: object) -> bool:
    """Whether both values are tensors of pointers."""
    pair = (unwrap(x), unwrap(y))
    return all(isinstance(v, tensor) and v.dtype.is_ptr() for v in pair)


@surface()
@surface(module="math")
def fma(b: Builder, x: object, y: object, z: object) -> tensor:
    """x * y + z rounded once; floats only."""
    left, right = meet(b, x, y)
    left, addend = meet(b, left, z)
    left, right = meet(b, left, right)
    if not left.dtype.is_floating():
        raise DtypeNotAllowed(f"fma(): operands are {left.dtype}; floats are needed")
    return b.tensor(FmaOp, [left, right, addend], left.type)


@surface()
@surface(module="math")
def fdiv(
    b: Builder, x: object, y: object, ieee_rounding: object = False, approx: object = False
) -> tensor:
    """x / y on floats; with `ieee_rounding` rounded to nearest even, as the CPU always does.

    `approx` is accepted and changes nothing: without `ieee_rounding` a GPU approximates.
    """
    is_rounded = boolean_constant(ieee_rounding, "fdiv", "ieee_rounding")
    boolean_constant(approx, "fdiv", "approx")
    left, right = meet(b, x, y)
    if not left.dtype.is_floating():
        raise DtypeNotAllowed(f"fdiv(): operands are {left.dtype}; floats are needed")
    name = "tt.precise_divf" if is_rounded and left.dtype == float32 else "arith.divf"
    return elementwise(b, name, left, right)


@surface()
@surface(module="math")
def div_rn(b: Builder, x: object, y: object) -> tensor:
    """x / y on fp32 rounded to nearest even."""
    left, right = meet(b, x, y)
    if left.dtype != float32:
        raise DtypeNotAllowed(f"div_rn(): operands are {left.dtype}; float32 is needed")
    return elementwise(b, "tt.precise_divf", left, right)


@surface()
@surface(module="math")
def umulhi(b: Builder, x: object, y: object) -> tensor:
    """The high half of the unsigned product of 32- or 64-bit integers."""
    left, right = meet(b, x, y)
    if not (left.dtype.is_int() and left.dtype.primitive_bitwidth in (32, 64)):
        raise DtypeNotAllowed(f"umulhi(): operands are {left.dtype}; 32- or 64-bit integers only")
    return elementwise(b, "tt.mulhiui", left, right)


@surface(member=True)
def cdiv(b: Builder, x: object, div: object) -> object:
    """x / div rounded up, for non-negative integers; of constants a constant."""
    known, divisor = unwrap(x), unwrap(div)
    if isinstance(known, int) and isinstance(divisor, int) and divisor:
        return constexpr(-(-known // divisor))
    one_less = binary(b, "Sub", to_tensor(b, div) if not is_number(div) else div, 1)
    return binary(b, "FloorDiv", binary(b, "Add", x, one_less), div)


@surface(member=True)
def sigmoid(b: Builder, x: object) -> tensor:
    """1 / (1 + exp(-x)), fp32 and fp64."""
    value = _float_argument(b, x, "sigmoid", _WIDE)
    exponential = elementwise(b, "math.exp", negate(b, value))
    return binary(b, "Div", 1.0, binary(b, "Add", 1.0, exponential))


def _define_arithmetic(name: str, operator: str, meaning: str) -> None:
    def function(b: Builder, x: object, y: object, sanitize_overflow: object = True) -> tensor:
        is_checked = boolean_constant(sanitize_overflow, name, "sanitize_overflow")
        return arithmetic(b, operator, x, y, is_checked)

    function.__name__ = name
    function.__doc__ = f"{meaning}; integers wrap (checked when overflow is sanitized)."
    surface(name)(function)


_define_arithmetic("add", "Add", "x + y")
_define_arithmetic("sub", "Sub", "x - y")
_define_arithmetic("mul", "Mult", "x * y")


@surface()
def swizzle2d(
    b: Builder, i: object, j: object, size_i: object, size_j: object, size_g: object
) -> object:
    """Program (i, j) of a row-major size_i × size_j grid renumbered in groups of size_g rows."""
    linear = binary(b, "Add", binary(b, "Mult", i, size_j), j)
    per_group = binary(b, "Mult", size_g, size_j)
    group = binary(b, "FloorDiv", linear, per_group)
    first = binary(b, "Mult", group, size_g)
    rows = minimum(b, binary(b, "Sub", size_i, first), size_g)
    within = binary(b, "Mod", linear, per_group)
    new_i = binary(b, "Add", first, binary(b, "Mod", within, rows))
    return tuple_([new_i, binary(b, "FloorDiv", within, rows)])
