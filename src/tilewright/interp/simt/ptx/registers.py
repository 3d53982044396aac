"""Registers of a PTX block: bits that each instruction reads as the type that it names."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import ml_dtypes
import numpy as np

from tilewright.interp.simt.machine import Machine
from tilewright.interp.simt.ptx.parse import Immediate, Not, PtxOperand, Register
from tilewright.ir.op import Array
from tilewright.support.errors import UnsupportedError

Read = Callable[[], Array]
_FLOATS = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "tf32": np.dtype(np.float32),
}
_PACKED = {
    "f16x2": np.dtype(np.float16),
    "bf16x2": np.dtype(ml_dtypes.bfloat16),
    "e4m3x2": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2x2": np.dtype(ml_dtypes.float8_e5m2),
}


@cache
def dtype_of_kind(kind: str) -> np.dtype:
    """The dtype that a PTX type is read as; packed types give their elements'."""
    if kind == "pred":
        return np.dtype(np.bool_)
    known = _FLOATS.get(kind) or _PACKED.get(kind)
    if known is not None:
        return known
    if kind[0] in "bus" and kind[1:] in ("8", "16", "32", "64"):
        return np.dtype(f"{'i' if kind[0] == 's' else 'u'}{int(kind[1:]) // 8}")
    raise UnsupportedError(f"the simulator does not know the PTX type '.{kind}'")


def is_kind(word: str) -> bool:
    """Whether a modifier is a type."""
    if word in _FLOATS or word in _PACKED or word == "pred":
        return True
    return word[:1] in ("b", "u", "s") and word[1:] in ("8", "16", "32", "64")


def as_kind(bits: Array, kind: str) -> Array:
    """What a register holds, read as a type; packed types give [2, threads]."""
    dtype = dtype_of_kind(kind)
    if bits.dtype == dtype:
        return bits if kind not in _PACKED else _unpacked(bits, dtype)
    if kind in _PACKED:
        return _unpacked(bits, dtype)
    if bits.dtype == np.bool_ or dtype == np.bool_:
        return bits.astype(dtype)
    if bits.dtype.itemsize != dtype.itemsize:
        unsigned = bits.view(f"u{bits.dtype.itemsize}")
        bits = unsigned.astype(f"u{dtype.itemsize}")
    return bits.view(dtype)


def _unpacked(bits: Array, dtype: np.dtype) -> Array:
    if bits.ndim == 2:
        return bits.view(dtype)
    return np.ascontiguousarray(bits).view(dtype).reshape(-1, 2).T


def packed(value: Array) -> Array:
    """Elements [2, threads] as one register, the first element lowest."""
    lanes = np.ascontiguousarray(value.T)
    return lanes.view(f"u{2 * lanes.dtype.itemsize}")[:, 0]


class Registers:
    """The slots of a block's registers and of the call's operands."""

    def __init__(self, machine: Machine, slots: dict[str, int], kinds: dict[str, str]) -> None:
        self.machine = machine
        self.slots = slots
        self.kinds = kinds

    def slot(self, operand: PtxOperand) -> int:
        """The slot of a register that an instruction writes; `_` writes none (slot 0)."""
        if isinstance(operand, Register):
            if operand.name == "_":
                return 0
            found = self.slots.get(operand.name)
            if found is not None:
                return found
        raise UnsupportedError(f"'{operand}' is no register of the PTX block")

    def reader(self, operand: PtxOperand, kind: str) -> Read:
        """What reads an operand as a type."""
        if isinstance(operand, Immediate):
            constant = self._immediate(operand, kind)
            return lambda: constant
        if isinstance(operand, Not):
            inner = self.reader(operand.operand, "pred")
            return lambda: ~inner()
        values, slot = self.machine.values, self._readable(operand)

        def read() -> Array:
            bits = values[slot]
            assert isinstance(bits, np.ndarray), "a PTX register is read before it is written"
            return as_kind(bits, kind)

        return read

    def _readable(self, operand: PtxOperand) -> int:
        if isinstance(operand, Register) and operand.name in _SPECIAL:
            self.machine.values.append(_SPECIAL[operand.name](self.machine))
            return len(self.machine.values) - 1
        return self.slot(operand)

    def _immediate(self, operand: Immediate, kind: str) -> Array:
        dtype = dtype_of_kind(kind)
        threads = self.machine.threads
        if operand.float_bits and kind in _FLOATS:
            raw = np.array(operand.value, f"u{operand.float_bits // 8}")
            return np.full(threads, raw.view(f"f{operand.float_bits // 8}")).astype(dtype)
        if kind in _PACKED:
            return as_kind(np.full(threads, operand.value, np.uint32), kind)
        if kind == "pred":
            return np.full(threads, operand.value != 0)
        width = dtype.itemsize * 8
        bits = np.full(threads, operand.value % (1 << width), f"u{dtype.itemsize}")
        return bits.view(dtype)


_SPECIAL: dict[str, Callable[[Machine], Array]] = {
    "%tid.x": lambda m: m.thread_ids.astype(np.uint32),
    "%laneid": lambda m: (m.thread_ids % 32).astype(np.uint32),
    "%ntid.x": lambda m: np.full(m.threads, m.threads, np.uint32),
}
