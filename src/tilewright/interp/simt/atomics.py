"""What atomic operations do to the bits in memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.interp.simt.functions import maximum_number, minimum_number
from tilewright.interp.simt.kinds import as_kind, packed
from tilewright.ir.op import Array
from tilewright.support.errors import UnsupportedError

# Old bits and operands to new bits, all unsigned integers of the access's width.
Change = Callable[..., Array]


def _increment(old: Array, limit: Array) -> Array:
    return np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1))


def _decrement(old: Array, limit: Array) -> Array:
    return np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1))


def _compare_and_swap(old: Array, expected: Array, new: Array) -> Array:
    return np.where(old == expected, new, old)


_BITWISE: dict[str, Change] = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda old, new: new,
    "cas": _compare_and_swap,
    "inc": _increment,
    "dec": _decrement,
}
_ARITHMETIC: dict[str, Change] = {
    "add": np.add,
    "sub": np.subtract,
    "min": np.minimum,
    "max": np.maximum,
}


def change_function(operation: str, kind: str) -> Change:
    """The function of an atomic operation on values of a PTX type."""
    if operation in _BITWISE:
        return _BITWISE[operation]
    function = _ARITHMETIC.get(operation)
    if function is None:
        raise UnsupportedError(f"the simulator does not know the atomic operation '{operation}'")
    if "f" in kind and operation in ("min", "max"):
        function = minimum_number if operation == "min" else maximum_number
    is_packed = kind.endswith("x2")

    def change(old: Array, operand: Array) -> Array:
        result = function(as_kind(old, kind), as_kind(operand, kind))
        return packed(result) if is_packed else result.view(old.dtype)

    return change
