"""Arithmetic, comparisons, casts, selections and addresses."""

from __future__ import annotations

import numpy as np

from tilewright.interp.simt import types as t
from tilewright.interp.simt.arithmetic import binary, cast, compare
from tilewright.interp.simt.faults import Fault
from tilewright.interp.simt.program import Compute, Translated, rule
from tilewright.interp.simt.syntax import Constant, Instruction, Operand
from tilewright.interp.simt.types import LlvmType
from tilewright.interp.simt.values import Value
from tilewright.support.errors import UndefinedValue


@rule("add", "sub", "mul", "shl", "lshr", "ashr", "and", "or", "xor")
@rule("fadd", "fsub", "fmul", "fdiv", "frem")
def _binary(fn: Translated, op: Instruction) -> Compute:
    operation = binary(op.opcode, op.type)
    read, a, b = fn.machine.read, fn.use(op.operands[0]), fn.use(op.operands[1])
    return lambda: operation(read(a), read(b))


@rule("udiv", "sdiv", "urem", "srem")
def _divide(fn: Translated, op: Instruction) -> Compute:
    operation = binary(op.opcode, op.type)
    machine, a, b = fn.machine, fn.use(op.operands[0]), fn.use(op.operands[1])
    read = machine.read

    def compute() -> Value:
        left, right = read(a), read(b)
        zero = right == 0
        if zero.any() and (machine.mask is None or (zero & machine.mask).any()):
            raise Fault(UndefinedValue, "an integer is divided by zero")
        return operation(left, right)

    return compute


@rule("fneg")
def _negate(fn: Translated, op: Instruction) -> Compute:
    read, a = fn.machine.read, fn.use(op.operands[0])
    return lambda: np.negative(read(a))


@rule("freeze")
def _copy(fn: Translated, op: Instruction) -> Compute:
    values, a = fn.machine.values, fn.use(op.operands[0])
    return lambda: values[a]


@rule("icmp", "fcmp")
def _compare(fn: Translated, op: Instruction) -> Compute:
    operation = compare(op.words[-1], op.operands[0].type)
    read, a, b = fn.machine.read, fn.use(op.operands[0]), fn.use(op.operands[1])
    return lambda: operation(read(a), read(b))


@rule("trunc", "zext", "sext", "fptrunc", "fpext", "fptoui", "fptosi", "uitofp", "sitofp")
@rule("ptrtoint", "bitcast", "addrspacecast")
def _cast(fn: Translated, op: Instruction) -> Compute:
    values, read, a = fn.machine.values, fn.machine.read, fn.use(op.operands[0])
    if op.opcode == "bitcast" and op.operands[0].type == op.type:
        return lambda: values[a]
    operation = cast(op.opcode, op.operands[0].type, op.type)
    return lambda: operation(read(a))


@rule("inttoptr")
def _pointer(fn: Translated, op: Instruction) -> Compute:
    """An address; a real one, as memory holds them, becomes the one that its array has here."""
    memory, read, a = fn.machine.memory, fn.machine.read, fn.use(op.operands[0])
    operation = cast(op.opcode, op.operands[0].type, op.type)
    return lambda: memory.translate(operation(read(a)))


@rule("select")
def _select(fn: Translated, op: Instruction) -> Compute:
    read = fn.machine.read
    c, a, b = (fn.use(operand) for operand in op.operands)
    return lambda: np.where(read(c), read(a), read(b))


@rule("getelementptr")
def _address(fn: Translated, op: Instruction) -> Compute:
    read, base = fn.machine.read, fn.use(op.operands[0])
    assert op.element is not None
    constant, terms = address_terms(op.element, op.operands[1:])
    slots = [(fn.use(operand), stride) for operand, stride in terms]
    offset = np.uint64(constant % (1 << 64))
    if not slots:
        return lambda: read(base) + offset

    def compute() -> Value:
        address = read(base)
        for slot, stride in slots:
            index = read(slot)
            wide = index.view(t.signed_dtype(index.dtype)).astype(np.int64)
            address = address + (wide * stride).view(np.uint64)
        return address + offset if constant else address

    return compute


def address_terms(
    element: LlvmType, indices: tuple[Operand, ...]
) -> tuple[int, list[tuple[Operand, int]]]:
    """The constant part of an address in bytes, and the variable indices with their strides."""
    constant, terms = 0, list[tuple[Operand, int]]()
    for position, index in enumerate(indices):
        if position and isinstance(element, t.StructType):
            assert isinstance(index, Constant)
            number = int(str(index.value or 0))
            constant += t.field_offset_bytes(element, number)
            element = element.fields[number]
            continue
        if position:
            assert isinstance(element, t.ArrayType | t.VectorType)
            element = element.element
        stride = t.size_bytes(element)
        if isinstance(index, Constant):
            constant += int(str(index.value or 0)) * stride
        else:
            terms.append((index, stride))
    return constant, terms
