"""The error function of f32 from a table that x86's vectors keep in registers.

`erf(t) = t·g(t)` for `t = |x|` up to where it is 1, and `g` is smooth: sixteen intervals of a
quarter, a polynomial of degree 5 in each, whose coefficients `vpermps` picks by the interval's
number. On AVX-512 that is half of the instructions of a polynomial beside an exponential, on AVX2
as many, for the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.codegen.math.lanes import LaneCode, LaneValue, float_literal

# By definition: the floats of a register, among which the instruction picks.
_WIDTH, _NARROW_WIDTH = 16, 8
# 1 - erf is below half a unit in the last place of 1 from 3.93 on, and the table ends at 4.
_LIMIT = 3.99
# Half an interval: s = t - 1/8 rounds to the interval's number, in quarters.
_HALF = 0.125
# 1.5·2^21: of a sum with it, the last bits of the mantissa count quarters.
_QUARTERS = 3145728.0
# By row, of each interval: g at its middle as a float and what that lacks, then the coefficients of
# the distance from the middle. Least squares at Chebyshev's points in double precision, relative to
# g, each coefficient rounded before the next is sought: error 2^-28.5.
_TABLE = (
    (
        1.1225296,
        1.0776451,
        0.9971854,
        0.8960858,
        0.78967845,
        0.68957824,
        0.6021192,
        0.5290614,
        0.46933928,
        0.42072296,
        0.38087416,
        0.34780943,
        0.31999683,
        0.29629576,
        0.27586198,
        0.2580645,
    ),
    (
        9.590316e-9,
        2.7287758e-8,
        3.4470518e-9,
        -1.2608252e-8,
        -2.4520212e-8,
        2.6416147e-10,
        1.2888946e-8,
        -1.3459877e-8,
        -1.450478e-9,
        1.1716766e-8,
        -1.4463166e-8,
        7.846227e-9,
        -7.4263784e-10,
        -3.6105234e-9,
        9.02938e-9,
        -3.271686e-9,
    ),
    (
        -0.09315495,
        -0.25944608,
        -0.3738974,
        -0.42438942,
        -0.4190262,
        -0.37761343,
        -0.3210135,
        -0.26427495,
        -0.2150581,
        -0.17545958,
        -0.14465763,
        -0.120876245,
        -0.102378264,
        -0.08778756,
        -0.07609925,
        -0.0665972,
    ),
    (
        -0.3656423,
        -0.28849527,
        -0.16526486,
        -0.03973095,
        0.05419181,
        0.10426741,
        0.117074735,
        0.10740139,
        0.088863485,
        0.069871515,
        0.053959895,
        0.0417537,
        0.03269627,
        0.025998358,
        0.020990666,
        0.017186025,
    ),
    (
        0.05537809,
        0.14298604,
        0.17534624,
        0.15160333,
        0.09623029,
        0.039032742,
        -0.0013752441,
        -0.02131124,
        -0.02626999,
        -0.02363796,
        -0.018692939,
        -0.014001036,
        -0.010334756,
        -0.0076750577,
        -0.0057855034,
        -0.0044348757,
    ),
    (
        0.10605536,
        0.062698424,
        0.0019803408,
        -0.044399966,
        -0.06033744,
        -0.050439186,
        -0.02978707,
        -0.0112714805,
        -1.270935e-4,
        0.0043760166,
        0.005041182,
        0.0042128745,
        0.0031314564,
        0.0022354866,
        0.001589817,
        0.0011445234,
    ),
    (
        -0.019485347,
        -0.0462589,
        -0.046525043,
        -0.02561838,
        -6.669504e-4,
        0.014416334,
        0.016968237,
        0.01203582,
        0.005873234,
        0.0016609922,
        -3.1796793e-4,
        -8.3733327e-4,
        -8.1791845e-4,
        -6.46535e-4,
        -4.2170956e-4,
        -2.6480627e-4,
    ),
)


def is_covered(code: LaneCode, x: LaneValue) -> bool:
    """Whether the machine picks floats out of registers, and `x` is of them."""
    picks = code.has("avx512f") or (code.has("avx2") and code.has_fused_multiply_add())
    return x.element == "float" and picks


def erf(code: LaneCode, x: LaneValue) -> LaneValue:
    """The error function within 0.67 ulp; the same bits for a scalar and for any lanes."""
    width = _WIDTH if code.has("avx512f") else _NARROW_WIDTH
    if code.lanes is None:
        return _first(_erf(_alone(x, width)))
    wide = x if code.lanes % width == 0 else _filled_up(x, code.lanes, width)
    return code.split_first(wide.code.join([_erf(part) for part in wide.code.split(wide, width)]))


def _erf(x: LaneValue) -> LaneValue:
    """The error function of one register."""
    code = x.code
    t = x.absolute().at_most(_LIMIT)
    s = t - _HALF
    quarters = s + _QUARTERS
    d = s - (quarters - _QUARTERS)
    number = quarters.bits()
    middle, lacking, *slopes = (_picked(code, row, number) for row in _TABLE)
    rest = slopes.pop()
    for coefficient in (*reversed(slopes), lacking):
        rest = code.fused(d, rest, coefficient)
    return code.fused(t, middle, t * rest).with_sign_of(x)


def _picked(code: LaneCode, row: Sequence[float], number: LaneValue) -> LaneValue:
    """In each lane the entry of a row whose number the last four bits of an integer give."""
    if code.lanes == _WIDTH:
        return _permuted(code, "llvm.x86.avx512.permvar.sf.512", row, number)
    low, high = (
        _permuted(code, "llvm.x86.avx2.permps", half, number)
        for half in (row[:_NARROW_WIDTH], row[_NARROW_WIDTH:])
    )
    # The fourth bit as a sign.
    return (number << 28).compare("slt", 0).select(high, low)


def _permuted(code: LaneCode, name: str, row: Sequence[float], number: LaneValue) -> LaneValue:
    """The entries of a register, picked by as many bits of each lane as number them."""
    kind, numbers = code.type_of("float"), code.type_of("i32")
    entries = ", ".join(f"float {float_literal('float', entry)}" for entry in row)
    symbol = code.fn.module.declare(name, kind, f"{kind}, {numbers}")
    call = f"call {kind} {symbol}({kind} <{entries}>, {numbers} {number.name})"
    return code.wrap("float", code.fn.value(call))


def _alone(x: LaneValue, width: int) -> LaneValue:
    """A scalar as the first lane of a register of zeros."""
    wide = x.code.with_lanes(width)
    kind = wide.type_of(x.element)
    lane = f"insertelement {kind} zeroinitializer, {x.type} {x.name}, i64 0"
    return wide.wrap(x.element, x.code.fn.value(lane))


def _first(x: LaneValue) -> LaneValue:
    """The first lane as a scalar."""
    name = x.code.fn.value(f"extractelement {x.type} {x.name}, i64 0")
    return x.code.with_lanes(None).wrap(x.element, name)


def _filled_up(x: LaneValue, lanes: int, width: int) -> LaneValue:
    """Some lanes, then zeros up to whole registers."""
    whole = -(-lanes // width) * width
    numbers = ", ".join(f"i32 {min(lane, lanes)}" for lane in range(whole))
    name = x.code.fn.value(
        f"shufflevector {x.type} {x.name}, {x.type} zeroinitializer, <{whole} x i32> <{numbers}>"
    )
    return x.code.with_lanes(whole).wrap(x.element, name)
