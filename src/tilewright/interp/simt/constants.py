"""Constants of a program and the addresses of its globals."""

from __future__ import annotations

import numpy as np

from tilewright.interp.simt import types as t
from tilewright.interp.simt.arithmetic import LOCAL_WINDOW, SHARED_WINDOW, cast
from tilewright.interp.simt.machine import Machine
from tilewright.interp.simt.syntax import (
    Constant,
    Expression,
    Global,
    GlobalVariable,
    Local,
    Module,
    Operand,
    Undefined,
)
from tilewright.interp.simt.types import SHARED_BASE, LlvmType
from tilewright.interp.simt.values import Value, to_bytes, zero
from tilewright.ir.op import Array
from tilewright.support.errors import InternalError

# What an undefined value reads as: something that no program expects.
_UNDEFINED_BITS = 0xDEADBEEFDEADBEEF


def static_shared_bytes(module: Module) -> int:
    """The bytes of the module's own shared variables, which lie before the dynamic ones."""
    end = 0
    for variable in module.globals.values():
        if variable.space == t.SHARED and not _is_dynamic(variable):
            end = -(-end // variable.align) * variable.align + t.size_bytes(variable.type)
    return -(-end // 1024) * 1024


def _is_dynamic(variable: GlobalVariable) -> bool:
    return variable.is_external or t.size_bytes(variable.type) == 0


class Constants:
    """Slots of constants: one array element per thread, made once."""

    def __init__(self, module: Module, machine: Machine) -> None:
        self._machine = machine
        self._slots: dict[Operand, int] = {}
        self._addresses: dict[str, int] = {}
        self._shared = {v.name for v in module.globals.values() if v.space == t.SHARED}
        self._place_globals(module)

    def _place_globals(self, module: Module) -> None:
        end, dynamic = 0, static_shared_bytes(module)
        for variable in module.globals.values():
            if variable.space != t.SHARED:
                self._addresses[variable.name] = self._place_in_memory(variable)
            elif _is_dynamic(variable):
                self._addresses[variable.name] = SHARED_BASE + dynamic
            else:
                end = -(-end // variable.align) * variable.align
                self._addresses[variable.name] = SHARED_BASE + end
                end += t.size_bytes(variable.type)

    def _place_in_memory(self, variable: GlobalVariable) -> int:
        size = t.size_bytes(variable.type)
        region = self._machine.memory.add(f"@{variable.name}", size)
        initializer = variable.initializer
        if isinstance(initializer, Constant) and isinstance(initializer.value, bytes):
            region.bytes()[:] = np.frombuffer(initializer.value, np.uint8)
        elif isinstance(initializer, Constant) and initializer.value is None:
            region.bytes()[:] = 0
        elif isinstance(initializer, Constant):
            region.bytes()[:] = to_bytes(self.value(initializer), variable.type)[0]
        region.is_writable = not variable.is_constant
        return region.base

    def slot(self, operand: Operand) -> int:
        """The slot of a constant operand."""
        found = self._slots.get(operand)
        if found is None:
            self._machine.values.append(self.value(operand))
            found = self._slots[operand] = len(self._machine.values) - 1
        return found

    def local_address(self, offset: int, space: int) -> Array:
        """The address of something in local memory, the same in every thread."""
        window = LOCAL_WINDOW if space == t.GENERIC else 0
        return np.full(self._machine.threads, offset + window, np.uint64)

    def value(self, operand: Operand) -> Value:
        """The value of a constant operand in every thread."""
        threads = self._machine.threads
        if isinstance(operand, Constant):
            return self._literal(operand.type, operand.value)
        if isinstance(operand, Undefined):
            return _undefined(operand.type, threads)
        if isinstance(operand, Global):
            return self._address(operand)
        if isinstance(operand, Expression):
            return self._expression(operand)
        assert isinstance(operand, Local)
        raise InternalError(f"%{operand.name} is no constant")

    def _address(self, operand: Global) -> Array:
        if operand.name not in self._addresses:
            raise InternalError(f"@{operand.name} is not defined")
        address = np.full(self._machine.threads, self._addresses[operand.name], np.uint64)
        if operand.name in self._shared:
            address += (self._machine.ranks * t.CTA_WINDOW).astype(np.uint64)
        return address

    def _literal(self, type_: LlvmType, value: object) -> Value:
        threads = self._machine.threads
        if value is None:
            return zero(type_, threads)
        if isinstance(value, tuple):
            members = [self.value(member) for member in value]
            if isinstance(type_, t.VectorType):
                return np.stack([m for m in members if isinstance(m, np.ndarray)])
            return tuple(members)
        dtype = t.dtype_of(type_)
        if isinstance(type_, t.IntType):
            number = int(str(int(str(value)) if not isinstance(value, bool) else int(value)))
            return np.full(threads, number % (1 << type_.bits), dtype)
        assert isinstance(value, float)
        with np.errstate(all="ignore"):
            return np.full(threads, value, np.float64).astype(dtype)

    def _expression(self, operand: Expression) -> Value:
        base = self.value(operand.operands[0])
        assert isinstance(base, np.ndarray)
        if operand.opcode != "getelementptr":
            return cast(operand.opcode, operand.operands[0].type, operand.type)(base)
        assert operand.element is not None
        offset, element = 0, operand.element
        for position, index in enumerate(operand.operands[1:]):
            if position:
                assert isinstance(element, t.ArrayType)
                element = element.element
            number = self.value(index)
            assert isinstance(number, np.ndarray)
            offset += int(number.view(t.signed_dtype(number.dtype))[0]) * t.size_bytes(element)
        return base + np.uint64(offset % (1 << 64))


def _undefined(type_: LlvmType, threads: int) -> Value:
    if isinstance(type_, t.StructType):
        return tuple(_undefined(field, threads) for field in type_.fields)
    if isinstance(type_, t.ArrayType):
        return (_undefined(type_.element, threads),) * type_.count
    template = zero(type_, threads)
    assert isinstance(template, np.ndarray)
    if template.dtype.kind == "f" or isinstance(t.element_type(type_), t.FloatType):
        template[...] = np.nan
    elif template.dtype != np.bool_ and template.dtype.kind != "O":
        template[...] = _UNDEFINED_BITS & ((1 << t.width_bits(t.element_type(type_))) - 1)
    return template


__all__ = ["SHARED_WINDOW", "Constants", "static_shared_bytes"]
