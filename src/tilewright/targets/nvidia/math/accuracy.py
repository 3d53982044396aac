"""The error bound of each math function on the GPU, in units in the last place.

Where float32 routes through the special function unit or its division the bound is the
CPU's and what that unit adds, as the PTX ISA states it (2 ulp for `ex2.approx`, `div.full`
and `rsqrt.approx`, 1 for `sqrt.approx`); everything else is the CPU's code.
"""

from __future__ import annotations

from tilewright.codegen.math.accuracy import ULP_BOUND as SHARED_BOUND

_SINGLE = {
    "exp": 2.5,
    "exp2": 2.0,
    "sqrt": 1.0,
    "rsqrt": 2.0,
    "sigmoid": 5.5,
    "tanh": 2.5,
    "sinh": 2.5,
    "cosh": 2.5,
    "tan": 3.5,
    "atan": 3.5,
    "atan2": 4.0,
    "div": 2.0,
    "sqrt_rn": 0.5,
    "div_rn": 0.5,
}
_DOUBLE = {"div": 0.5, "sqrt_rn": 0.5, "div_rn": 0.5}

# (function, `float` or `double`) → bound. A float `exp2` below 2^-126 is 0.
ULP_BOUND: dict[tuple[str, str], float] = {
    **SHARED_BOUND,
    **{(name, "float"): bound for name, bound in _SINGLE.items()},
    **{(name, "double"): bound for name, bound in _DOUBLE.items()},
}
