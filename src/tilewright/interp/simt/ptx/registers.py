"""Registers of a PTX block: bits that each instruction reads as the type that it names."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.interp.simt.intrinsics.special_registers import special_register
from tilewright.interp.simt.kinds import FLOATS, PACKED, as_kind, dtype_of_kind
from tilewright.interp.simt.machine import Machine
from tilewright.interp.simt.ptx.parse import Immediate, Not, PtxOperand, Register
from tilewright.ir.op import Array
from tilewright.support.errors import UnsupportedError

Read = Callable[[], Array]


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
        machine = self.machine
        if isinstance(operand, Register) and operand.name.startswith("%"):
            special = special_register(machine, operand.name[1:])
            return lambda: as_kind(special(), kind)
        slot = self.slot(operand)
        return lambda: as_kind(machine.read(slot), kind)

    def _immediate(self, operand: Immediate, kind: str) -> Array:
        dtype = dtype_of_kind(kind)
        threads = self.machine.threads
        if operand.float_bits and kind in FLOATS:
            raw = np.array(operand.value, f"u{operand.float_bits // 8}")
            return np.full(threads, raw.view(f"f{operand.float_bits // 8}")).astype(dtype)
        if kind in PACKED:
            return as_kind(np.full(threads, operand.value, np.uint32), kind)
        if kind == "pred":
            return np.full(threads, operand.value != 0)
        width = dtype.itemsize * 8
        bits = np.full(threads, operand.value % (1 << width), f"u{dtype.itemsize}")
        return bits.view(dtype)
