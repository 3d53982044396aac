"""Scalar LLVM instructions as ops of arith, math, cf and func.

The routines of `codegen/math` and `codegen/convert` write one function's instructions as lines
of text. On scalars these are a few dozen opcodes, each of which a core dialect has; so every
function of the library and every rounding is here what it is on the CPU.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence

from tilewright.codegen.convert import FORMATS, emit_fp_to_fp, emit_int_to_fp
from tilewright.codegen.llvm_builder import FunctionBuilder, ModuleBuilder
from tilewright.codegen.math.emitter import MathEmitter, operand_elements
from tilewright.codegen.math.lanes import WORDS
from tilewright.support.errors import InternalError
from tilewright.targets.mlir.text import INDEX, Code, ModuleText, literal, memref_text

# What the routines may take as one instruction. The executor runs on machines of which no more
# is asked, so fused multiply-adds are those of `math.fma`.
FEATURES = frozenset({"fma", "f16c", WORDS})
_TYPES = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}
LLVM_OF = {short: name for name, short in _TYPES.items()}
_BINARY = {
    "add": "arith.addi", "sub": "arith.subi", "mul": "arith.muli", "and": "arith.andi",
    "or": "arith.ori", "xor": "arith.xori", "shl": "arith.shli", "lshr": "arith.shrui",
    "ashr": "arith.shrsi", "sdiv": "arith.divsi", "udiv": "arith.divui", "srem": "arith.remsi",
    "urem": "arith.remui", "fadd": "arith.addf", "fsub": "arith.subf", "fmul": "arith.mulf",
    "fdiv": "arith.divf", "frem": "arith.remf",
}  # fmt: skip
_CASTS = {
    "zext": "arith.extui", "sext": "arith.extsi", "trunc": "arith.trunci", "fpext": "arith.extf",
    "fptrunc": "arith.truncf", "bitcast": "arith.bitcast", "sitofp": "arith.sitofp",
    "uitofp": "arith.uitofp", "fptosi": "arith.fptosi", "fptoui": "arith.fptoui",
}  # fmt: skip
_INTRINSICS = {
    "fabs": "math.absf", "sqrt": "math.sqrt", "floor": "math.floor", "ceil": "math.ceil",
    "trunc": "math.trunc", "round": "math.round", "roundeven": "math.roundeven",
    "copysign": "math.copysign", "fma": "math.fma", "ctpop": "math.ctpop", "ctlz": "math.ctlz",
    "cttz": "math.cttz", "abs": "math.absi", "smax": "arith.maxsi", "smin": "arith.minsi",
    "umax": "arith.maxui", "umin": "arith.minui", "maximum": "arith.maximumf",
    "minimum": "arith.minimumf", "maxnum": "arith.maxnumf", "minnum": "arith.minnumf",
}  # fmt: skip
# What is a flag of the intrinsic and no operand of the op.
_FLAGGED = frozenset(("ctlz", "cttz", "abs"))
_TOKEN = re.compile(r"[%@]?[\w.#$-]+")


class Translated(FunctionBuilder):
    """A function whose instructions become lines of an MLIR function as they are written."""

    def __init__(self, code: Code) -> None:
        super().__init__(ModuleBuilder(), "")
        self._code = code

    def value(self, text: str) -> str:
        """Append what one instruction is."""
        if text.startswith("phi"):
            raise InternalError("a routine that loops is a function of its own")
        return translate(self._code, text)


def translate(code: Code, text: str) -> str:
    """Append one instruction that gives a value; the name of the value."""
    opcode, _, rest = text.partition(" ")
    if opcode == "call":
        return _call(code, rest)
    words = _TOKEN.findall(rest)
    if opcode in _BINARY:
        kind, left, right = words[-3:]
        mlir = _type(kind)
        operands = f"{operand(code, mlir, left)}, {operand(code, mlir, right)}"
        return code.value(f"{_BINARY[opcode]} {operands} : {mlir}")
    if opcode in _CASTS:
        kind, source, _, target = words
        mlir = _type(kind)
        if mlir == _type(target):
            return operand(code, mlir, source)
        return code.value(
            f"{_CASTS[opcode]} {operand(code, mlir, source)} : {mlir} to {_type(target)}"
        )
    if opcode in ("icmp", "fcmp"):
        predicate, kind, left, right = words[-4:]
        mlir = _type(kind)
        sides = f"{operand(code, mlir, left)}, {operand(code, mlir, right)}"
        return code.value(f"arith.cmp{opcode[0]} {predicate}, {sides} : {mlir}")
    if opcode == "select":
        _, condition, kind, left, _, right = words
        mlir = _type(kind)
        sides = f"{operand(code, mlir, left)}, {operand(code, mlir, right)}"
        return code.value(f"arith.select {operand(code, 'i1', condition)}, {sides} : {mlir}")
    if opcode == "fneg":
        kind, source = words
        return code.value(f"arith.negf {operand(code, _type(kind), source)} : {_type(kind)}")
    if opcode == "freeze":
        return operand(code, _type(words[0]), words[1])
    if opcode == "getelementptr":
        element, _, table, kind, position = words
        return _entry(code, element, table, operand(code, kind, position))
    if opcode == "load":
        zero = code.constant(INDEX, 0)
        return code.value(f"memref.load {words[2]}[{zero}] : {_entry_text(words[0])}")
    raise InternalError(f"the instruction `{text}` has no op in MLIR's core dialects")


def _entry_text(element: str) -> str:
    return f"memref<1x{element}, strided<[1], offset: ?>>"


def _entry(code: Code, element: str, table: str, position: str) -> str:
    """One entry of a table, as a view of it; `position` is an i64."""
    symbol = _mangled(table.removeprefix("@"))
    kind = memref_text((code.module.tables[symbol],), element)
    whole = code.value(f"memref.get_global @{symbol} : {kind}")
    offset = code.value(f"arith.index_cast {position} : i64 to {INDEX}")
    return code.value(
        f"memref.reinterpret_cast {whole} to offset: [{offset}], sizes: [1], strides: [1] : "
        f"{kind} to {_entry_text(element)}"
    )


def operand(code: Code, element: str, text: str) -> str:
    """The name of an operand: a value's own, or that of a constant."""
    if text.startswith("%"):
        return text
    if text in ("true", "false"):
        return code.constant("i1", text == "true")
    if element.startswith("i"):
        return code.constant(element, int(text))
    if text.startswith("0x"):
        return code.constant(element, struct.unpack("<d", struct.pack("<Q", int(text, 16)))[0])
    return code.constant(element, float(text))


def _type(name: str) -> str:
    return _TYPES.get(name, name)


def _call(code: Code, rest: str) -> str:
    head, _, tail = rest.partition("(")
    symbol = head.split()[-1].removeprefix("@")
    result = _type(head.split()[-2])
    words = _TOKEN.findall(tail.rpartition(")")[0])
    kinds = [_type(kind) for kind in words[::2]]
    names = [operand(code, k, w) for k, w in zip(kinds, words[1::2], strict=True)]
    if not symbol.startswith("llvm."):
        return code.value(
            f"func.call @{_mangled(symbol)}({', '.join(names)}) : ({', '.join(kinds)}) -> {result}"
        )
    name = symbol.split(".")[1]
    if name in ("fptosi", "fptoui"):
        return _saturated(code, name, names[0], kinds[0], result)
    if name in _FLAGGED:
        names, kinds = names[:1], kinds[:1]
    if name in _INTRINSICS:
        return code.value(f"{_INTRINSICS[name]} {', '.join(names)} : {result}")
    # Reversed bits, rotations and the like have an op in the LLVM dialect alone.
    types = ", ".join(kinds)
    return code.value(f'"llvm.intr.{name}"({", ".join(names)}) : ({types}) -> {result}')


def _saturated(code: Code, name: str, value: str, kind: str, result: str) -> str:
    """A float as the nearest integer towards zero that `result` has; 0 for NaN."""
    bits = int(result[1:]) - (name == "fptosi")
    least = -(1 << bits) if name == "fptosi" else 0
    low, end = code.constant(kind, float(least)), code.constant(kind, 2.0**bits)
    is_below = code.value(f"arith.cmpf olt, {value}, {low} : {kind}")
    is_above = code.value(f"arith.cmpf oge, {value}, {end} : {kind}")
    # What has no integer gives some number in LLVM: such an element is not converted.
    is_under_end = code.value(f"arith.cmpf olt, {value}, {end} : {kind}")
    is_over_low = code.value(f"arith.cmpf oge, {value}, {low} : {kind}")
    fits = code.value(f"arith.andi {is_under_end}, {is_over_low} : i1")
    safe = code.value(f"arith.select {fits}, {value}, {code.constant(kind, 0.0)} : {kind}")
    whole = code.value(f"arith.{name} {safe} : {kind} to {result}")
    most = code.constant(result, (1 << bits) - 1)
    upper = code.value(f"arith.select {is_above}, {most}, {whole} : {result}")
    return code.value(
        f"arith.select {is_below}, {code.constant(result, least)}, {upper} : {result}"
    )


def _mangled(symbol: str) -> str:
    return symbol.replace(".", "_")


def convert_float(code: Code, source: str, target: str, value: str, rounding: str) -> str:
    """A float of dtype `source` as one of `target`, by the names of `codegen/convert`."""
    return emit_fp_to_fp(Translated(code), source, target, None, value, rounding, FEATURES)


def convert_integer(code: Code, num_bits: int, is_signed: bool, target: str, value: str) -> str:
    """An integer as a float, rounded once."""
    return emit_int_to_fp(Translated(code), num_bits, is_signed, target, None, value, FEATURES)


def call_routine(code: Code, name: str, element: str, operands: Sequence[str]) -> str:
    """A function of `codegen/math` of scalars; `element` is MLIR's type of its form.

    Long ones become functions of the module, of which each is written once.
    """
    fn = Translated(code)
    library = MathEmitter(fn.module, FEATURES)
    result = library.emit(fn, name, LLVM_OF.get(element, element), None, operands)
    for text in fn.module.globals.values():
        _add_table(code.module, text)
    for text in fn.module.functions.values():
        _add_function(code.module, text)
    return result


_TABLE = re.compile(r"@([\w.]+) = internal constant \[(\d+) x (i\d+)\] \[(.*?)\]")


def _add_table(module: ModuleText, text: str) -> None:
    """Add the constant table of integers that is `text` in LLVM's assembly."""
    found = _TABLE.match(text)
    assert found is not None, text
    symbol, size, element, entries = _mangled(found[1]), int(found[2]), found[3], found[4]
    module.tables[symbol] = size
    numbers = ", ".join(literal(element, int(e.split()[1])) for e in entries.split(", "))
    kind = memref_text((size,), element)
    module.globals[symbol] = (
        f'  memref.global "private" constant @{symbol} : {kind} = dense<[{numbers}]>'
    )


def _add_function(module: ModuleText, text: str) -> None:
    """Add the function that is `text` in LLVM's assembly."""
    header, *lines = text.splitlines()
    signature = re.search(r"(\S+) @([\w.]+)\((.*)\)", header)
    assert signature is not None, header
    name = _mangled(signature[2])
    if name in module.functions:
        return
    module.functions[name] = ""  # its place, and the end of a recursion
    words = _TOKEN.findall(signature[3])
    pairs = zip(words[::2], words[1::2], strict=True)
    parameters = ", ".join(f"{value}: {_type(kind)}" for kind, value in pairs)
    result = _type(signature[1])
    code = Code(module)
    _translate_body(code, [line.strip() for line in lines if line.strip() not in ("", "}")])
    module.functions[name] = code.function(f"func.func private @{name}({parameters}) -> {result}")


def _translate_body(code: Code, lines: Sequence[str]) -> None:
    """Blocks with phis as blocks with arguments."""
    blocks = _blocks(lines)
    phis = {label: _phis(body) for label, body in blocks.items()}
    names: dict[str, str] = {}
    for label, body in blocks.items():
        if label != "entry":
            taken = ", ".join(f"{name}: {kind}" for name, kind, _ in phis[label])
            code.lines.append(f"  ^{label}({taken}):" if taken else f"  ^{label}:")
        for line in body:
            _translate_line(code, line, label, phis, names)


def _blocks(lines: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"entry": []}
    label = "entry"
    for line in lines:
        if line.endswith(":"):
            label = line[:-1]
            found[label] = []
        else:
            found[label].append(line)
    return found


_Phi = tuple[str, str, dict[str, str]]
_SOURCE = re.compile(r"\[ (\S+), %(\w+) \]")


def _phis(body: Sequence[str]) -> list[_Phi]:
    """Name, type and value from each block of the phis that a block begins with."""
    found: list[_Phi] = []
    for line in body:
        name, _, rest = line.partition(" = phi ")
        if rest:
            sources = {label: value for value, label in _SOURCE.findall(rest)}
            found.append((name, _type(rest.split(" ")[0]), sources))
    return found


def _translate_line(
    code: Code, line: str, label: str, phis: dict[str, list[_Phi]], names: dict[str, str]
) -> None:
    line = re.sub(r"%v\d+", lambda found: names.get(found[0], found[0]), line)
    name, is_value, instruction = line.partition(" = ")
    if is_value:
        if not instruction.startswith("phi"):
            names[name] = translate(code, instruction)
        return
    words = _TOKEN.findall(line)
    if words[0] == "ret":
        kind = _type(words[1])
        code.emit(f"return {operand(code, kind, words[2])} : {kind}")
        return
    targets = [word[1:] for word in words if word[1:] in phis and word[0] == "%"]
    jumps = [_jump(code, target, label, phis[target], names) for target in targets]
    if len(jumps) == 1:
        code.emit(f"cf.br {jumps[0]}")
    else:
        code.emit(f"cf.cond_br {words[2]}, {jumps[0]}, {jumps[1]}")


def _jump(code: Code, target: str, label: str, phis: list[_Phi], names: dict[str, str]) -> str:
    if not phis:
        return f"^{target}"
    values = [operand(code, k, names.get(s[label], s[label])) for _, k, s in phis]
    return f"^{target}({', '.join(values)} : {', '.join(k for _, k, _ in phis)})"


__all__ = ["FORMATS", "call_routine", "convert_float", "convert_integer", "operand_elements"]
