"""float32 functions through the special function unit, which has `2^x`, `√x`, `1/√x` and more.

The unit works to about 22 bits over a reduced range and flushes denormals, so a few fused
multiply-adds around it keep the results within two units in the last place.
"""

from __future__ import annotations

from tilewright.codegen.math.exponential import small_tanh_or
from tilewright.codegen.math.lanes import LaneCode, LaneValue

# By definition: log2(e) as the nearest float and what is missing from it.
_LOG2_E = (1.4426950216293335, 1.9259629911266175e-08)
# By definition: logarithms.
_LOG2_10 = 3.321928094887362
_LN_2, _LOG10_2 = 0.6931471805599453, 0.3010299956639812
# By definition: exp scales by 2^n for n in [-126, 126]; a saturating product clamps n for nothing.
_SPAN = 252.0
# By definition: adding it leaves n + 127 in the low bits of the sum, ready to become an exponent.
_MAGIC = 1.5 * 2.0**23 + 1.0
# By definition: reciprocals of larger numbers are denormal, and so are smaller numbers.
_LARGE, _SMALL = 2.0**126, 2.0**-126
# By definition: what brings such numbers back; ptxas 13.0.88 scales by the same for `div.full`.
_DOWN, _UP = 0.25, 2.0**24


def exp2(code: LaneCode, x: LaneValue) -> LaneValue:
    """The value `2^x`; results below 2^-126 are 0."""
    return code.call("llvm.nvvm.ex2.approx.ftz.f32", x)


def exp(code: LaneCode, x: LaneValue) -> LaneValue:
    """The value `e^x` over the whole range, denormal results included.

    `x·log2 e = n + r`, where `n` is a whole number: the unit gives `2^r`.
    """
    high, low = _LOG2_E
    share = code.call("llvm.nvvm.fma.rn.sat.f", x, x.coerce(high / _SPAN), x.coerce(0.5))
    shifted = code.call("llvm.nvvm.fma.rm.f", share, x.coerce(_SPAN), x.coerce(_MAGIC))
    n = shifted - (_MAGIC + 126.0)
    r = code.fused(x, low, code.fused(x, high, -n))
    return exp2(code, r) * (shifted.bits() << 23).as_float("float")


def fast_exp(code: LaneCode, x: LaneValue) -> LaneValue:
    """The value `e^x` as `2^(x·log2 e)`: the error grows with `|x|`."""
    return exp2(code, x * _LOG2_E[0])


def fast_exp10(code: LaneCode, x: LaneValue) -> LaneValue:
    """The value `10^x` as `2^(x·log2 10)`: the error grows with `|x|`."""
    return exp2(code, x * _LOG2_10)


def sigmoid(code: LaneCode, x: LaneValue) -> LaneValue:
    """The value `1 / (1 + e^-x)`, through `e^-|x|`: small results keep their digits."""
    power = exp(code, -x.absolute())
    numerator = x.compare("olt", 0.0).select(power, x.coerce(1.0))
    return numerator / (power + 1.0)


def tanh(code: LaneCode, x: LaneValue) -> LaneValue:
    """The hyperbolic tangent: `1 - 2/(e^(2|x|) + 1)`, and a polynomial for `|x| < 0.625`."""
    size = x.absolute()
    power = exp2(code, size * (2.0 * _LOG2_E[0]))
    share = code.call("llvm.nvvm.rcp.approx.ftz.f", power + 1.0)
    return small_tanh_or(code, x, size, code.fused(share, -2.0, x.coerce(1.0)))


def sqrt(code: LaneCode, x: LaneValue) -> LaneValue:
    """The square root, not always rounded to nearest."""
    return code.call("llvm.nvvm.sqrt.approx.f", x)


def rsqrt(code: LaneCode, x: LaneValue) -> LaneValue:
    """The value `1/√x`."""
    return code.call("llvm.nvvm.rsqrt.approx.f", x)


def fast_log2(code: LaneCode, x: LaneValue) -> LaneValue:
    """The base-2 logarithm with an absolute error of 2^-22; denormals count as 0."""
    return code.call("llvm.nvvm.lg2.approx.ftz.f", x)


def fast_log(code: LaneCode, x: LaneValue) -> LaneValue:
    """The natural logarithm as a multiple of that to base 2."""
    return fast_log2(code, x) * _LN_2


def fast_log10(code: LaneCode, x: LaneValue) -> LaneValue:
    """The logarithm to base 10 as a multiple of that to base 2."""
    return fast_log2(code, x) * _LOG10_2


def fast_pow(code: LaneCode, x: LaneValue, y: LaneValue) -> LaneValue:
    """The power of a positive number, as `2^(y·log2 x)`."""
    return exp2(code, y * fast_log2(code, x))


def fast_sin(code: LaneCode, x: LaneValue) -> LaneValue:
    """The sine with an absolute error of 2^-20 in [-π, π]."""
    return code.call("llvm.nvvm.sin.approx.ftz.f", x)


def fast_cos(code: LaneCode, x: LaneValue) -> LaneValue:
    """The cosine with an absolute error of 2^-20 in [-π, π]."""
    return code.call("llvm.nvvm.cos.approx.ftz.f", x)


def fast_tan(code: LaneCode, x: LaneValue) -> LaneValue:
    """The tangent as the quotient of the fast sine and cosine."""
    return fast_divide(code, fast_sin(code, x), fast_cos(code, x))


def fast_tanh(code: LaneCode, x: LaneValue) -> LaneValue:
    """The hyperbolic tangent with a relative error of 2^-11."""
    symbol = code.fn.module.declare("llvm.tanh.f32", "float", "float")
    return code.wrap("float", code.fn.value(f"call afn float {symbol}(float {x.name})"))


def fast_divide(code: LaneCode, x: LaneValue, y: LaneValue) -> LaneValue:
    """The quotient within 2 ulp for divisors from 2^-126 to 2^126; 0 beyond."""
    return code.call("llvm.nvvm.div.approx.ftz.f", x, y)


def divide_by_shared(code: LaneCode, x: LaneValue, y: LaneValue) -> LaneValue:
    """The quotient within 2 ulp, in two products where many numbers have one divisor.

    It has the bits of `div.full`: the divisor is scaled into the range of the unit's reciprocal,
    and the dividend alike. What follows from `y` alone is computed once for all numbers.
    """
    size = y.absolute()
    is_large = size.compare("ogt", _LARGE)
    is_small = size.compare("olt", _SMALL)
    small = is_small.select(y.coerce(_UP), 1.0)
    scale = is_large.select(y.coerce(_DOWN), small)
    reciprocal = code.call("llvm.nvvm.rcp.approx.ftz.f", y * scale)
    return x * scale * reciprocal


def saturate(code: LaneCode, x: LaneValue) -> LaneValue:
    """The number limited to [0, 1]; NaN gives 0."""
    return code.call("llvm.nvvm.saturate.f", x)
