"""The functions of libdevice beyond those of the language, by the name of their routine."""

from __future__ import annotations

from tilewright.codegen.math import (
    bessel,
    directed,
    gamma,
    integers,
    inverse_hyperbolic,
    normal,
    norms,
    remainders,
    representation,
    turns,
)
from tilewright.codegen.math.lanes import LaneCode, LaneValue
from tilewright.codegen.math.power import power
from tilewright.codegen.math.widening import Routine, in_double


def _fused(code: LaneCode, x: LaneValue, y: LaneValue, z: LaneValue) -> LaneValue:
    """`x·y + z` rounded once."""
    return code.fused(x, y, z)


def _integer_power(code: LaneCode, x: LaneValue, n: LaneValue) -> LaneValue:
    """`x^n` for an integer `n`."""
    return power(code, x, n.convert("sitofp", "double"))


def _rounded_rsqrt(code: LaneCode, x: LaneValue) -> LaneValue:
    """`1/√x`; in doubles, so that a float result is the nearest one."""
    return 1.0 / code.intrinsic("sqrt", x)


def _long_of_nearest(code: LaneCode, x: LaneValue) -> LaneValue:
    """The nearest integer, halves away from zero, as i64."""
    return _LONG(code, code.intrinsic("round", x))


_ROUNDED = directed.routines()
_LONG = _ROUNDED["double2ll_rz"]

# Short ones stand where they are used.
INLINE: dict[str, Routine] = {
    "abs": integers.absolute,
    "brev": integers.reverse,
    "byte_perm": integers.permute_bytes,
    "clz": integers.count_leading,
    "popc": integers.count_set,
    "ffs": integers.first_set,
    "hadd": integers.average,
    "uhadd": integers.unsigned_average,
    "rhadd": integers.rounded_average,
    "urhadd": integers.unsigned_rounded_average,
    "mul24": integers.short_product,
    "umul24": integers.unsigned_short_product,
    "mulhi": integers.high_product,
    "umulhi": integers.unsigned_high_product,
    "sad": integers.distance,
    "usad": integers.unsigned_distance,
    "float_as_int": representation.as_integer,
    "float_as_uint": representation.as_integer,
    "double_as_longlong": representation.as_integer,
    "int_as_float": representation.as_float,
    "uint_as_float": representation.as_float,
    "longlong_as_double": representation.as_float,
    "hiloint2double": representation.from_words,
    "double2hiint": representation.high_word,
    "double2loint": representation.low_word,
    "fabs": representation.magnitude,
    "copysign": representation.copysign,
    "isfinite": representation.is_finite,
    "isinf": representation.is_infinite,
    "isnan": representation.is_nan,
    "signbit": representation.has_sign,
    "saturatef": representation.saturate,
    "fdim": representation.positive_difference,
    "nextafter": representation.neighbour,
    "ilogb": representation.exponent_as_integer,
    "logb": representation.exponent_as_float,
    "ldexp": representation.scale_by_power,
    "scalbn": representation.scale_by_power,
    "rcp64h": representation.truncated_reciprocal,
    "fma": _fused,
    "rsqrt_rn": in_double(_rounded_rsqrt),
    "llrint": _ROUNDED["double2ll_rn"],
    "llround": _long_of_nearest,
    **_ROUNDED,
}
# Long ones are functions of the module, written once for each lane count.
OUTLINED: dict[str, Routine] = {
    "acosh": in_double(inverse_hyperbolic.acosh),
    "asinh": in_double(inverse_hyperbolic.asinh),
    "atanh": in_double(inverse_hyperbolic.atanh),
    "cbrt": in_double(norms.cbrt),
    "rcbrt": in_double(norms.reciprocal_cbrt),
    "hypot": in_double(norms.norm),
    "rhypot": in_double(norms.reciprocal_norm),
    "norm3d": in_double(norms.norm),
    "norm4d": in_double(norms.norm),
    "rnorm3d": in_double(norms.reciprocal_norm),
    "rnorm4d": in_double(norms.reciprocal_norm),
    "exp10": in_double(turns.exp10),
    "sinpi": in_double(turns.sinpi),
    "cospi": in_double(turns.cospi),
    "fmod": in_double(remainders.fmod, of_floats=remainders.fmod_of_floats),
    "remainder": in_double(remainders.remainder),
    "powi": in_double(_integer_power),
    "erfc": in_double(normal.erfc),
    "erfcx": in_double(normal.erfcx),
    "erfinv": in_double(normal.erfinv),
    "erfcinv": in_double(normal.erfcinv),
    "normcdf": in_double(normal.normcdf),
    "normcdfinv": in_double(normal.normcdfinv),
    "lgamma": in_double(gamma.lgamma),
    "tgamma": in_double(gamma.tgamma),
    "j0": in_double(bessel.j0),
    "j1": in_double(bessel.j1),
    "jn": in_double(bessel.jn),
    "y0": in_double(bessel.y0),
    "y1": in_double(bessel.y1),
    "yn": in_double(bessel.yn),
    "cyl_bessel_i0": in_double(bessel.i0),
    "cyl_bessel_i1": in_double(bessel.i1),
}
# Elsewhere an operand has the type that selects the form (T).
OPERANDS: dict[str, tuple[str, ...]] = {
    "ldexp": ("T", "i32"),
    "scalbn": ("T", "i32"),
    "powi": ("T", "i32"),
    "jn": ("i32", "T"),
    "yn": ("i32", "T"),
}
