"""Assertions and printing.

A line that is printed is one call of a function that the host has, which is C's `printf` by
another name for each list of types:

    func.func private @tw_printf_i32_i32_i32_f64(memref<?xi8>, i32, i32, i32, f64)

The first argument is the format, with a zero at its end. Integers come as i64 (indices and the
program's coordinates as i32), floats as f64.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

from tilewright.ir.attributes import integers_of
from tilewright.ir.locations import span_of
from tilewright.ir.types import element_of, f64, is_float, is_pointer, shape_of, width_bits
from tilewright.ops.debug.ir import AssertOp, PrintOp
from tilewright.ops.function import FuncOp
from tilewright.targets.mlir.emitter import RULES, Emitter
from tilewright.targets.mlir.evaluate import Evaluator
from tilewright.targets.mlir.rules.elements import convert
from tilewright.targets.mlir.text import Code, memref_text, type_text

_SIGNED = "%lld"
PRINTF = "tw_printf"
"""What the names of the host's functions that print begin with."""


def assertions(kernel: FuncOp) -> list[AssertOp]:
    """What may fail while a kernel runs, in order."""
    return [op for op in kernel.walk() if isinstance(op, AssertOp)]


def assert_message(op: AssertOp) -> str:
    """What `cf.assert` says where it fails: the line, what was checked, and the author's words."""
    span, _ = span_of(op)
    where = "" if span is None else f"{span.position()}: "
    kind = "" if op.kind is None or op.kind.data == "assert" else f"{op.kind.data}: "
    return f"{where}{kind}{op.message.data}"


@RULES.register(AssertOp)
def _assert(emitter: Emitter, op: AssertOp) -> None:
    """`cf.assert` at every element that the mask lets through, with the line in its message."""
    code, message = emitter.code, json.dumps(assert_message(op), ensure_ascii=False)

    def body(indices: list[str], carried: list[str]) -> Sequence[str]:
        ev, coords = Evaluator(emitter), emitter.row(indices)
        holds = ev.at(op.condition, coords)
        if op.mask is not None:
            is_left_out = code.value(
                f"arith.xori {ev.at(op.mask, coords)}, {code.constant('i1', 1)} : i1"
            )
            holds = code.value(f"arith.ori {holds}, {is_left_out} : i1")
        code.emit(f"cf.assert {holds}, {message}")
        return []

    emitter.nest(shape_of(op.condition.type), body)


@RULES.register(PrintOp)
def _print(emitter: Emitter, op: PrintOp) -> None:
    """A line for each element of each operand, in order; one line where there is no operand."""
    code, prefix = emitter.code, op.prefix.data.replace("%", "%%")
    program = [(name, "i32") for name in emitter.program_ids]
    if not op.args:
        _printf(code, f"pid (%d, %d, %d){prefix}\n", program)
    signs = integers_of(op.is_signed) or (1,) * len(op.args)
    for number, (value, is_signed) in enumerate(zip(op.args, signs, strict=True)):
        which = f"(operand {number}) " if len(op.args) > 1 else ""
        shape = shape_of(value.type)
        where = ", ".join(f"%{len(str(extent - 1))}d" for extent in shape)
        form = _conversion(value, _is_hex(op), bool(is_signed))
        text = f"pid (%d, %d, %d) idx ({where}){prefix}{which}{form}\n"
        emitter.nest(shape, _printing(emitter, value, text, program, form == _SIGNED))


def _printing(
    emitter: Emitter,
    value: SSAValue,
    text: str,
    program: Sequence[tuple[str, str]],
    is_signed: bool,
) -> Callable[[list[str], list[str]], Sequence[str]]:
    """What prints one element."""
    code = emitter.code

    def body(indices: list[str], carried: list[str]) -> Sequence[str]:
        name = Evaluator(emitter).at(value, emitter.row(indices))
        if is_pointer(value.type):
            name = emitter.address(name, value)
        at = [(code.value(f"arith.index_cast {i} : index to i32"), "i32") for i in indices]
        _printf(code, text, [*program, *at, _widened(code, name, value, is_signed)])
        return []

    return body


def _is_hex(op: PrintOp) -> bool:
    """Whether numbers are printed bit for bit."""
    return isinstance(op.hex, IntegerAttr) and bool(op.hex.value.data)


def _conversion(value: SSAValue, is_hexadecimal: bool, is_signed: bool) -> str:
    """What `printf` calls the form of a value; the sign is seen in no other."""
    if is_float(value.type):
        return "%a" if is_hexadecimal else "%f"
    if is_pointer(value.type):
        return "0x%016llx"
    if is_hexadecimal:
        return f"0x%0{max(1, width_bits(value.type) // 4)}llx"
    return _SIGNED if is_signed and width_bits(value.type) > 1 else "%llu"


def _widened(code: Code, name: str, value: SSAValue, is_signed: bool) -> tuple[str, str]:
    """A value as `printf` takes it, and its type."""
    if is_float(value.type):
        return convert(code, element_of(value.type), f64, name), "f64"
    kind = type_text(value.type)
    if kind == "i64":
        return name, kind
    extend = "arith.extsi" if is_signed else "arith.extui"
    return code.value(f"{extend} {name} : {kind} to i64"), "i64"


def _printf(code: Code, text: str, values: Sequence[tuple[str, str]]) -> None:
    """Call the host's function for a format and values of some types."""
    module, kinds = code.module, [kind for _, kind in values]
    symbol = "_".join((PRINTF, *kinds))
    parameters = ", ".join(("memref<?xi8>", *kinds))
    module.functions[symbol] = f"  func.func private @{symbol}({parameters})"
    data = (*text.encode(), 0)
    held = memref_text((len(data),), "i8")
    definition = f" : {held} = dense<[{', '.join(map(str, data))}]>"
    known = [name for name, line in module.globals.items() if line.endswith(definition)]
    name = known[0] if known else f"tw_format_{len(module.globals)}"
    module.globals[name] = f'  memref.global "private" constant @{name}{definition}'
    whole = code.value(f"memref.get_global @{name} : {held}")
    start = code.value(f"memref.cast {whole} : {held} to memref<?xi8>")
    given = ", ".join((start, *(value for value, _ in values)))
    code.emit(f"func.call @{symbol}({given}) : ({parameters}) -> ()")
