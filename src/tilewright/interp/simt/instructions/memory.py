"""Loads, stores, stack memory and atomic operations."""

from __future__ import annotations

import numpy as np

from tilewright.interp.simt import types as t
from tilewright.interp.simt.atomics import Change, change_function
from tilewright.interp.simt.program import Compute, Translated, array_of, rule
from tilewright.interp.simt.syntax import Constant, Instruction, Operand
from tilewright.interp.simt.types import LlvmType
from tilewright.interp.simt.values import Value, from_bytes, to_bytes
from tilewright.ir.op import Array


@rule("load")
def _load(fn: Translated, op: Instruction) -> Compute:
    machine, a = fn.machine, fn.use(op.operands[0])
    read, space, align = machine.read, _space(op.operands[0]), _align(op, op.type)
    type_, site = op.type, op.site
    return lambda: machine.load(space, read(a), type_, align, site)


@rule("store")
def _store(fn: Translated, op: Instruction) -> Compute:
    machine, v, a = fn.machine, fn.use(op.operands[0]), fn.use(op.operands[1])
    values, read, space = machine.values, machine.read, _space(op.operands[1])
    type_ = op.operands[0].type
    align, site = _align(op, type_), op.site

    def compute() -> None:
        value = values[v]
        if not isinstance(value, tuple):
            value = read(v)
        machine.store(space, read(a), value, type_, align, site)

    return compute


def _space(pointer: Operand) -> int:
    assert isinstance(pointer.type, t.PointerType)
    return pointer.type.space


def _align(op: Instruction, type_: LlvmType) -> int:
    return min(op.align or t.alignment_bytes(type_), 16)


@rule("alloca")
def _allocate(fn: Translated, op: Instruction) -> Compute:
    assert op.element is not None
    count = 1
    if op.operands:
        assert isinstance(op.operands[0], Constant)
        count = int(str(op.operands[0].value))
    align = op.align or t.alignment_bytes(op.element)
    offset = fn.machine.allocate_local(count * t.size_bytes(op.element), align)
    address = fn.program.constants.local_address(offset, _result_space(op))
    return lambda: address


def _result_space(op: Instruction) -> int:
    assert isinstance(op.type, t.PointerType)
    return op.type.space


_FLOAT_OPERATIONS = {"fadd": "add", "fsub": "sub", "fmin": "min", "fmax": "max"}
_INTEGER_OPERATIONS = {
    "xchg": "exch",
    "umin": "min",
    "umax": "max",
    "uinc_wrap": "inc",
    "udec_wrap": "dec",
}


@rule("atomicrmw")
def _update(fn: Translated, op: Instruction) -> Compute:
    pointer, operand = op.operands
    name, type_ = op.words[0], operand.type
    is_float = isinstance(t.element_type(type_), t.FloatType)
    if is_float and name != "xchg":
        change = change_function(_FLOAT_OPERATIONS[name], _kind(type_))
    else:
        is_signed = name in ("min", "max")
        operation = _INTEGER_OPERATIONS.get(name, name)
        change = change_function(operation, f"{'s' if is_signed else 'u'}{t.width_bits(type_)}")
    return _atomic(fn, op, pointer, [operand], change, type_)


def _kind(type_: LlvmType) -> str:
    element = t.element_type(type_)
    assert isinstance(element, t.FloatType)
    name = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}[element.name]
    return name + "x2" if isinstance(type_, t.VectorType) else name


def _atomic(
    fn: Translated,
    op: Instruction,
    pointer: Operand,
    operands: list[Operand],
    change: Change,
    type_: LlvmType,
) -> Compute:
    machine, space, site = fn.machine, _space(pointer), op.site
    read, address, width = machine.read, fn.use(pointer), t.size_bytes(type_)
    slots, bits = [fn.use(operand) for operand in operands], f"u{width}"

    def compute() -> Value:
        raw = [to_bytes(read(slot), type_).view(bits)[:, 0] for slot in slots]

        def update(old: Array, threads: Array) -> Array:
            before = np.ascontiguousarray(old).view(bits)[:, 0]
            after = change(before, *(value[threads] for value in raw))
            return np.ascontiguousarray(after)[:, None].view(np.uint8)

        old = machine.update(space, read(address), width, update, site)
        return from_bytes(np.ascontiguousarray(old), type_)

    return compute


@rule("cmpxchg")
def _compare_exchange(fn: Translated, op: Instruction) -> Compute:
    pointer, expected, new = op.operands
    change = change_function("cas", "b32")
    exchange = _atomic(fn, op, pointer, [expected, new], change, expected.type)
    read, slot = fn.machine.read, fn.use(expected)

    def compute() -> Value:
        old = array_of(exchange())
        return old, old == read(slot)

    return compute


@rule("fence")
def _fence(fn: Translated, op: Instruction) -> Compute:
    return lambda: None
