"""The error function."""

from __future__ import annotations

from tilewright.codegen.math import error_table
from tilewright.codegen.math.exponential import exp_parts, scale
from tilewright.codegen.math.lanes import LaneCode, LaneValue

# erf(x)/x - 1 in x² on |x| ≤ 1, relative to erf: error 2^-29.3 and 2^-56.3.
_NEAR = {
    "float": (
        0.12837916612625122,
        -0.3761262595653534,
        0.11283576488494873,
        -0.026853179559111595,
        0.00518672913312912,
        -0.000799319357611239,
        7.789045048411936e-05,
    ),
    "double": (
        0.1283791670955126,
        -0.3761263890318375,
        0.11283791670954854,
        -0.02686617064507232,
        0.005223977624775048,
        -0.000854832697839472,
        0.00012055331023779029,
        -1.492559318148626e-05,
        1.6460967443905265e-06,
        -1.6349966724733736e-07,
        1.465747660403039e-08,
        -1.1364071515315953e-09,
        5.942507163837202e-11,
    ),
}
# log(1 - erf(t)) on [0.99, 4], relative to erf(t): error 2^-29.7.
_LOG_COMPLEMENT = (
    -0.00032057726639322937,
    -1.1271716356277466,
    -0.6380122303962708,
    -0.103218212723732,
    0.021889666095376015,
    -0.0029601275455206633,
    0.0001876072637969628,
)
# e^(t²)·(1 - erf(t)) in u = (t - 2)/(t + 2) on t in [1, 6], relative to erf(t): error 2^-57.6.
_SCALED_COMPLEMENT = (
    0.25539567631050575,
    -0.4271858474139584,
    0.24165819424246673,
    -0.07897858101574957,
    0.003732892404116324,
    0.006997461740340921,
    -0.0008471432251317611,
    -0.0009819769794758258,
    4.355466232642316e-05,
    0.00017435649592200544,
    2.7532602746165774e-05,
    -2.748571401889788e-05,
    -1.3829857147059358e-05,
    9.287819745224062e-07,
    2.1987164215594674e-06,
)
# 1 - erf is below half a unit in the last place of 1 from here on.
_LIMIT = {"float": 4.0, "double": 6.0}


def _complement(code: LaneCode, t: LaneValue) -> LaneValue:
    """The value `1 - erf(t)` for `t` between 1 and the limit."""
    if t.element == "float":
        return scale(code, *exp_parts(code, code.horner(t, _LOG_COMPLEMENT)))
    y, n = exp_parts(code, -(t * t))
    u = (t - 2.0) / (t + 2.0)
    return scale(code, y, n) * code.horner(u, _SCALED_COMPLEMENT)


def near(code: LaneCode, x: LaneValue) -> LaneValue:
    """The error function for `|x| ≤ 1`."""
    return code.multiply_add(x, code.horner(x * x, _NEAR[x.element]), x)


def erf(code: LaneCode, x: LaneValue) -> LaneValue:
    """The error function: a polynomial for `|x| < 1`, one minus an exponential beyond.

    Where floats are picked out of a register, f32 takes that table.
    """
    if error_table.is_covered(code, x):
        return error_table.erf(code, x)
    magnitude = x.absolute().at_most(_LIMIT[x.element])
    far = (1.0 - _complement(code, magnitude)).with_sign_of(x)
    return magnitude.compare("olt", 1.0).select(near(code, x), far)
