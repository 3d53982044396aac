"""What each function of the library computes, over NumPy arrays, by the name of its routine.

float32 functions are evaluated in float64 and rounded once. Integers are signed arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tilewright.ir.op import Array
from tilewright.ops.elementwise import directed, special
from tilewright.ops.elementwise.reference import (
    Reference,
    count_bits,
    count_leading,
    count_trailing,
    fused_multiply_add,
    high_product,
    on_unsigned,
    round_half_away,
    unsigned,
)

_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)
_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


def _in_double(function: Callable[..., Array]) -> Reference:
    """`function` of float64 arrays, for float32 ones too; integer operands pass through."""

    def apply(*operands: Array) -> Array:
        dtype = next(o.dtype for o in operands if o.dtype.kind == "f")
        wide = [o.astype(np.float64) if o.dtype.kind == "f" else o for o in operands]
        return np.asarray(function(*wide)).astype(dtype)

    return directed.quiet(apply)


def _by_order(function: Callable[[int, Array], Array]) -> Callable[[Array, Array], Array]:
    """A Bessel function whose order is an operand: once for each order that occurs."""

    def apply(orders: Array, x: Array) -> Array:
        orders, x = np.broadcast_arrays(orders, x)
        result = np.empty(x.shape)
        for order in np.unique(orders):
            chosen = orders == order
            result[chosen] = function(int(order), x[chosen])
        return result

    return apply


def _scaled_root(*operands: Array) -> tuple[Array, Array]:
    """`(root, scale)` with √Σx² = root·scale, where neither overflows; infinite, 1 with an inf."""
    largest = np.max(np.abs(operands), axis=0)
    scale = np.where((largest == 0) | ~np.isfinite(largest), 1.0, largest)
    total = sum((operand / scale) ** 2 for operand in operands)
    is_infinite = np.any(np.isinf(operands), axis=0)
    return np.where(is_infinite, np.inf, np.sqrt(total)), scale


def _norm(*operands: Array) -> Array:
    root, scale = _scaled_root(*operands)
    return root * scale


def _reciprocal_norm(*operands: Array) -> Array:
    # The norm itself may overflow where this does not.
    root, scale = _scaled_root(*operands)
    return 1 / root / scale


def _exponent(x: Array) -> Array:
    return (np.frexp(x)[1] - 1).astype(np.int32)


def _whole_exponent(x: Array) -> Array:
    """The exponent as int32: the lowest for 0 and NaN, the greatest for infinities."""
    lowest, highest = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    special_case = np.where(np.isinf(x), highest, lowest)
    return np.where((x == 0) | ~np.isfinite(x), special_case, _exponent(x)).astype(np.int32)


def _float_exponent(x: Array) -> Array:
    exponent = np.where(x == 0, -np.inf, np.where(np.isfinite(x), _exponent(x), x * x))
    return exponent.astype(x.dtype)


def _reversed_bits(x: Array) -> Array:
    bits = 8 * x.dtype.itemsize
    result = np.zeros_like(unsigned(x))
    source = unsigned(x)
    one = source.dtype.type(1)
    for index in range(bits):
        bit = (source >> source.dtype.type(index)) & one
        result = result | (bit << source.dtype.type(bits - 1 - index))
    return result.view(x.dtype)


def _permuted_bytes(x: Array, y: Array, selector: Array) -> Array:
    joined = unsigned(x).astype(np.uint64) | (unsigned(y).astype(np.uint64) << np.uint64(32))
    result = np.zeros_like(joined)
    for index in range(4):
        code = (unsigned(selector).astype(np.uint64) >> np.uint64(4 * index)) & np.uint64(15)
        byte = (joined >> ((code & np.uint64(7)) * np.uint64(8))) & np.uint64(0xFF)
        sign = np.where(byte >> np.uint64(7), np.uint64(0xFF), np.uint64(0))
        byte = np.where(code >> np.uint64(3), sign, byte)
        result |= byte << np.uint64(8 * index)
    return result.astype(np.uint32).view(np.int32)


def _signed_high_product(a: Array, b: Array) -> Array:
    high = high_product(unsigned(a), unsigned(b)).view(a.dtype)
    return high - np.where(a < 0, b, 0) - np.where(b < 0, a, 0)


def _average(rounding: int, is_signed: bool) -> Reference:
    def apply(a: Array, b: Array) -> Array:
        x, y = (v if is_signed else unsigned(v) for v in (a, b))
        return ((x.astype(np.int64) + y.astype(np.int64) + rounding) >> 1).astype(a.dtype)

    return apply


def _short_product(is_signed: bool) -> Reference:
    def low(x: Array) -> Array:
        bits = unsigned(x).astype(np.int64) & 0xFFFFFF
        return np.where(is_signed & (bits >> 23 == 1), bits - (1 << 24), bits)

    return lambda a, b: (low(a) * low(b)).astype(np.int32)


def _distance(is_signed: bool) -> Reference:
    def apply(a: Array, b: Array, c: Array) -> Array:
        x, y = ((v if is_signed else unsigned(v)).astype(np.int64) for v in (a, b))
        return (np.abs(x - y) + c).astype(np.int32)

    return apply


def _join_words(high: Array, low: Array) -> Array:
    wide = (unsigned(high).astype(np.uint64) << np.uint64(32)) | unsigned(low).astype(np.uint64)
    return wide.view(np.float64)


def _truncated_reciprocal(x: Array) -> Array:
    bits = np.asarray(1 / x).view(np.uint64) & ~np.uint64(0xFFFFFFFF)
    return bits.view(np.float64)


def _fused(x: Array, y: Array, z: Array) -> Array:
    """x·y + z rounded once; great factors are balanced, for the exact product splits them."""
    if x.dtype == np.float64:
        lift = np.where(
            np.abs(x) > 2.0**900, 2.0**-300, np.where(np.abs(y) > 2.0**900, 2.0**300, 1)
        )
        x, y = x * lift, y / lift
    return fused_multiply_add(x, y, z)


def _nearest_long(x: Array) -> Array:
    return directed.to_integer(_INT64, True, "rz")(round_half_away(x))


def _count_in_int32(count: Reference) -> Reference:
    return lambda x: count(x).astype(np.int32)


def _first_set(x: Array) -> Array:
    return np.where(x == 0, 0, count_trailing(x) + 1).astype(np.int32)


def _bits_as(dtype: np.dtype) -> Reference:
    return lambda x: np.ascontiguousarray(x).reshape(np.shape(x)).view(dtype)


def _in_int32(predicate: Callable[[Array], Array]) -> Reference:
    return lambda x: np.asarray(predicate(x)).astype(np.int32)


def _magnitude(x: Array) -> Array:
    return np.abs(x)


_FLOAT: dict[str, Callable[..., Array]] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "cos": np.cos,
    "cosh": np.cosh,
    "cospi": lambda x: special.sine_of_turns(x, True),
    "cyl_bessel_i0": lambda x: special.bessel_i(0, x),
    "cyl_bessel_i1": lambda x: special.bessel_i(1, x),
    "erf": special.each(math.erf),
    "erfc": special.each(math.erfc),
    "erfcinv": special.each(special.erfcinv),
    "erfcx": special.erfcx,
    "erfinv": special.each(special.erfinv),
    "exp": np.exp,
    "exp10": lambda x: np.power(10.0, x),
    "exp2": np.exp2,
    "expm1": np.expm1,
    "fast_cos": np.cos,
    "fast_divide": np.divide,
    "fast_exp": np.exp,
    "fast_exp10": lambda x: np.power(10.0, x),
    "fast_log": np.log,
    "fast_log10": np.log10,
    "fast_log2": np.log2,
    "fast_pow": np.power,
    "fast_sin": np.sin,
    "fast_tan": np.tan,
    "fast_tanh": np.tanh,
    "fdim": lambda x, y: np.where(x > y, x - y, np.where(x <= y, 0.0, np.nan)),
    "fmod": np.fmod,
    "hypot": np.hypot,
    "j0": lambda x: special.bessel_j(0, x),
    "j1": lambda x: special.bessel_j(1, x),
    "jn": _by_order(special.bessel_j),
    "lgamma": special.each(special.log_gamma),
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "norm3d": _norm,
    "norm4d": _norm,
    "normcdf": special.normcdf,
    "normcdfinv": special.each(lambda p: -math.sqrt(2) * special.erfcinv(2 * p)),
    "pow": np.power,
    "powi": lambda x, n: np.power(x, n.astype(np.float64)),
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "remainder": lambda x, y: _remainder(x, y),
    "rhypot": _reciprocal_norm,
    "rnorm3d": _reciprocal_norm,
    "rnorm4d": _reciprocal_norm,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "rsqrt_rn": lambda x: 1 / np.sqrt(x),
    "saturatef": lambda x: np.where(x > 0, np.minimum(x, 1.0), 0.0),
    "sin": np.sin,
    "sinh": np.sinh,
    "sinpi": lambda x: special.sine_of_turns(x, False),
    "tan": np.tan,
    "tanh": np.tanh,
    "tgamma": special.each(special.gamma),
    "y0": lambda x: special.bessel_y(0, x),
    "y1": lambda x: special.bessel_y(1, x),
    "yn": _by_order(special.bessel_y),
}


def _ieee_remainder(x: float, y: float) -> float:
    is_defined = math.isfinite(x) and y != 0 and not math.isnan(y)
    return math.remainder(x, y) if is_defined else math.nan


_remainder = special.each(_ieee_remainder)

_OTHER: dict[str, Reference] = {
    "abs": _magnitude,
    "fabs": _magnitude,
    "ceil": directed.quiet(np.ceil),
    "floor": directed.quiet(np.floor),
    "trunc": directed.quiet(np.trunc),
    "rint": directed.quiet(np.rint),
    "nearbyint": directed.quiet(np.rint),
    "round": directed.quiet(round_half_away),
    "sqrt": directed.quiet(np.sqrt),
    "copysign": np.copysign,
    "nextafter": directed.quiet(np.nextafter),
    "ldexp": directed.quiet(np.ldexp),
    "scalbn": directed.quiet(np.ldexp),
    "fma": directed.quiet(_fused),
    "logb": directed.quiet(_float_exponent),
    "ilogb": directed.quiet(_whole_exponent),
    "llrint": directed.to_integer(_INT64, True, "rn"),
    "llround": directed.quiet(_nearest_long),
    "rcp64h": directed.quiet(_truncated_reciprocal),
    "brev": _reversed_bits,
    "byte_perm": _permuted_bytes,
    "clz": _count_in_int32(count_leading),
    "popc": _count_in_int32(count_bits),
    "ffs": _first_set,
    "hadd": _average(0, True),
    "uhadd": _average(0, False),
    "rhadd": _average(1, True),
    "urhadd": _average(1, False),
    "mul24": _short_product(True),
    "umul24": _short_product(False),
    "mulhi": _signed_high_product,
    "umulhi": on_unsigned(high_product),
    "sad": _distance(True),
    "usad": _distance(False),
    "float_as_int": _bits_as(_INT32),
    "float_as_uint": _bits_as(_INT32),
    "int_as_float": _bits_as(_SINGLE),
    "uint_as_float": _bits_as(_SINGLE),
    "double_as_longlong": _bits_as(_INT64),
    "longlong_as_double": _bits_as(_DOUBLE),
    "hiloint2double": _join_words,
    "double2hiint": lambda x: (x.view(np.int64) >> 32).astype(np.int32),
    "double2loint": lambda x: x.view(np.int64).astype(np.int32),
    "isfinite": _in_int32(np.isfinite),
    "isinf": _in_int32(np.isinf),
    "isnan": _in_int32(np.isnan),
    "signbit": _in_int32(np.signbit),
}


def _rounded() -> dict[str, Reference]:
    """Arithmetic and conversions with a rounding mode in their name."""
    table: dict[str, Reference] = {}
    integers = (("int", _INT32, True), ("uint", _INT32, False))
    integers += (("ll", _INT64, True), ("ull", _INT64, False))
    for mode in directed.MODES:
        for name in ("add", "sub", "mul", "div", "rcp", "sqrt", "fma"):
            table[f"{name}_{mode}"] = directed.arithmetic(name, mode)
        for integer, dtype, is_signed in integers:
            for source in ("float", "double"):
                table[f"{source}2{integer}_{mode}"] = directed.to_integer(dtype, is_signed, mode)
            for target, float_dtype in (("float", _SINGLE), ("double", _DOUBLE)):
                # Every 32-bit integer is a double.
                if mode != "rn" and (target, dtype) == ("double", _INT32):
                    continue
                convert = directed.from_integer(float_dtype, is_signed, mode)
                table[f"{integer}2{target}_{mode}"] = convert
        table[f"double2float_{mode}"] = directed.to_single(mode)
    return table


REFERENCES: dict[str, Reference] = {
    **{name: _in_double(function) for name, function in _FLOAT.items()},
    **_OTHER,
    **_rounded(),
}
