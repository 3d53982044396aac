"""Numbers as unrounded sums of two doubles: 106 bits for logarithms, powers and the like."""

from __future__ import annotations

from tilewright.codegen.math.exponential import EXP2, scale
from tilewright.codegen.math.lanes import LaneCode, LaneValue, Number
from tilewright.codegen.math.logarithm import decompose
from tilewright.support.dataclass import dataclass

_LOG2_E = (1.4426950408889634, 2.0355273740931033e-17)
_LN2 = 0.6931471805599453
# 2/3, 2/5, 2/7: the first coefficients of 2·atanh(s)/s - 2 in s², in two parts.
_HEAD = (
    (0.6666666666666666, 3.700743415417188e-17),
    (0.4, -2.2204460492503132e-17),
    (0.2857142857142857, 1.586032892321652e-17),
)
_NUM_TAIL = 12


@dataclass(frozen=True)
class Pair:
    """The unrounded sum `high + low`, `low` at most half a last place of `high`."""

    high: LaneValue
    low: LaneValue

    def plus(self, other: Pair) -> Pair:
        """The sum, in whatever order of magnitudes."""
        total, error = two_sum(self.high, other.high)
        return normalized(total, error + (self.low + other.low))

    def times(self, other: Pair) -> Pair:
        """The product."""
        code = self.high.code
        product, error = code.two_product(self.high, other.high)
        cross = code.multiply_add(self.high, other.low, self.low * other.high)
        return normalized(product, error + cross)

    def times_number(self, factor: LaneValue | Number) -> Pair:
        """The product with one number."""
        code = self.high.code
        product, error = code.two_product(self.high, factor)
        return normalized(product, code.multiply_add(self.low, factor, error))


def two_sum(a: LaneValue, b: LaneValue) -> tuple[LaneValue, LaneValue]:
    """The rounded sum and its error, exactly (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def normalized(high: LaneValue, low: LaneValue) -> Pair:
    """The pair of a sum whose first part is the greater one."""
    total = high + low
    return Pair(total, (high - total) + low)


def constant(code: LaneCode, parts: tuple[float, float]) -> Pair:
    """A constant in two parts."""
    return Pair(code.constant("double", parts[0]), code.constant("double", parts[1]))


def quotient(code: LaneCode, numerator: LaneValue, denominator: Pair) -> Pair:
    """`numerator / denominator` to 104 bits."""
    first = numerator / denominator.high
    rest = code.fused(-first, denominator.high, numerator)
    rest = code.multiply_add(-first, denominator.low, rest)
    return normalized(first, rest / denominator.high)


def log2(code: LaneCode, x: LaneValue) -> Pair:
    """The base-2 logarithm of a positive finite double, relative error below 2^-68."""
    k, m = decompose(code, x)
    f = m - 1.0
    s = quotient(code, f, Pair(*two_sum(m, m.coerce(1.0))))
    z = s.times(s)
    tail = code.horner(z.high, [2.0 / (2 * n + 9) for n in range(_NUM_TAIL)])
    series = z.times_number(tail).plus(constant(code, _HEAD[2]))
    for head in reversed(_HEAD[:2]):
        series = z.times(series).plus(constant(code, head))
    natural = Pair(s.high + s.high, s.low + s.low).plus(s.times(z.times(series)))
    result = natural.times(constant(code, _LOG2_E))
    return Pair(k, k.coerce(0.0)).plus(result)


def exp2(code: LaneCode, exponent: Pair) -> LaneValue:
    """The double `2^exponent`, rounded once but for 0.4 of a last place."""
    limited = exponent.high.at_most(1100.0).at_least(-1100.0)
    is_inside = limited.compare("oeq", exponent.high)
    low = is_inside.select(exponent.low, 0.0)
    n = code.intrinsic("roundeven", limited)
    # 1 + r·c + r²·(the rest): the first two terms unrounded leave half a place and little more.
    r = limited - n
    first, *rest = EXP2["double"]
    linear, error = code.two_product(r, first)
    small = code.multiply_add(r * r, code.horner(r, rest), error)
    power = normalized(linear.coerce(1.0), linear)
    small = code.multiply_add(power.high + small, low * _LN2, small)
    return scale(code, power.high + (power.low + small), n)
