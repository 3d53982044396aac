"""The power function."""

from __future__ import annotations

import math

from tilewright.codegen.math.exponential import exp2
from tilewright.codegen.math.lanes import LaneCode, LaneValue
from tilewright.codegen.math.logarithm import log2


def _library_power(code: LaneCode, x: LaneValue, y: LaneValue) -> LaneValue:
    """The C library's `pow`, one lane at a time."""
    fn = code.fn
    symbol = fn.module.declare("pow", "double", "double, double", "nounwind")
    if code.lanes is None:
        return code.wrap(
            "double", fn.value(f"call double {symbol}(double {x.name}, double {y.name})")
        )
    result = "poison"
    for lane in range(code.lanes):
        base = fn.value(f"extractelement {x.type} {x.name}, i64 {lane}")
        exponent = fn.value(f"extractelement {y.type} {y.name}, i64 {lane}")
        value = fn.value(f"call double {symbol}(double {base}, double {exponent})")
        result = fn.value(f"insertelement {x.type} {result}, double {value}, i64 {lane}")
    return code.wrap("double", result)


def power(code: LaneCode, x: LaneValue, y: LaneValue) -> LaneValue:
    """The value `x^y` with the special cases of IEEE 754.

    *Dtypes*: `float` as `2^(y·log2 x)` in doubles, whose 2^-45 of error leaves half a unit of
    the float result; `double` calls the C library for each lane, because the logarithm
    would need twice the digits.
    """
    if x.element == "double":
        return _library_power(code, x, y)
    base, exponent = x.convert("fpext", "double"), y.convert("fpext", "double")
    magnitude = base.absolute()
    result = exp2(code, exponent * log2(code, magnitude))
    is_integer = code.intrinsic("trunc", exponent).compare("oeq", exponent)
    half = exponent * 0.5
    is_odd = is_integer & code.intrinsic("trunc", half).compare("one", half)
    # (±1)^(±∞): the product above is 0·∞.
    is_endless = exponent.absolute().compare("oeq", math.inf) & magnitude.compare("oeq", 1.0)
    result = is_endless.select(base.coerce(1.0), result)
    result = is_odd.select(result.with_sign_of(base), result)
    is_real = is_integer | base.compare("uge", 0.0) | base.compare("oeq", -math.inf)
    result = is_real.select(result, base.coerce(math.nan))
    # These two are 1 even beside a NaN.
    is_one = exponent.compare("oeq", 0.0) | base.compare("oeq", 1.0)
    return is_one.select(base.coerce(1.0), result).convert("fptrunc", "float")
