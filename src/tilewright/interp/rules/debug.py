"""Printing, assertions, promises, barriers and breakpoints."""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Operation

from tilewright.interp.access import require_defined
from tilewright.interp.breakpoints import Stop
from tilewright.interp.code import ARRAYS, PlainFunction, Preparation
from tilewright.interp.program import Program
from tilewright.interp.rules.memory import OptionalOperand, integers_of
from tilewright.interp.rules.tables import TILE_RULES
from tilewright.ir.locations import span_of
from tilewright.ir.op import Array
from tilewright.ir.types import is_float, is_pointer, width_bits
from tilewright.ops.debug.ir import AssertOp, AssumeOp, BarrierOp, BreakpointOp, PrintOp
from tilewright.ops.elementwise.reference import unsigned
from tilewright.ops.inline.ir import InlineAsmOp
from tilewright.ops.program.ir import ClockOp
from tilewright.support.errors import AssertionFailed, BrokenPromise, UnsupportedError


@TILE_RULES.plain.register(PrintOp)
def print_values(operation: Operation, preparation: Preparation) -> PlainFunction:
    """One line for each element of each operand."""
    assert isinstance(operation, PrintOp)
    signs = integers_of(operation.is_signed) or (1,) * len(operation.args)
    is_hex = is_set(operation.hex)
    prefix = operation.prefix.data
    slots = preparation.slots(operation.args)
    types = [value.type for value in operation.args]

    def evaluate(program: Program, *operands: Array) -> None:
        pid = ", ".join(map(str, program.coordinates))
        if not operands:
            program.machine.output.write(f"pid ({pid}){prefix}\n")
        for number, operand in enumerate(operands):
            which = f"(operand {number}) " if len(operands) > 1 else ""
            array = np.asarray(operand)
            is_signed = bool(signs[number])
            poison = program.poison[slots[number]]
            lines = []
            for index in np.ndindex(array.shape):
                undefined = poison is not None and np.broadcast_to(poison, array.shape)[index]
                text = (
                    "undefined"
                    if undefined
                    else value_text(array[index], types[number], is_hex, is_signed=is_signed)
                )
                where = index_text(index, array.shape)
                lines.append(f"pid ({pid}) idx ({where}){prefix}{which}{text}\n")
            program.machine.output.write("".join(lines))

    return evaluate


def is_set(flag: Attribute) -> bool:
    """Whether a boolean attribute is true."""
    return isinstance(flag, IntegerAttr) and bool(flag.value.data)


def index_text(index: tuple[int, ...], shape: tuple[int, ...]) -> str:
    """The indices, each as wide as the greatest of its dimension."""
    return ", ".join(
        str(i).rjust(len(str(extent - 1))) for i, extent in zip(index, shape, strict=True)
    )


def exact_text(value: float) -> str:
    """A float as C's `%a` writes it: `0x1.8p+1`.

    *Example*

    >>> exact_text(3.0), exact_text(-0.0), exact_text(float("inf"))
    ('0x1.8p+1', '-0x0p+0', 'inf')
    """
    if not math.isfinite(value):
        return f"{value:f}"
    digits, _, exponent = value.hex().partition("p")
    return f"{digits.rstrip('0').rstrip('.') if '.' in digits else digits}p{exponent}"


def value_text(value: Array, type_: Attribute, is_hex: bool, *, is_signed: bool) -> str:
    """A scalar as device_print shows it."""
    if is_float(type_):
        return exact_text(float(value)) if is_hex else f"{float(value):f}"
    if is_hex or is_pointer(type_):
        bits = np.asarray(value).view(f"u{np.asarray(value).dtype.itemsize}")
        return f"0x{int(bits):0{max(1, width_bits(type_) // 4)}x}"
    return str(int(value if is_signed else unsigned(np.asarray(value))))


@TILE_RULES.plain.register(AssertOp)
def check_assertion(operation: Operation, preparation: Preparation) -> PlainFunction:
    """A fault where the condition fails in a lane that counts."""
    assert isinstance(operation, AssertOp)
    message = operation.message.data
    slot = preparation.slot(operation.condition)
    mask_operand = OptionalOperand(preparation, operation.mask)

    def evaluate(program: Program, condition: Array, *_: Array) -> None:
        mask = mask_operand.value(program)
        require_defined(program, "an asserted condition", program.poison[slot], mask)
        failed = ~np.asarray(condition)
        if mask is not None:
            failed = failed & mask
        if not failed.any():
            return
        index = tuple(int(i[0]) for i in np.nonzero(failed)) if failed.ndim else ()
        at = f" at tile index {index}" if index else ""
        raise program.fault(AssertionFailed, f"assertion failed: {message}{at}")

    return evaluate


@TILE_RULES.plain.register(AssumeOp)
def check_assumption(operation: Operation, preparation: Preparation) -> PlainFunction:
    """A fault where the author's assumption is false."""
    assert isinstance(operation, AssumeOp)
    slot = preparation.slot(operation.condition)

    def evaluate(program: Program, condition: Array) -> None:
        require_defined(program, "an assumed condition", program.poison[slot])
        if not condition:
            raise program.fault(BrokenPromise, "the assumed condition is false")

    return evaluate


@TILE_RULES.plain.register(BarrierOp)
def barrier(_: Operation, __: Preparation) -> PlainFunction:
    """Nothing: the ops of a program run in order."""
    return lambda program: None


@TILE_RULES.plain.register(ClockOp)
def clock(_: Operation, __: Preparation) -> PlainFunction:
    """A clock of its own, so that a run can be repeated: a millisecond passes with each read."""

    def evaluate(program: Program) -> Array:
        program.machine.clock_ns += 1_000_000
        return np.array(program.machine.clock_ns, np.int64)

    return evaluate


@TILE_RULES.plain.register(InlineAsmOp)
def assembly(operation: Operation, _: Preparation) -> PlainFunction:
    """Nothing runs assembly here."""
    span, chain = span_of(operation)

    def evaluate(program: Program, *_: Array) -> None:
        raise UnsupportedError(
            "inline_asm_elementwise(): the interpreter does not know a GPU's assembly",
            hint="write the computation with functions of the language",
            span=span,
            chain=chain,
        )

    return evaluate


@TILE_RULES.plain.register(BreakpointOp)
def stop(operation: Operation, _: Preparation) -> PlainFunction:
    """Call the debugger with the visible variables."""
    assert isinstance(operation, BreakpointOp)
    names, functions = operation.variable_names(), operation.function_names()
    is_step = operation.is_step is not None
    span, chain = span_of(operation)

    def evaluate(program: Program, *values: object) -> None:
        plain = [np.array(v) if isinstance(v, ARRAYS) else v for v in values]
        namespace: dict[str, object] = dict(zip(names, plain, strict=True))
        namespace["program_id"] = program.coordinates
        program.machine.breakpoint_hook(
            Stop(namespace, span, chain, functions, program.coordinates, is_step)
        )

    return evaluate
