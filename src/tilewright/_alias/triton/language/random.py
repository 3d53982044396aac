"""`triton.language.random`: the functions that draw random numbers."""

from __future__ import annotations

from .._names import refuse
from . import core as _core

N_ROUNDS_DEFAULT = 10
_NAMES = (
    *("philox", "philox_impl", "rand", "rand4x", "randint", "randint4x", "randn", "randn4x"),
    *("pair_uniform_to_normal", "uint_to_uniform_float"),
)
globals().update({name: getattr(_core, name) for name in _NAMES})

__getattr__ = refuse(__name__, {})
