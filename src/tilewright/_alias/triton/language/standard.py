"""`triton.language.standard`: the functions of the language that are made of others."""

from __future__ import annotations

from tilewright.language.host import constexpr_function

from .._names import refuse
from . import core as core

_NAMES = (
    *("argmax", "argmin", "bitonic_merge", "cdiv", "cumprod", "cumsum", "flip", "interleave"),
    *("max", "min", "ravel", "reduce_or", "sigmoid", "softmax", "sort", "squeeze", "sum"),
    *("swizzle2d", "topk", "unsqueeze", "xor_sum", "zeros", "zeros_like"),
)
globals().update({name: getattr(core, name) for name in _NAMES})


@constexpr_function
def _log2(i: int) -> int:
    """The binary logarithm of a power of two."""
    return i.bit_length() - 1


@constexpr_function
def _is_power_of_two(i: int) -> bool:
    """Whether `i` is a power of two."""
    return i > 0 and i & (i - 1) == 0


__getattr__ = refuse(__name__, {})
