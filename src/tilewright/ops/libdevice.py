"""User functions under the names of NVIDIA's libdevice, as `tl.extra.libdevice`.

They take fp32 and fp64 (operands of one dtype), or 32- and 64-bit integers, and map to the ops of
the same meaning. Names for approximate variants (`fast_expf`) give the accurate function.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.language.core import dtype, float32, float64, int1, int32, int64, tensor, uint32
from tilewright.ops.builder import Builder, integer_property, shaped
from tilewright.ops.casting import convert, reinterpret_bits, to_tensor
from tilewright.ops.elementwise import FLOAT_PREDICATES, CmpFOp, FmaOp
from tilewright.ops.math import select
from tilewright.ops.operators import binary, elementwise, meet
from tilewright.ops.surface import surface
from tilewright.support.errors import DtypeNotAllowed

_MODULE = "extra.libdevice"
_FLOATS = (float32, float64)
_INTEGERS = ("int32", "uint32", "int64", "uint64")


def _require_float(x: tensor, function: str) -> tensor:
    if x.dtype not in _FLOATS:
        raise DtypeNotAllowed(
            f"{function}(): the operand is {x.dtype}; it must be fp32 or fp64",
            types={"x": str(x.type)},
            hint="convert it with .to(tl.float32)",
        )
    return x


def _declare(name: str, meaning: str, function: Callable[..., object], in_math: bool) -> None:
    function.__name__ = name
    function.__doc__ = f"{meaning}, element by element.\n\nDtypes: fp32, fp64."
    surface(name, module=_MODULE)(function)
    if in_math:
        surface(name, module="math")(function)


def _define_unary(name: str, op: str, meaning: str, in_math: bool = False) -> None:
    def function(b: Builder, x: object) -> tensor:
        return elementwise(b, op, _require_float(to_tensor(b, x), name))

    _declare(name, meaning, function, in_math)


def _define_binary(name: str, op: str, meaning: str, in_math: bool = False) -> None:
    def function(b: Builder, x: object, y: object) -> tensor:
        left, right = meet(b, x, y)
        return elementwise(b, op, _require_float(left, name), right)

    _declare(name, meaning, function, in_math)


# name, op, meaning, whether `tl.math` has it too (those of tl.math itself are in ops/math.py)
for _name, _op, _meaning, _in_math in (
    ("tanh", "math.tanh", "The hyperbolic tangent", True),
    ("sinh", "math.sinh", "The hyperbolic sine", True),
    ("cosh", "math.cosh", "The hyperbolic cosine", True),
    ("asinh", "math.asinh", "The inverse hyperbolic sine", True),
    ("acosh", "math.acosh", "The inverse hyperbolic cosine", True),
    ("atanh", "math.atanh", "The inverse hyperbolic tangent", True),
    ("tan", "math.tan", "The tangent", True),
    ("asin", "math.asin", "The arc sine", True),
    ("acos", "math.acos", "The arc cosine", True),
    ("atan", "math.atan", "The arc tangent", True),
    ("expm1", "math.expm1", "e to the power x, less 1", True),
    ("log1p", "math.log1p", "The natural logarithm of 1 + x", True),
    ("log10", "math.log10", "The logarithm to base 10", True),
    ("trunc", "math.trunc", "The integral value towards zero", True),
    ("round", "math.round", "The nearest integral value, halves away from zero", True),
    ("rint", "math.roundeven", "The nearest integral value, halves to even", True),
    ("nearbyint", "math.roundeven", "The nearest integral value, halves to even", False),
    ("exp", "math.exp", "e to the power x", False),
    ("exp2", "math.exp2", "2 to the power x", False),
    ("log", "math.log", "The natural logarithm", False),
    ("log2", "math.log2", "The logarithm to base 2", False),
    ("sin", "math.sin", "The sine", False),
    ("cos", "math.cos", "The cosine", False),
    ("erf", "math.erf", "The error function", False),
    ("sqrt", "math.sqrt", "The square root", False),
    ("rsqrt", "math.rsqrt", "1 over the square root", False),
    ("floor", "math.floor", "The greatest integral value not above x", False),
    ("ceil", "math.ceil", "The least integral value not below x", False),
    ("fabs", "math.absf", "The magnitude", False),
    ("fast_expf", "math.exp", "e to the power x", False),
    ("fast_logf", "math.log", "The natural logarithm", False),
    ("fast_log2f", "math.log2", "The logarithm to base 2", False),
    ("fast_log10f", "math.log10", "The logarithm to base 10", False),
    ("fast_sinf", "math.sin", "The sine", False),
    ("fast_cosf", "math.cos", "The cosine", False),
    ("fast_tanf", "math.tan", "The tangent", False),
    ("fast_tanhf", "math.tanh", "The hyperbolic tangent", False),
):
    _define_unary(_name, _op, _meaning, _in_math)

for _name, _op, _meaning, _in_math in (
    ("atan2", "math.atan2", "The angle of the point (y, x), the first operand being y", True),
    ("copysign", "math.copysign", "The magnitude of x with the sign of y", True),
    ("fmod", "arith.remf", "The remainder of x / y with the sign of x", True),
    ("div_rn", "arith.divf", "The quotient rounded to nearest even", False),
    ("fast_powf", "math.powf", "x to the power y", False),
    ("fast_dividef", "arith.divf", "The quotient", False),
):
    _define_binary(_name, _op, _meaning, _in_math)


@surface(module=_MODULE)
@surface(module="math")
def pow(b: Builder, x: object, y: object) -> tensor:
    """x to the power y, element by element; an integer y is converted.

    Dtypes: fp32, fp64.
    """
    base = _require_float(to_tensor(b, x), "pow")
    exponent = to_tensor(b, y)
    if exponent.dtype.is_int():
        exponent = convert(b, exponent, base.dtype)
    base, exponent = meet(b, base, exponent)
    return elementwise(b, "math.powf", base, exponent)


@surface(module=_MODULE)
@surface(module="math")
def cbrt(b: Builder, x: object) -> tensor:
    """The cube root, element by element, within 2 ulp. Dtypes: fp32, fp64."""
    value = _require_float(to_tensor(b, x), "cbrt")
    magnitude = elementwise(b, "math.absf", value)
    third = b.constant(1 / 3, value.type)
    estimate = elementwise(b, "math.powf", magnitude, third)
    # One step of Newton: 1/3 is not exact, which costs more the farther x is from 1.
    squared = elementwise(b, "arith.mulf", estimate, estimate)
    quotient = elementwise(b, "arith.divf", magnitude, squared)
    excess = elementwise(b, "arith.subf", estimate, quotient)
    root = elementwise(b, "arith.subf", estimate, elementwise(b, "arith.mulf", excess, third))
    is_degenerate = binary(b, "BitOr", binary(b, "Eq", value, 0.0), _is_infinite(b, magnitude))
    return select(b, is_degenerate, value, elementwise(b, "math.copysign", root, value))


@surface(module=_MODULE)
@surface(module="math")
def hypot(b: Builder, x: object, y: object) -> tensor:
    """sqrt(x * x + y * y), element by element, without overflow in between.

    Dtypes: fp32, fp64.
    """
    left, right = meet(b, x, y)
    _require_float(left, "hypot")
    left, right = elementwise(b, "math.absf", left), elementwise(b, "math.absf", right)
    large = elementwise(b, "arith.maximumf", left, right)
    small = elementwise(b, "arith.minimumf", left, right)
    ratio = elementwise(b, "arith.divf", small, large)
    one = b.constant(1.0, ratio.type)
    root = elementwise(b, "math.sqrt", b.tensor(FmaOp, [ratio, ratio, one], ratio.type))
    scaled = elementwise(b, "arith.mulf", large, root)
    # 0 / 0 and inf / inf have no ratio: there the greater magnitude is the result.
    is_degenerate = binary(b, "BitOr", binary(b, "Eq", large, 0.0), _is_infinite(b, large))
    return select(b, is_degenerate, large, scaled)


def _is_infinite(b: Builder, magnitude: tensor) -> tensor:
    return binary(b, "Eq", magnitude, float("inf"))


@surface(module=_MODULE)
def abs_(b: Builder, x: object) -> tensor:
    """The magnitude of x, element by element; floats and signed integers."""
    value = to_tensor(b, x)
    return elementwise(b, "math.absf" if value.dtype.is_floating() else "math.absi", value)


@surface(module=_MODULE)
def fma(b: Builder, x: object, y: object, z: object) -> tensor:
    """x * y + z rounded once. Dtypes: fp32, fp64."""
    left, right = meet(b, x, y)
    left, addend = meet(b, left, z)
    left, right = meet(b, left, right)
    return b.tensor(FmaOp, [_require_float(left, "fma"), right, addend], left.type)


@surface(module=_MODULE)
def fdim(b: Builder, x: object, y: object) -> tensor:
    """x - y where that is positive, else 0. Dtypes: fp32, fp64."""
    left, right = meet(b, x, y)
    _require_float(left, "fdim")
    difference = elementwise(b, "arith.subf", left, right)
    is_not_above = binary(b, "LtE", left, right)
    return select(b, is_not_above, b.constant(0.0, left.type), difference)


def _is_unordered(b: Builder, x: tensor) -> tensor:
    predicate = integer_property(FLOAT_PREDICATES.index("uno"), 64)
    return b.tensor(CmpFOp, [x, x], shaped(int1, x.static_shape), {"predicate": predicate})


@surface(module=_MODULE)
def isnan(b: Builder, x: object) -> tensor:
    """Whether x is NaN (int1). Dtypes: fp32, fp64."""
    return _is_unordered(b, _require_float(to_tensor(b, x), "isnan"))


@surface(module=_MODULE)
def isinf(b: Builder, x: object) -> tensor:
    """Whether x is an infinity (int1). Dtypes: fp32, fp64."""
    value = _require_float(to_tensor(b, x), "isinf")
    return _is_infinite(b, elementwise(b, "math.absf", value))


def _finite(b: Builder, x: object, function: str, allowed: dtype) -> tensor:
    value = to_tensor(b, x)
    if value.dtype != allowed:
        raise DtypeNotAllowed(f"{function}(): the operand is {value.dtype}, not {allowed}")
    return binary(b, "Lt", elementwise(b, "math.absf", value), float("inf"))


@surface(module=_MODULE)
def finitef(b: Builder, x: object) -> tensor:
    """Whether x is neither an infinity nor NaN (int1). Dtypes: fp32."""
    return _finite(b, x, "finitef", float32)


@surface(module=_MODULE)
def isfinited(b: Builder, x: object) -> tensor:
    """Whether x is neither an infinity nor NaN (int1). Dtypes: fp64."""
    return _finite(b, x, "isfinited", float64)


@surface(module=_MODULE)
def signbit(b: Builder, x: object) -> tensor:
    """Whether the sign bit of x is set (int1). Dtypes: fp32, fp64."""
    value = _require_float(to_tensor(b, x), "signbit")
    bits = reinterpret_bits(b, value, int32 if value.dtype == float32 else int64)
    return binary(b, "Lt", bits, 0)


def _define_count(name: str, op: str, meaning: str) -> None:
    def function(b: Builder, x: object) -> tensor:
        value = to_tensor(b, x)
        if value.dtype.name not in _INTEGERS:
            raise DtypeNotAllowed(f"{name}(): the operand is {value.dtype}; 32 or 64 bits only")
        return convert(b, elementwise(b, op, value), int32)

    function.__name__ = name
    function.__doc__ = f"{meaning} as int32, element by element.\n\nDtypes: {', '.join(_INTEGERS)}."
    surface(name, module=_MODULE)(function)


_define_count("popc", "math.ctpop", "The number of set bits")
_define_count("clz", "math.ctlz", "The number of leading zero bits")


@surface(module=_MODULE)
def ffs(b: Builder, x: object) -> tensor:
    """The position of the lowest set bit, counted from 1, or 0 for 0, as int32.

    Dtypes: 32- and 64-bit integers.
    """
    value = to_tensor(b, x)
    if value.dtype.name not in _INTEGERS:
        raise DtypeNotAllowed(f"ffs(): the operand is {value.dtype}; 32 or 64 bits only")
    position = binary(b, "Add", convert(b, elementwise(b, "math.cttz", value), int32), 1)
    is_zero = binary(b, "Eq", value, b.constant(0, value.dtype))
    return select(b, is_zero, b.constant(0, position.type), position)


def _define_bits(name: str, source: dtype, to: dtype) -> None:
    def function(b: Builder, x: object) -> tensor:
        value = to_tensor(b, x)
        if value.dtype != source:
            raise DtypeNotAllowed(f"{name}(): the operand is {value.dtype}, not {source}")
        return reinterpret_bits(b, value, to)

    function.__name__ = name
    function.__doc__ = f"The bits of {source} read as {to}, element by element."
    surface(name, module=_MODULE)(function)


_define_bits("float_as_int", float32, int32)
_define_bits("float_as_uint", float32, uint32)
_define_bits("int_as_float", int32, float32)
_define_bits("uint_as_float", uint32, float32)
_define_bits("double_as_longlong", float64, int64)
_define_bits("longlong_as_double", int64, float64)
