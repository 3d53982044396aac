"""The error bound of each math function, in units in the last place of the exact result.

The bounds are for a CPU with fused multiply-add; without it a result may be 0.5 worse. They are
measured, not proven: AVX-512, AVX2 and scalar code give the same bits; float `exp` on
every second float (0.896), `tanh`, `log` and `sin` on every fifth of a main range, the rest
on 2·10^6 (float) and 3·10^5 (double) random arguments against long double, 2026-11-21.
"""

from __future__ import annotations

# Function: (bound for float, bound for double); beside it what was measured.
_BOUNDS: dict[str, tuple[float, float]] = {
    "exp": (1.0, 1.0),  # 0.90, 0.83
    "exp2": (1.0, 1.0),  # 0.79, 0.81
    "expm1": (2.0, 2.0),  # 1.41, 1.86
    "log": (1.0, 1.0),  # 0.88, 0.84
    "log2": (2.0, 2.0),  # 1.58, 1.52
    "log10": (1.5, 1.5),  # 1.21, 1.02
    "log1p": (2.0, 2.0),  # 1.55, 1.42
    "sigmoid": (2.5, 2.5),  # 2.15, 2.24
    "tanh": (1.5, 1.5),  # 1.36, 1.28
    "erf": (1.2, 1.2),  # 0.99, 0.94
    "sinh": (2.0, 2.0),  # 1.60, 1.56
    "cosh": (1.7, 1.7),  # 1.44, 1.24
    "sin": (1.0, 1.0),  # 0.85, 0.94
    "cos": (1.0, 1.0),  # 0.81, 0.94
    "tan": (1.5, 1.5),  # 1.16, 1.28
    "asin": (2.0, 2.0),  # 1.71, 1.63
    "acos": (1.5, 1.5),  # 1.16, 1.09
    "atan": (1.5, 1.5),  # 1.14, 1.29
    "atan2": (2.0, 2.0),  # 1.49, 1.43
    "pow": (1.2, 1.0),  # 1.07, 0.63
    "rsqrt": (1.5, 1.5),  # 1.49: two roundings
    "sqrt": (0.5, 0.5),
    "floor": (0.0, 0.0),
    "ceil": (0.0, 0.0),
    "trunc": (0.0, 0.0),
    "round": (0.0, 0.0),
    "rint": (0.0, 0.0),
}

# (function, `float` or `double`) → bound.
ULP_BOUND: dict[tuple[str, str], float] = {
    (name, element): bound
    for name, pair in _BOUNDS.items()
    for element, bound in zip(("float", "double"), pair, strict=True)
}

# The functions of libdevice beyond those above. A float result comes from doubles and is within
# 0.51 of a last place; these are the bounds of doubles, beside them what was measured against
# 160-bit arithmetic on 400 to 800 arguments.
_LIBRARY: dict[str, float] = {
    "acosh": 2.5,  # 1.63
    "asinh": 2.5,  # 1.30
    "atanh": 2.0,  # 1.27
    "cbrt": 1.0,  # 0.50
    "rcbrt": 1.5,  # 1.13
    "exp10": 1.0,  # 0.60
    "sinpi": 1.0,  # 0.64
    "cospi": 1.0,  # 0.60
    "erfc": 4.0,  # 2.90
    "erfcx": 5.0,  # 3.83
    "erfinv": 3.0,  # 2.26
    "erfcinv": 3.0,  # 2.46
    "normcdf": 5.0,  # 3.32
    "normcdfinv": 4.0,
    "lgamma": 4.0,  # 1.75
    "tgamma": 5.0,  # 3.40
    "cyl_bessel_i0": 4.0,  # 2.69
    "cyl_bessel_i1": 4.0,  # 2.81
    "j0": 15.0,  # 11.1
    "j1": 8.0,  # 5.14
    "jn": 15.0,
    "y0": 15.0,
    "y1": 15.0,
    "yn": 15.0,
    "hypot": 1.5,  # 0.85
    "rhypot": 2.0,  # 1.41
    "norm3d": 1.5,  # 1.00
    "norm4d": 1.5,  # 1.04
    "rnorm3d": 2.5,  # 1.67
    "rnorm4d": 2.5,  # 1.72
    "powi": 1.0,  # 0.63
    "rsqrt_rn": 0.5,
}
LIBRARY_BOUND: dict[tuple[str, str], float] = {
    (name, element): 0.51 if element == "float" else bound
    for name, bound in _LIBRARY.items()
    for element in ("float", "double")
}
# Near a zero that no table takes out the error of doubles is bounded absolutely, as a multiple
# of 2^-53 times the function's size nearby: beyond 8 and for the second kind everywhere, and for
# the logarithm of the gamma function below 0.
ABSOLUTE_BOUND: dict[str, float] = {
    "j0": 8.0,
    "j1": 8.0,
    "jn": 100.0,
    "y0": 16.0,
    "y1": 32.0,
    "yn": 400.0,
    "lgamma": 64.0,
}
