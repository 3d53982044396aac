"""Reduction of huge arguments modulo π/2 in place, by 64-bit words: for one lane of a GPU.

The method is that of `half_pi.py`, which is a function; here nothing is called and nothing is
wider than the product of two words. `x = m·2^e` with an integer `m`, and of the bits of 2/π
only the words count whose product with `m` is neither a multiple of four quarter turns nor
beyond the last place of the result.
"""

from __future__ import annotations

import math
from itertools import pairwise

from tilewright.codegen.math.half_pi import TWO_OVER_PI
from tilewright.codegen.math.lanes import (
    EXPONENT_BIAS,
    INTEGER_OF,
    MANTISSA_BITS,
    LaneCode,
    LaneValue,
)

_TABLE = "tw.two_over_pi"
# In a table that starts with 64 zeros the bit of weight 2^1 has this index.
_WINDOW_START = 62
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17)


def exact_remainder(code: LaneCode, x: LaneValue) -> tuple[LaneValue, LaneValue, LaneValue]:
    """`(r, low, quadrant)` of a scalar: `x = quadrant·π/2 + r + low`, `|r| ≤ π/4`.

    *Semantics*: for finite `|x| ≥ 1`; `r` is NaN for infinities and NaN. The quadrant counts
    modulo 4. *Rounding*: relative error of `r + low` below 2^-28 (`float`), 2^-60 (`double`).
    """
    bits = x.bits()
    mantissa_bits, integer = MANTISSA_BITS[x.element], INTEGER_OF[x.element]
    exponent_mask = (1 << (int(integer[1:]) - 1 - mantissa_bits)) - 1
    biased = (bits >> mantissa_bits) & exponent_mask
    mantissa = (bits & ((1 << mantissa_bits) - 1)) | (1 << mantissa_bits)
    if integer != "i64":
        biased, mantissa = biased.convert("zext", "i64"), mantissa.convert("zext", "i64")
    is_finite = biased.compare("ne", exponent_mask)
    start = biased - (EXPONENT_BIAS[x.element] + mantissa_bits - _WINDOW_START)
    # Infinities and small numbers read somewhere inside the table.
    is_inside = is_finite & biased.compare("uge", EXPONENT_BIAS[x.element])
    start = is_inside.select(start, 0)
    if x.element == "float":
        r, low, quadrant = _single(code, mantissa, _window(code, start, 2))
    else:
        r, low, quadrant = _double(code, mantissa, _window(code, start, 3))
    is_negative = bits.compare("slt", 0)
    r = is_finite.select(is_negative.select(-r, r), r.coerce(math.nan))
    low = is_negative.select(-low, low)
    opposite = quadrant.coerce(0) - quadrant
    quadrant = is_negative.select(opposite, quadrant)
    return r, low, quadrant if integer == "i64" else quadrant.convert("trunc", integer)


def _window(code: LaneCode, start: LaneValue, count: int) -> list[LaneValue]:
    """`count` words of 2/π from bit `start` of the table on."""
    words = ", ".join(f"i64 {word}" for word in (0, *TWO_OVER_PI))
    size = len(TWO_OVER_PI) + 1
    table = code.fn.module.add_global(
        _TABLE, f"internal constant [{size} x i64] [{words}], align 8"
    )
    index, shift = start >> 6, start & 63
    loaded: list[LaneValue] = []
    for offset in range(count + 1):
        position = (index + offset).name
        address = code.fn.value(f"getelementptr i64, ptr {table}, i64 {position}")
        loaded.append(code.wrap("i64", code.fn.value(f"load i64, ptr {address}, align 8")))
    return [code.intrinsic("fshl", first, second, shift) for first, second in pairwise(loaded)]


def _high_product(a: LaneValue, b: LaneValue) -> LaneValue:
    """The upper word of the product of two words."""
    return ((a.convert("zext", "i128") * b.convert("zext", "i128")) >> 64).convert("trunc", "i64")


def _single(
    code: LaneCode, mantissa: LaneValue, words: list[LaneValue]
) -> tuple[LaneValue, LaneValue, LaneValue]:
    """The remainder from a fraction of 62 bits, in quarter turns."""
    turns = mantissa * words[0] + _high_product(mantissa, words[1])
    quadrant = (turns + (1 << 61)) >> 62
    fraction = (turns - (quadrant << 62)).convert("sitofp", "double")
    wide = fraction * (_HALF_PI[0] * 2.0**-62)
    r = wide.convert("fptrunc", "float")
    return r, (wide - r.convert("fpext", "double")).convert("fptrunc", "float"), quadrant


def _double(
    code: LaneCode, mantissa: LaneValue, words: list[LaneValue]
) -> tuple[LaneValue, LaneValue, LaneValue]:
    """The remainder from a fraction of 126 bits, in quarter turns."""
    wide = mantissa.convert("zext", "i128")
    turns = (mantissa * words[0]).convert("zext", "i128") << 64
    turns = turns + wide * words[1].convert("zext", "i128")
    turns = turns + _high_product(mantissa, words[2]).convert("zext", "i128")
    quadrant = (turns + (1 << 125)) >> 126
    fraction = turns - (quadrant << 126)
    is_below = fraction.compare("slt", 0)
    magnitude = is_below.select(fraction.coerce(0) - fraction, fraction)
    zeros = code.call("llvm.ctlz.i128", magnitude, code.wrap("i1", "false"))
    # Two integers of 53 bits, exact as doubles, and the powers of two that put them in place.
    normal = magnitude << zeros
    high = (normal >> 75).convert("trunc", "i64").convert("sitofp", "double")
    low = ((normal >> 22).convert("trunc", "i64") & ((1 << 53) - 1)).convert("sitofp", "double")
    places = zeros.convert("trunc", "i64")
    high = high * _power(places, 75 - 126)
    low = low * _power(places, 22 - 126)
    r = high * _HALF_PI[0]
    error = code.fused(high, _HALF_PI[0], -r)
    rest = error + (high * _HALF_PI[1] + low * _HALF_PI[0])
    return (
        is_below.select(-r, r),
        is_below.select(-rest, rest),
        quadrant.convert("trunc", "i64"),
    )


def _power(places: LaneValue, exponent: int) -> LaneValue:
    """The double `2^(exponent - places)`."""
    return ((places.coerce(1023 + exponent) - places) << 52).as_float("double")
