"""Trigonometric functions: sin, cos, tan.

`x = q·π/2 + r` with `|r| ≤ π/4`; the remainder keeps a low part, so that results are right to
a unit in the last place for every argument. Huge arguments, one lane at a time, take the
exact reduction of `half_pi.py` behind one branch.
"""

from __future__ import annotations

from tilewright.codegen.math.half_pi import REDUCTION_RESULT, declare_reduction
from tilewright.codegen.math.half_pi_words import exact_remainder
from tilewright.codegen.math.lanes import (
    INTEGER_OF,
    MANTISSA_BITS,
    NVPTX,
    WORDS,
    LaneCode,
    LaneValue,
)
from tilewright.codegen.math.loops import any_lane
from tilewright.support.dataclass import dataclass

_TWO_OVER_PI = 0.6366197723675814
# π/2 as the sum of three numbers of the element type.
_HALF_PI = {
    "float": (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
    "double": (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
}
# From bit 1 of the quadrant to the sign bit, beyond the stored mantissa.
_SIGN_SHIFT = {"float": 7, "double": 10}
# Up to here q·(the first part) - x is exact and the three parts are enough for the remainder.
_LIMIT = {"float": 1e5, "double": 1e6}
# Minimax polynomials in r² on |r| ≤ 0.793, see exponential.py.
# (sin(r)/r - 1)/r²: error 2^-27.8 and 2^-57.7 of sin.
_SIN = {
    "float": (-0.16666653752326965, 0.008332106284797192, -0.00019507884280756116),
    "double": (
        -0.16666666666666627,
        0.008333333333321067,
        -0.00019841269828696137,
        2.7557313297712703e-06,
        -2.5050695322405862e-08,
        1.5893103570407869e-10,
    ),
}
# (cos(r) - 1 + r²/2)/r⁴: error 2^-32.8 and 2^-63.7 of cos.
_COS = {
    "float": (0.04166664555668831, -0.0013887297827750444, 2.4430084522464313e-05),
    "double": (
        0.04166666666666658,
        -0.001388888888887097,
        2.480158728752795e-05,
        -2.7557313791561834e-07,
        2.0875647489640738e-09,
        -1.1355743994629144e-11,
    ),
}
# (tan(r)/r - 1)/r²: error 2^-29.3 and 2^-58.5 of tan.
_TAN = {
    "float": (
        0.3333335220813751,
        0.1333257108926773,
        0.05407096445560455,
        0.021222734823822975,
        0.010995146818459034,
        -0.00011821113002952188,
        0.00448127556592226,
    ),
    "double": (
        0.333333333333334,
        0.13333333333322897,
        0.05396825397422712,
        0.02186948836319467,
        0.008863238504825748,
        0.0035920948200567713,
        0.001456088466167053,
        0.0005886510489062376,
        0.0002445104393796735,
        8.162015601776345e-05,
        7.07463062750974e-05,
        -3.0084426907439658e-05,
        5.234542663946351e-05,
        -2.6108279328006473e-05,
        1.0206545343104957e-05,
    ),
}


@dataclass(frozen=True)
class Remainder:
    """A reduced argument: `x = quadrant·π/2 + r + low`; the quadrant counts modulo 4."""

    r: LaneValue
    low: LaneValue
    quadrant: LaneValue


def _reduce_moderate(code: LaneCode, x: LaneValue) -> Remainder:
    """The remainder for `|x|` up to the limit, in three steps, with what the second loses."""
    first, second, third = _HALF_PI[x.element]
    turns = code.intrinsic("roundeven", x * _TWO_OVER_PI)
    exact = code.fused(turns, -first, x)
    product, product_error = code.two_product(turns, second)
    r = exact - product
    error = (exact - r) - product
    low = code.fused(turns, -third, error - product_error)
    magic = 1.5 * 2.0 ** MANTISSA_BITS[x.element]
    return Remainder(r, low, (turns + magic).bits())


def _exact_scalar(code: LaneCode, x: LaneValue) -> Remainder:
    """The exact remainder of one scalar."""
    if code.has(NVPTX) or code.has(WORDS):
        return Remainder(*exact_remainder(code, x))
    fn, element = code.fn, x.element
    wide = x if element == "double" else x.convert("fpext", "double")
    symbol = declare_reduction(fn.module)
    parts = fn.value(f"call {REDUCTION_RESULT} {symbol}(double {wide.name})")
    r, low, quadrant = (
        code.wrap(kind, fn.value(f"extractvalue {REDUCTION_RESULT} {parts}, {index}"))
        for index, kind in enumerate(("double", "double", "i64"))
    )
    if element == "double":
        return Remainder(r, low, quadrant)
    narrow = r.convert("fptrunc", "float")
    low = (r - narrow.convert("fpext", "double")).convert("fptrunc", "float")
    return Remainder(narrow, low, quadrant.convert("trunc", "i32"))


def _exact_lanes(code: LaneCode, x: LaneValue, slots: list[str]) -> Remainder:
    """The exact remainder of every lane, by a loop over the lanes in memory."""
    fn, scalar, bits = code.fn, code.with_lanes(None), INTEGER_OF[x.element]
    source, *targets, counter = slots
    loop, done = fn.new_label(), fn.new_label()
    fn.emit(f"store {x.type} {x.name}, ptr {source}")
    fn.emit(f"store i64 0, ptr {counter}")
    fn.branch(loop)
    fn.place(loop)
    index = fn.value(f"load i64, ptr {counter}")
    address = fn.value(f"getelementptr {x.element}, ptr {source}, i64 {index}")
    lane = scalar.wrap(x.element, fn.value(f"load {x.element}, ptr {address}"))
    parts = _exact_scalar(scalar, lane)
    for target, part in zip(targets, (parts.r, parts.low, parts.quadrant), strict=True):
        address = fn.value(f"getelementptr {part.element}, ptr {target}, i64 {index}")
        fn.emit(f"store {part.type} {part.name}, ptr {address}")
    following = fn.value(f"add i64 {index}, 1")
    fn.emit(f"store i64 {following}, ptr {counter}")
    fn.branch_if(fn.value(f"icmp ult i64 {following}, {code.lanes}"), loop, done)
    fn.place(done)
    return Remainder(
        *(
            code.wrap(kind, fn.value(f"load {code.type_of(kind)}, ptr {target}"))
            for kind, target in zip((x.element, x.element, bits), targets, strict=True)
        )
    )


def reduce_half_pi(code: LaneCode, x: LaneValue) -> Remainder:
    """The remainder of any `x`; NaN for infinities. The code must start in the entry block."""
    fn, bits = code.fn, INTEGER_OF[x.element]
    kinds = (x.element, x.element, x.element, bits)
    slots = (
        []
        if code.lanes is None
        else [
            *(fn.value(f"alloca {code.type_of(kind)}") for kind in kinds),
            fn.value("alloca i64"),
        ]
    )
    quick = _reduce_moderate(code, x)
    entry, exact_label, done = fn.block, fn.new_label(), fn.new_label()
    is_huge = x.absolute().compare("ogt", _LIMIT[x.element])
    fn.branch_if(any_lane(is_huge), exact_label, done)
    fn.place(exact_label)
    exact = _exact_lanes(code, x, slots) if slots else _exact_scalar(code, x)
    exact = Remainder(
        is_huge.select(exact.r, quick.r),
        is_huge.select(exact.low, quick.low),
        is_huge.select(exact.quadrant, quick.quadrant),
    )
    last = fn.block
    fn.branch(done)
    fn.place(done)

    def merge(a: LaneValue, b: LaneValue) -> LaneValue:
        return code.wrap(
            a.element, fn.value(f"phi {a.type} [ {a.name}, %{entry} ], [ {b.name}, %{last} ]")
        )

    return Remainder(
        merge(quick.r, exact.r),
        merge(quick.low, exact.low),
        merge(quick.quadrant, exact.quadrant),
    )


def _sine(code: LaneCode, x: LaneValue, quarter_turns: int) -> LaneValue:
    """The sine of `x + quarter_turns·π/2`."""
    return sine_of(code, reduce_half_pi(code, x), quarter_turns)


def sine_of(code: LaneCode, reduced: Remainder, quarter_turns: int) -> LaneValue:
    """The sine of a reduced argument and some quarter turns."""
    x = reduced.r
    r, low, z = reduced.r, reduced.low, reduced.r * reduced.r
    sine = code.multiply_add(r * z, code.horner(z, _SIN[x.element]), low) + r
    fourth = code.multiply_add(z * z, code.horner(z, _COS[x.element]), -(r * low))
    half = z * 0.5
    near_one = 1.0 - half
    cosine = near_one + (((1.0 - near_one) - half) + fourth)
    quadrant = reduced.quadrant + quarter_turns
    result = (quadrant & 1).compare("ne", 0).select(cosine, sine)
    sign = (quadrant & 2) << (MANTISSA_BITS[x.element] + _SIGN_SHIFT[x.element])
    return (result.bits() ^ sign).as_float(x.element)


def sin(code: LaneCode, x: LaneValue) -> LaneValue:
    """The sine, right to its last bits for every finite argument."""
    # -0 has remainder +0 - 0·π/2 = -0 + 0; its sign is restored here.
    return x.compare("oeq", 0.0).select(x, _sine(code, x, 0))


def cos(code: LaneCode, x: LaneValue) -> LaneValue:
    """The cosine, right to its last bits for every finite argument."""
    return _sine(code, x, 1)


def tan(code: LaneCode, x: LaneValue) -> LaneValue:
    """The tangent, right to its last bits for every finite argument."""
    reduced = reduce_half_pi(code, x)
    r, z = reduced.r, reduced.r * reduced.r
    low = code.multiply_add(reduced.low, z, reduced.low)
    small = code.multiply_add(r * z, code.horner(z, _TAN[x.element]), low)
    tangent = r + small
    # -1/(a + b) from the rounded sum and what it lost.
    lost = (r - tangent) + small
    quotient = -1.0 / tangent
    correction = code.fused(quotient, tangent, 1.0) + quotient * lost
    cotangent = code.multiply_add(quotient, correction, quotient)
    result = (reduced.quadrant & 1).compare("ne", 0).select(cotangent, tangent)
    return x.compare("oeq", 0.0).select(x, result)
