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
    # The float result comes from doubles; the double result is the C library's.
    "pow": (0.51, 1.0),  # 0.500, 0.504
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
