"""Arithmetic and conversions of NumPy arrays under the four rounding modes of IEEE 754.

The modes are called as in function names: `rn` to nearest even, `rz` toward zero, `rd` down,
`ru` up. A result is the nearest number, moved to its neighbour where the sign of what rounding
dropped says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from tilewright.ir.op import Array
from tilewright.ops.elementwise.reference import fused_multiply_add, two_sum

MODES = ("rn", "rz", "rd", "ru")


def quiet(function: Callable[..., Array]) -> Callable[..., Array]:
    """`function` without NumPy's warnings: infinities and NaN are results here."""

    def apply(*operands: Array) -> Array:
        with np.errstate(all="ignore"):
            return function(*map(np.asarray, operands))

    return apply


def directed(nearest: Array, dropped: Array, mode: str) -> Array:
    """The result of `mode`, from the nearest one and the sign of the exact result less that."""
    if mode == "rn":
        return nearest
    down = np.nextafter(nearest, nearest.dtype.type(-np.inf))
    up = np.nextafter(nearest, nearest.dtype.type(np.inf))
    is_negative = np.signbit(nearest)
    goes_down = (dropped < 0) & ((mode == "rd") | ((mode == "rz") & ~is_negative))
    goes_up = (dropped > 0) & ((mode == "ru") | ((mode == "rz") & is_negative))
    return np.where(goes_down, down, np.where(goes_up, up, nearest))


def _narrow(exact: Array, rest: Array, mode: str) -> Array:
    """float32 of the unrounded sum `exact + rest` of doubles, `rest` below a last place."""
    nearest = exact.astype(np.float32)
    difference = exact - nearest.astype(np.float64)
    # An exact tie of the first part: the second one may decide, and may turn it.
    spacing = np.spacing(np.abs(nearest)).astype(np.float64)
    is_tie = np.abs(difference) * 2 == spacing
    toward = np.where(difference > 0, np.float32(np.inf), np.float32(-np.inf))
    turned = np.nextafter(nearest, toward)
    turns = is_tie & (np.sign(rest) == np.sign(difference))
    nearest = np.where(turns, turned, nearest)
    difference = exact - nearest.astype(np.float64)
    dropped = np.where(difference == 0, rest, difference)
    return directed(nearest, np.where(np.isnan(dropped), 0, dropped), mode)


def _quotient(a: Array, b: Array) -> tuple[Array, Array]:
    quotient = a / b
    rest = fused_multiply_add(-quotient, b, a) * np.sign(b)
    return quotient, np.where(np.isfinite(quotient) & np.isfinite(b), rest, 0.0)


def _root(a: Array) -> tuple[Array, Array]:
    root = np.sqrt(a)
    rest = fused_multiply_add(-root, root, a)
    return root, np.where(np.isfinite(root), rest, 0.0)


def _sum(a: Array, b: Array) -> tuple[Array, Array]:
    total, rest = two_sum(a, b)
    return total, np.where(np.isfinite(total), rest, 0.0)


# On doubles that hold floats: the result and what is missing from it.
_PAIRS: dict[str, Callable[..., tuple[Array, Array]]] = {
    "add": _sum,
    "sub": lambda a, b: _sum(a, -b),
    "mul": lambda a, b: (a * b, np.zeros_like(a * b)),
    "div": _quotient,
    "rcp": lambda a: _quotient(np.ones_like(a), a),
    "sqrt": _root,
    "fma": lambda a, b, c: _sum(a * b, c),
}
_PLAIN: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "rcp": lambda a: 1 / a,
    "sqrt": np.sqrt,
    "fma": fused_multiply_add,
}
_EXACT: dict[str, Callable[..., Fraction]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "rcp": lambda a: 1 / a,
    "fma": lambda a, b, c: a * b + c,
}


def _dropped_sign(name: str, nearest: float, *operands: float) -> int:
    """The sign of the exact result less the nearest double."""
    if math.isnan(nearest) or not all(map(math.isfinite, operands)):
        return 0
    exact = [Fraction(operand) for operand in operands]
    if name in ("div", "rcp") and exact[-1] == 0:
        return 0
    if math.isinf(nearest):
        return -1 if nearest > 0 else 1
    rounded = Fraction(nearest)
    if name == "sqrt":
        difference = exact[0] - rounded * rounded
    else:
        difference = _EXACT[name](*exact) - rounded
    return (difference > 0) - (difference < 0)


def _signed_zero(name: str, mode: str, result: Array, operands: tuple[Array, ...]) -> Array:
    """`result` with -0 for a sum that cancels when rounding down."""
    if mode != "rd" or name not in ("add", "sub", "fma"):
        return result
    first = operands[0] * operands[1] if name == "fma" else operands[0]
    second = -operands[-1] if name == "sub" else operands[-1]
    cancels = (result == 0) & (np.signbit(first) != np.signbit(second))
    return np.where(cancels & (first == -second), result.dtype.type(-0.0), result)


def arithmetic(name: str, mode: str) -> Callable[..., Array]:
    """`name` (`add sub mul div rcp sqrt fma`) on float32 or float64 arrays, rounded by `mode`."""

    def apply(*arrays: Array) -> Array:
        if arrays[0].dtype == np.float32:
            exact, rest = _PAIRS[name](*(array.astype(np.float64) for array in arrays))
            result = _narrow(np.asarray(exact), np.asarray(rest), mode)
        else:
            nearest = np.asarray(_PLAIN[name](*arrays))
            signs = np.vectorize(lambda *row: _dropped_sign(name, *row), otypes=[np.int64])
            result = nearest if mode == "rn" else directed(nearest, signs(nearest, *arrays), mode)
        return _signed_zero(name, mode, result, arrays)

    return quiet(apply)


_WHOLE = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}


def to_integer(dtype: np.dtype, is_signed: bool, mode: str) -> Callable[[Array], Array]:
    """Floats to integers by `mode`: out of range saturates, NaN gives 0 or the lowest code.

    *NaN*: 0 from float32 to 32 bits, else the code with the top bit alone, as on NVIDIA GPUs.
    """
    bits = 8 * dtype.itemsize
    low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if is_signed else (0, 1 << bits)

    def apply(values: Array) -> Array:
        whole = _WHOLE[mode](values.astype(np.float64))
        inside = np.where((whole >= low) & (whole < high), whole, 0.0)
        converted = inside.astype(dtype if is_signed else f"u{dtype.itemsize}").view(dtype)
        top = high - 1 if is_signed else -1
        converted = np.where(whole >= high, dtype.type(top), converted)
        converted = np.where(whole < low, dtype.type(low), converted)
        lowest = 0 if bits == 32 and values.dtype == np.float32 else -(1 << (bits - 1))
        return np.where(np.isnan(whole), dtype.type(lowest), converted)

    return quiet(apply)


def from_integer(dtype: np.dtype, is_signed: bool, mode: str) -> Callable[[Array], Array]:
    """Integers to floats of `dtype`, rounded once by `mode`."""

    def apply(values: Array) -> Array:
        integers = values if is_signed else values.view(f"u{values.dtype.itemsize}")
        nearest = integers.astype(dtype)
        exact = integers.astype(object) - np.vectorize(int, otypes=[object])(nearest)
        return directed(nearest, np.sign(exact).astype(np.int64), mode)

    return quiet(apply)


def to_single(mode: str) -> Callable[[Array], Array]:
    """float64 to float32, rounded once by `mode`."""

    def apply(values: Array) -> Array:
        return _narrow(values, np.zeros_like(values), mode)

    return quiet(apply)
