"""`triton.language.math`: elementwise mathematics."""

from __future__ import annotations

import tilewright.language.math as _math

from .._names import public_names, refuse
from . import core as core

globals().update(public_names(_math, __name__, _math.__all__))
globals().update(
    {
        name: value
        for name in ("sqrt_rn", "umulhi", "abs", "fdiv", "rsqrt", "sqrt", "fma", "div_rn")
        if name not in globals() and (value := vars(core).get(name)) is not None
    }
)

__getattr__ = refuse(__name__, {})
