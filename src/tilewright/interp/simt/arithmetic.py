"""Arithmetic, comparisons and casts of LLVM on NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.interp.simt import types as t
from tilewright.interp.simt.rounding import round_to_odd
from tilewright.interp.simt.types import LlvmType, signed_dtype
from tilewright.interp.simt.values import bit_cast
from tilewright.ir.op import Array

Unary = Callable[[Array], Array]
Binary = Callable[[Array, Array], Array]

SHARED_WINDOW = 1 << 56
LOCAL_WINDOW = 1 << 57
_WINDOWS = {t.SHARED: SHARED_WINDOW, 7: SHARED_WINDOW, t.LOCAL: LOCAL_WINDOW}


def signed(value: Array, bits: int = 0) -> Array:
    """Unsigned integers read as signed ones of `bits` bits (their width when 0)."""
    if value.dtype == np.bool_:
        return -value.astype(np.int8)
    if value.dtype.kind == "O":
        half = 1 << (bits - 1)
        return (value ^ half) - half
    result = value.view(signed_dtype(value.dtype))
    unused = value.dtype.itemsize * 8 - bits
    if bits and unused:
        result = (result << unused) >> unused
    return result


def _low_bits(value: Array, bits: int, dtype: np.dtype) -> Array:
    """Integers reduced to `bits` bits and carried as `dtype`."""
    if dtype == np.bool_:
        return (value & 1).astype(np.bool_)
    if value.dtype.kind == "O":
        return (value & ((1 << bits) - 1)).astype(dtype)
    result = value.astype(dtype)
    if dtype.kind == "O":
        return result & ((1 << bits) - 1)
    return result if bits == dtype.itemsize * 8 else result & dtype.type((1 << bits) - 1)


def _bool_binary(opcode: str) -> Binary:
    table: dict[str, Binary] = {
        "add": np.logical_xor,
        "sub": np.logical_xor,
        "xor": np.logical_xor,
        "mul": np.logical_and,
        "and": np.logical_and,
        "or": np.logical_or,
        "shl": lambda a, b: a & ~b,
        "lshr": lambda a, b: a & ~b,
        "ashr": lambda a, b: a,
        "udiv": lambda a, b: a,
        "sdiv": lambda a, b: a,
        "urem": lambda a, b: np.zeros_like(a),
        "srem": lambda a, b: np.zeros_like(a),
    }
    return table[opcode]


def _nonzero(b: Array) -> Array:
    """The divisor, with 1 for 0 in threads where it does not matter."""
    return np.where(b == 0, b.dtype.type(1) if b.dtype.kind != "O" else 1, b)


def _signed_quotient(a: Array, b: Array, bits: int) -> Array:
    x, y = signed(a, bits), signed(_nonzero(b), bits)
    if a.dtype.kind == "O":
        return np.array(
            [abs(p) // abs(q) * (1 if p * q >= 0 else -1) for p, q in zip(x, y, strict=True)]
        )
    quotient = (x - np.fmod(x, y)) // y
    return np.where(y == -1, -x, quotient)


def _signed_remainder(a: Array, b: Array, bits: int) -> Array:
    if a.dtype.kind == "O":
        return signed(a, bits) - _signed_quotient(a, b, bits) * signed(_nonzero(b), bits)
    y = signed(_nonzero(b), bits)
    return np.where(y == -1, 0, np.fmod(signed(a, bits), np.where(y == -1, 1, y)))


def _int_operations(bits: int) -> dict[str, Binary]:
    return {
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
        "shl": np.left_shift,
        "lshr": np.right_shift,
        "ashr": lambda a, b: signed(a, bits) >> b.astype(signed(a, bits).dtype),
        "udiv": lambda a, b: a // _nonzero(b),
        "urem": lambda a, b: a % _nonzero(b),
        "sdiv": lambda a, b: _signed_quotient(a, b, bits),
        "srem": lambda a, b: _signed_remainder(a, b, bits),
    }


_FLOAT_OPERATIONS: dict[str, Binary] = {
    "fadd": np.add,
    "fsub": np.subtract,
    "fmul": np.multiply,
    "fdiv": np.divide,
    "frem": np.fmod,
}
_EXACT = frozenset(("add", "sub", "mul", "and", "or", "xor", "lshr", "udiv", "urem"))


def binary(opcode: str, type_: LlvmType) -> Binary:
    """The function of a two-operand instruction."""
    operation = _FLOAT_OPERATIONS.get(opcode)
    if operation is not None:
        return operation
    element = t.element_type(type_)
    bits, dtype = t.width_bits(element), t.dtype_of(element)
    if bits == 1:
        return _bool_binary(opcode)
    operation = _int_operations(bits)[opcode]
    if dtype.kind != "O" and bits == dtype.itemsize * 8:
        if opcode in _EXACT or opcode == "shl":
            return operation
        signed_operation = operation
        return lambda a, b: signed_operation(a, b).view(dtype)
    wide = operation
    return lambda a, b: _low_bits(wide(a, b), bits, dtype)


_ORDERED: dict[str, Binary] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
}


def compare(predicate: str, type_: LlvmType) -> Binary:
    """The function of `icmp` or `fcmp` with a predicate."""
    element = t.element_type(type_)
    if isinstance(element, t.FloatType):
        return _float_compare(predicate)
    if predicate[0] == "s":
        bits, operation = t.width_bits(element), _ORDERED[predicate[1:]]
        return lambda a, b: operation(signed(a, bits), signed(b, bits))
    return _ORDERED[predicate if predicate in _ORDERED else predicate[1:]]


def _float_compare(predicate: str) -> Binary:
    if predicate == "ord":
        return lambda a, b: ~(np.isnan(a) | np.isnan(b))
    if predicate == "uno":
        return lambda a, b: np.isnan(a) | np.isnan(b)
    if predicate in ("true", "false"):
        return lambda a, b: np.full(a.shape, predicate == "true")
    operation = _ORDERED[predicate[1:]]
    if predicate == "one":
        return lambda a, b: (a != b) & ~(np.isnan(a) | np.isnan(b))
    if predicate[0] == "u" and predicate != "une":
        return lambda a, b: operation(a, b) | np.isnan(a) | np.isnan(b)
    return operation


def cast(opcode: str, source: LlvmType, target: LlvmType) -> Unary:
    """The function of a cast."""
    if opcode == "bitcast":
        return lambda a: bit_cast(a, source, target)
    if opcode == "addrspacecast":
        return _space_cast(source, target)
    from_bits = t.width_bits(t.element_type(source))
    to_bits, dtype = t.width_bits(t.element_type(target)), t.dtype_of(target)
    if opcode in ("trunc", "zext", "ptrtoint", "inttoptr"):
        return lambda a: _low_bits(a, to_bits, dtype)
    if opcode == "sext":
        return lambda a: _low_bits(signed(a, from_bits), to_bits, dtype)
    if opcode == "sitofp":
        return lambda a: signed(a, from_bits).astype(dtype)
    if opcode in ("fptosi", "fptoui"):
        return _float_to_int(opcode, to_bits, dtype)
    if opcode == "fptrunc" and source == t.DOUBLE and dtype.itemsize == 2:
        return lambda a: round_to_odd(a).astype(dtype)
    return lambda a: a.astype(dtype)


def _float_to_int(opcode: str, bits: int, dtype: np.dtype) -> Unary:
    """Out of range is undefined; the hardware saturates and takes NaN to 0, and so does this."""
    low, high = (
        (0, (1 << bits) - 1) if opcode == "fptoui" else (-(1 << bits - 1), (1 << bits - 1) - 1)
    )
    carrier = np.dtype(np.uint64) if opcode == "fptoui" else np.dtype(np.int64)

    def convert(a: Array) -> Array:
        wide = np.trunc(np.nan_to_num(a.astype(np.float64), nan=0.0, posinf=1e300, neginf=-1e300))
        result = np.clip(wide, low, high).astype(carrier)
        result = np.where(wide >= float(high), carrier.type(high), result)
        return _low_bits(result, bits, dtype)

    return convert


def _space_cast(source: LlvmType, target: LlvmType) -> Unary:
    assert isinstance(source, t.PointerType) and isinstance(target, t.PointerType)
    shift = _WINDOWS.get(source.space, 0) - _WINDOWS.get(target.space, 0)
    if shift == 0:
        return lambda a: a
    offset = np.uint64(shift % (1 << 64))
    return lambda a: a + offset
