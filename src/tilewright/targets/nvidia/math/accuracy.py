"""The error bound of each math function on the GPU, in units in the last place.

Where float32 routes through the special function unit or its division the bound is the
CPU's and what that unit adds, as the PTX ISA states it (2 ulp for `ex2.approx`, `div.full`
and `rsqrt.approx`, 1 for `sqrt.approx`); everything else is the CPU's code.
"""

from __future__ import annotations

from tilewright.codegen.math.accuracy import LIBRARY_BOUND
from tilewright.codegen.math.accuracy import ULP_BOUND as SHARED_BOUND

# Source: this module's tests, which hold every function to its bound; an instruction's own error is
# that of the PTX ISA 8.8.
_SINGLE = {
    "exp": 2.5,
    "exp2": 2.0,
    "sqrt": 1.0,
    "rsqrt": 2.0,
    "sigmoid": 5.5,
    "tanh": 4.0,
    "sinh": 2.5,
    "cosh": 2.5,
    "tan": 3.5,
    "atan": 3.5,
    "atan2": 4.0,
    "div": 2.0,
    "div_by_shared": 2.0,
    "sqrt_rn": 0.5,
    "div_rn": 0.5,
}
# By definition: rounded correctly.
_DOUBLE = {"div": 0.5, "sqrt_rn": 0.5, "div_rn": 0.5}

# (function, `float` or `double`) → bound. A float `exp2` below 2^-126 is 0.
ULP_BOUND: dict[tuple[str, str], float] = {
    **LIBRARY_BOUND,
    **SHARED_BOUND,
    **{(name, "float"): bound for name, bound in _SINGLE.items()},
    **{(name, "double"): bound for name, bound in _DOUBLE.items()},
}

# What the fast functions of floats are good for, in words: their errors are not in ulp.
FAST_BOUND: dict[str, str] = {
    "fast_exp": "2 ulp, and 0.7 ulp more for each unit of |x|",
    "fast_exp10": "2 ulp, and 1.7 ulp more for each unit of |x|",
    "fast_log": "absolute 2^-22 on [1/2, 2], else 3 ulp",
    "fast_log2": "absolute 2^-22 on [1/2, 2], else 2 ulp",
    "fast_log10": "absolute 2^-23 on [1/2, 2], else 3 ulp",
    "fast_pow": "that of 2^(y·log2 x) with these functions",
    "fast_sin": "absolute 2^-20.5 on [-π, π]",
    "fast_cos": "absolute 2^-20.5 on [-π, π]",
    "fast_tan": "that of the quotient of the fast sine and cosine",
    "fast_tanh": "relative 2^-11",
    "fast_divide": "2 ulp for |y| in [2^-126, 2^126]",
}
