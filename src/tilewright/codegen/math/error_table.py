"""The error function of f32 from a table that x86's vectors keep in registers.

`erf(t) = t·g(t)` for `t = |x|` up to where it is 1, and `g` is smooth: a polynomial in each of as
many intervals as a register has floats, whose coefficients `vpermps` picks by the interval's
number. With the sixteen of AVX-512 and the eight of AVX2, which need one degree more, that is half
of the instructions of a polynomial beside an exponential.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.codegen.math.lanes import LaneCode, LaneValue, float_literal
from tilewright.support.dataclass import dataclass

# 1 - erf is below half a unit in the last place of 1 from 3.93 on, and the tables end at 4.
_LIMIT = 3.99
# By row, of each interval: g at its middle as a float and what that lacks, then the coefficients of
# the distance from the middle. Least squares at Chebyshev's points in double precision, relative to
# g, each coefficient rounded before the next is sought. Sixteen intervals of a quarter, degree 5:
# error 2^-28.5.
_WIDE_ROWS = (
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
# Eight intervals of a half, degree 6: error 2^-26.9.
_NARROW_ROWS = (
    (
        1.1053056,
        0.9482075,
        0.7383201,
        0.5638124,
        0.44379434,
        0.36359978,
        0.30769098,
        0.26666665,
    ),
    (
        7.490595e-09,
        1.3864989e-08,
        -8.921605e-09,
        8.521063e-09,
        8.187952e-09,
        -3.3872793e-09,
        5.7125202e-09,
        -1.443172e-08,
    ),
    (
        -0.18116549,
        -0.4070351,
        -0.4014393,
        -0.2920214,
        -0.19406754,
        -0.1320049,
        -0.09466517,
        -0.07111087,
    ),
    (
        -0.33535096,
        -0.10021748,
        0.08463,
        0.11409437,
        0.07910996,
        0.04741551,
        0.029098555,
        0.018962016,
    ),
    (
        0.10469155,
        0.1693238,
        0.0663413,
        -0.013673743,
        -0.02550812,
        -0.01623928,
        -0.008893067,
        -0.005054425,
    ),
    (
        0.089018166,
        -0.024860857,
        -0.057976346,
        -0.019674148,
        0.0028527682,
        0.0047202837,
        0.0026482048,
        0.0013441681,
    ),
    (
        -0.034967206,
        -0.037265707,
        0.00809147,
        0.014868274,
        0.0035751928,
        -0.0006767789,
        -0.0007185188,
        -0.00035475913,
    ),
    (
        -0.017984934,
        0.014207924,
        0.009980234,
        -0.0033375171,
        -0.002819045,
        -0.00035727682,
        0.00013763928,
        8.909475e-05,
    ),
)


@dataclass(frozen=True)
class _Table:
    """Rows of coefficients with one for each interval, and the vectors' instruction that picks.

    `t - half` rounds to a number of intervals. `rounder` is a large number: the last bits of the
    mantissa of a sum with it count intervals.
    """

    rows: tuple[tuple[float, ...], ...]
    half: float
    rounder: float
    instruction: str

    @property
    def width(self) -> int:
        """The floats of a register, among which the instruction picks."""
        return len(self.rows[0])


_WIDE = _Table(_WIDE_ROWS, 0.125, 1.5 * 2**21, "llvm.x86.avx512.permvar.sf.512")
_NARROW = _Table(_NARROW_ROWS, 0.25, 1.5 * 2**22, "llvm.x86.avx2.permps")


def is_covered(code: LaneCode, x: LaneValue) -> bool:
    """Whether the machine picks floats out of registers, and `x` is of them."""
    picks = code.has("avx512f") or (code.has("avx2") and code.has_fused_multiply_add())
    return x.element == "float" and picks


def erf(code: LaneCode, x: LaneValue) -> LaneValue:
    """The error function; a scalar has the bits of any lane.

    It is within 0.87 ulp, 0.67 on AVX-512, but for results near the smallest: within 1.12.
    """
    table = _WIDE if code.has("avx512f") else _NARROW
    if code.lanes is None:
        return _first(_erf(table, _alone(x, table.width)))
    width = table.width
    wide = x if code.lanes % width == 0 else _filled_up(x, code.lanes, width)
    parts = [_erf(table, part) for part in wide.code.split(wide, width)]
    return code.split_first(wide.code.join(parts))


def _erf(table: _Table, x: LaneValue) -> LaneValue:
    """The error function of one register."""
    code = x.code
    t = x.absolute().at_most(_LIMIT)
    s = t - table.half
    count = s + table.rounder
    d = s - (count - table.rounder)
    middle, lacking, *slopes = (
        _picked(code, table.instruction, row, count.bits()) for row in table.rows
    )
    rest = slopes.pop()
    for coefficient in (*reversed(slopes), lacking):
        rest = code.fused(d, rest, coefficient)
    return code.fused(t, middle, t * rest).with_sign_of(x)


def _picked(code: LaneCode, instruction: str, row: Sequence[float], number: LaneValue) -> LaneValue:
    """In each lane the entry of a row that the last bits of an integer number."""
    kind, numbers = code.type_of("float"), code.type_of("i32")
    entries = ", ".join(f"float {float_literal('float', entry)}" for entry in row)
    symbol = code.fn.module.declare(instruction, kind, f"{kind}, {numbers}")
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
