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


# The functions by which packages reduce and scan, as kernel code.


@core.builtin
def _sum_combine(a, b):  # type: ignore[no-untyped-def]  # tiles
    """The sum."""
    return a + b


@core.builtin
def _prod_combine(a, b):  # type: ignore[no-untyped-def]
    """The product."""
    return a * b


@core.builtin
def _xor_combine(a, b):  # type: ignore[no-untyped-def]
    """The bits of one of both."""
    return a ^ b


@core.builtin
def _or_combine(a, b):  # type: ignore[no-untyped-def]
    """The bits of either."""
    return a | b


@core.builtin
def _elementwise_max(a, b):  # type: ignore[no-untyped-def]
    """The greater one."""
    return core.maximum(a, b)


@core.builtin
def _elementwise_min(a, b):  # type: ignore[no-untyped-def]
    """The smaller one."""
    return core.minimum(a, b)


@core.builtin
def _argmax_combine(x, i, y, j, tie_break_left):  # type: ignore[no-untyped-def]
    """The greater value with its index; of equal ones the first, if asked."""
    takes_first = (x > y) | ((x == y) & (i < j)) if tie_break_left else x > y
    return core.where(takes_first, x, y), core.where(takes_first, i, j)


@core.builtin
def _argmin_combine(x, i, y, j, tie_break_left):  # type: ignore[no-untyped-def]
    """The smaller value with its index; of equal ones the first, if asked."""
    takes_first = (x < y) | ((x == y) & (i < j)) if tie_break_left else x < y
    return core.where(takes_first, x, y), core.where(takes_first, i, j)


@core.builtin
def _argmax_combine_tie_break_left(x, i, y, j):  # type: ignore[no-untyped-def]
    """The greater value, of equal ones the first."""
    return _argmax_combine(x, i, y, j, True)


@core.builtin
def _argmax_combine_tie_break_fast(x, i, y, j):  # type: ignore[no-untyped-def]
    """The greater value, of equal ones any."""
    return _argmax_combine(x, i, y, j, False)


@core.builtin
def _argmin_combine_tie_break_left(x, i, y, j):  # type: ignore[no-untyped-def]
    """The smaller value, of equal ones the first."""
    return _argmin_combine(x, i, y, j, True)


@core.builtin
def _argmin_combine_tie_break_fast(x, i, y, j):  # type: ignore[no-untyped-def]
    """The smaller value, of equal ones any."""
    return _argmin_combine(x, i, y, j, False)


__getattr__ = refuse(__name__, {})
