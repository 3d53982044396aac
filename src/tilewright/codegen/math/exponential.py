"""Exponential functions: exp, exp2, expm1 and the hyperbolic functions built on them.

`e^x = 2^n · e^r` with `n = round(x / ln 2)` and `|r| ≤ ln 2 / 2`: a polynomial gives `e^r`, and
multiplying by `2^n` rounds once, so denormal results are right.
"""

from __future__ import annotations

from tilewright.codegen.math.lanes import (
    EXPONENT_BIAS,
    MANTISSA_BITS,
    LaneCode,
    LaneValue,
)

LOG2_E = 1.4426950408889634
# ln 2 in two parts; the first has trailing zeros, so n·LN2_HIGH is exact without an FMA too.
LN2_HIGH = {"float": 0.693359375, "double": 0.6931471803691238}
LN2_LOW = {"float": -0.00021219444005469057, "double": 1.9082149292705877e-10}

# Polynomials: minimax by Remez exchange in 200-bit arithmetic, relative to the function, the
# coefficients then rounded to the element type one after the other with a refit of the rest.
# (e^r - 1) / r on |r| ≤ 0.35, relative to e^r: error 2^-28.1 and 2^-60.8.
_EXP = {
    "float": (
        1.0,
        0.4999999403953552,
        0.16666509211063385,
        0.041668009012937546,
        0.0083699906244874,
        0.0013847065856680274,
    ),
    "double": (
        1.0,
        0.5,
        0.1666666666666669,
        0.04166666666666685,
        0.008333333333311752,
        0.001388888888875582,
        0.00019841269908812145,
        2.4801587617662487e-05,
        2.755722279889501e-06,
        2.755697694185248e-07,
        2.511616921554422e-08,
        2.1024252847446404e-09,
    ),
}
# (e^r - 1 - r) / r² on the same range, relative to e^r - 1: error 2^-30.9 and 2^-56.6.
_EXPM1 = {
    "float": (
        0.5,
        0.1666666567325592,
        0.041666459292173386,
        0.008333634585142136,
        0.0013935917522758245,
        0.00019675152725540102,
    ),
    "double": (
        0.5000000000000001,
        0.1666666666666667,
        0.04166666666665111,
        0.008333333333325565,
        0.0013888888896005814,
        0.00019841269876804334,
        2.4801574024644907e-05,
        2.7557252898842514e-06,
        2.7568138335519615e-07,
        2.510625103516719e-08,
        1.768813242254396e-09,
    ),
}
# (2^r - 1) / r on |r| ≤ 0.505, relative to 2^r: error 2^-27.5 and 2^-56.1.
EXP2 = {
    "float": (
        0.6931472420692444,
        0.24022655189037323,
        0.05550273135304451,
        0.009617071598768234,
        0.001341763068921864,
        0.0001581472606630996,
    ),
    "double": (
        0.6931471805599453,
        0.2402265069591007,
        0.05550410866482335,
        0.009618129107630201,
        0.0013333558146044837,
        0.0001540353038904229,
        1.525273415170473e-05,
        1.3215491067231082e-06,
        1.0177942163295972e-07,
        7.053329508205293e-09,
        4.4711361765616235e-10,
        2.7520751513012872e-11,
    ),
}
# (sinh(x) / x - 1) / x² in x² on |x| ≤ 1: error 2^-31.6 and 2^-61.8.
_SINH = {
    "float": (
        0.1666666716337204,
        0.00833331048488617,
        0.00019842891197185963,
        2.7822673018818023e-06,
    ),
    "double": (
        0.16666666666666669,
        0.008333333333332912,
        0.0001984126984159341,
        2.7557319106715566e-06,
        2.5052131017209103e-08,
        1.6056656499175748e-10,
        7.776724486289261e-13,
    ),
}
# (tanh(x) / x - 1) / x² in x² on |x| ≤ 0.625: error 2^-27.7 and 2^-56.1.
_TANH = {
    "float": (
        -0.3333328068256378,
        0.13331405818462372,
        -0.05373651534318924,
        0.020628491416573524,
        -0.005693294573575258,
    ),
    "double": (
        -0.33333333333332854,
        0.13333333333261965,
        -0.05396825393120966,
        0.021869487574778072,
        -0.008863220985489516,
        0.0035919890361090323,
        -0.0014549581727711961,
        0.000586314233599521,
        -0.00022855954758256241,
        7.713905906028415e-05,
        -1.6069969717335058e-05,
    ),
}
# Beyond these arguments the result is 0 or infinite; inside, n fits the two-step scaling.
_EXP_RANGE = {"float": (-104.5, 89.5), "double": (-746.0, 710.5)}
# A rest is at most ln 2 / 2 and what rounding adds; the polynomials' range ends at 0.35.
_LARGEST_REST = 0.36
_EXP2_RANGE = {"float": (-151.0, 129.0), "double": (-1076.0, 1025.0)}
# e^x - 1 is -1 below the first; 2^(n-1) stays finite up to the second, past the overflow.
_EXPM1_RANGE = {"float": (-20.0, 88.8), "double": (-40.0, 709.9)}
# tanh is 1 from here on.
_TANH_LIMIT = {"float": 10.0, "double": 20.0}
_SCALEF = {"float": ("ps", 512 // 32), "double": ("pd", 512 // 64)}


def power_of_two(code: LaneCode, n: LaneValue) -> LaneValue:
    """The value `2^n` for integral `n` whose result is a normal number."""
    mantissa, bias = MANTISSA_BITS[n.element], EXPONENT_BIAS[n.element]
    # Adding 1.5·2^mantissa leaves n in the low bits; no conversion that x86 lacks for doubles.
    shifted = n + (1.5 * 2.0**mantissa + bias)
    return (shifted.bits() << mantissa).as_float(n.element)


def scale(code: LaneCode, y: LaneValue, n: LaneValue) -> LaneValue:
    """The value `y·2^n` rounded once, for finite `y` near 1 and any `n` of a clamped range."""
    mnemonic, width = _SCALEF[y.element]
    if code.has("avx512f") and code.lanes is not None and code.lanes % width == 0:
        pairs = zip(code.split(y, width), code.split(n, width), strict=True)
        return code.join([_scalef(mnemonic, a, b) for a, b in pairs])
    # 2^n itself may be denormal or infinite: half of the exponent goes first, exactly. The last
    # bits of the sum count n and two biases; what is before them is shifted out of both halves.
    mantissa, bias = MANTISSA_BITS[y.element], EXPONENT_BIAS[y.element]
    count = (n + (1.5 * 2.0**mantissa + 2 * bias)).bits()
    first = count >> 1
    halves = ((half << mantissa).as_float(y.element) for half in (first, count - first))
    return y * next(halves) * next(halves)


def _scalef(mnemonic: str, y: LaneValue, n: LaneValue) -> LaneValue:
    """One `vscalefps` or `vscalefpd` of full width with the current rounding (4)."""
    kind, mask = y.type, f"i{y.code.lanes}"
    symbol = y.code.fn.module.declare(
        f"llvm.x86.avx512.mask.scalef.{mnemonic}.512", kind, f"{kind}, {kind}, {kind}, {mask}, i32"
    )
    name = y.code.fn.value(
        f"call {kind} {symbol}({kind} {y.name}, {kind} {n.name}, {kind} poison, {mask} -1, i32 4)"
    )
    return y.code.wrap(y.element, name)


def reduce_ln2(code: LaneCode, x: LaneValue) -> tuple[LaneValue, LaneValue]:
    """The pair `(n, r)` with `x = n·ln 2 + r`, `n` integral and `|r| ≤ 0.35`."""
    n = code.intrinsic("roundeven", x * LOG2_E)
    r = code.multiply_add(n, -LN2_HIGH[x.element], x)
    return n, code.multiply_add(n, -LN2_LOW[x.element], r)


def exp_parts(code: LaneCode, x: LaneValue) -> tuple[LaneValue, LaneValue]:
    """The pair `(y, n)` with `e^x = y·2^n` and `y` near 1."""
    n, r = reduce_ln2(code, x)
    return _exp_of_rest(code, r), n


def _exp_of_rest(code: LaneCode, r: LaneValue) -> LaneValue:
    """The value `e^r` for `|r| ≤ 0.36`."""
    return code.multiply_add(r, code.horner(r, _EXP[r.element]), 1.0)


def exp(code: LaneCode, x: LaneValue) -> LaneValue:
    """The value `e^x`."""
    mnemonic, width = _SCALEF[x.element]
    if code.has("avx512dq") and code.lanes is not None and code.lanes % width == 0:
        # One bound in place of two. Beyond the range n alone decides: the rest, then anything
        # or NaN, only has to stay near 0. A NaN comes through n.
        n, r = reduce_ln2(code, x)
        near = code.join([_near_zero(mnemonic, part) for part in code.split(r, width)])
        return scale(code, _exp_of_rest(code, near), n)
    low, high = _EXP_RANGE[x.element]
    return scale(code, *exp_parts(code, x.at_most(high).at_least(low)))


def _near_zero(mnemonic: str, r: LaneValue) -> LaneValue:
    """`r` with a magnitude of at most 0.36, which a NaN becomes: `vrangeps` or `vrangepd`."""
    kind, mask = r.type, f"i{r.code.lanes}"
    symbol = r.code.fn.module.declare(
        f"llvm.x86.avx512.mask.range.{mnemonic}.512",
        kind,
        f"{kind}, {kind}, i32, {kind}, {mask}, i32",
    )
    limit = r.coerce(_LARGEST_REST).name
    # 2: the lesser magnitude, with the sign of r; the last 4: the current rounding.
    name = r.code.fn.value(
        f"call {kind} {symbol}({kind} {r.name}, {kind} {limit}, i32 2, {kind} poison, "
        f"{mask} -1, i32 4)"
    )
    return r.code.wrap(r.element, name)


def exp2(code: LaneCode, x: LaneValue) -> LaneValue:
    """The value `2^x`."""
    mnemonic, width = _SCALEF[x.element]
    if code.has("avx512dq") and code.lanes is not None and code.lanes % width == 0:
        # No bounds: beyond them the rest of any x, infinite too, is 0, and the scaling saturates.
        # The difference is exact, and one operation where rounding is two on Intel's cores.
        r = code.join([_reduced(mnemonic, part) for part in code.split(x, width)])
        n = x - r
    else:
        low, high = _EXP2_RANGE[x.element]
        x = x.at_most(high).at_least(low)
        n = code.intrinsic("roundeven", x)
        r = x - n
    return scale(code, code.multiply_add(r, code.horner(r, EXP2[x.element]), 1.0), n)


def _reduced(mnemonic: str, x: LaneValue) -> LaneValue:
    """`x - roundeven(x)`, exact; 0 for infinite x. One `vreduceps` or `vreducepd` of full width."""
    kind, mask = x.type, f"i{x.code.lanes}"
    symbol = x.code.fn.module.declare(
        f"llvm.x86.avx512.mask.reduce.{mnemonic}.512", kind, f"{kind}, i32, {kind}, {mask}, i32"
    )
    # 8: to nearest even, no exceptions; 4: no other rounding.
    name = x.code.fn.value(
        f"call {kind} {symbol}({kind} {x.name}, i32 8, {kind} poison, {mask} -1, i32 4)"
    )
    return x.code.wrap(x.element, name)


def _expm1_clamped(code: LaneCode, x: LaneValue) -> LaneValue:
    """The value `e^x - 1` for `x` inside `_EXPM1_RANGE`; the sign of zero is lost."""
    n, r = reduce_ln2(code, x)
    small = code.multiply_add(r * r, code.horner(r, _EXPM1[x.element]), r)
    # Half of the power of two first: 2^n alone overflows just below the largest results.
    half_power = power_of_two(code, n - 1.0)
    half = code.multiply_add(half_power, small, half_power - 0.5)
    return half + half


def expm1(code: LaneCode, x: LaneValue) -> LaneValue:
    """The value `e^x - 1`, accurate near zero."""
    low, high = _EXPM1_RANGE[x.element]
    return _expm1_clamped(code, x.at_most(high).at_least(low)).with_sign_of(x)


def sigmoid(code: LaneCode, x: LaneValue) -> LaneValue:
    """The value `1 / (1 + e^-x)`, through `e^-|x|`: small results keep their digits."""
    power = exp(code, -x.absolute())
    numerator = x.compare("olt", 0.0).select(power, x.coerce(1.0))
    return numerator / (power + 1.0)


def tanh(code: LaneCode, x: LaneValue) -> LaneValue:
    """The hyperbolic tangent: a polynomial for `|x| < 0.625`, `1 - 2/(e^(2|x|) + 1)` beyond."""
    magnitude = x.absolute().at_most(_TANH_LIMIT[x.element])
    y, n = exp_parts(code, magnitude + magnitude)
    return small_tanh_or(code, x, magnitude, 1.0 - 2.0 / (y * power_of_two(code, n) + 1.0))


def small_tanh_or(
    code: LaneCode, x: LaneValue, magnitude: LaneValue, large: LaneValue
) -> LaneValue:
    """The hyperbolic tangent of `x`, which from `magnitude` 0.625 on is `large` or its opposite."""
    square = x * x
    small = code.multiply_add(magnitude * square, code.horner(square, _TANH[x.element]), magnitude)
    return magnitude.compare("olt", 0.625).select(small, large).with_sign_of(x)


def _half_exp(code: LaneCode, magnitude: LaneValue) -> LaneValue:
    """The value `e^magnitude / 2`, which overflows only where sinh and cosh do."""
    y, n = exp_parts(code, magnitude.at_most(_EXP_RANGE[magnitude.element][1]))
    return scale(code, y, n - 1.0)


def cosh(code: LaneCode, x: LaneValue) -> LaneValue:
    """The hyperbolic cosine."""
    half = _half_exp(code, x.absolute())
    return half + 0.25 / half


def sinh(code: LaneCode, x: LaneValue) -> LaneValue:
    """The hyperbolic sine: a polynomial for `|x| < 1`, exponentials beyond."""
    magnitude = x.absolute()
    half = _half_exp(code, magnitude)
    large = half - 0.25 / half
    square = x * x
    small = code.multiply_add(magnitude * square, code.horner(square, _SINH[x.element]), magnitude)
    return magnitude.compare("olt", 1.0).select(small, large).with_sign_of(x)
