"""The author's own assembly, and the clock.

A thread holds some elements of each tile. `packed_element` of them go into one execution; those
under 32 bits share 32-bit words, the first in the low bits. Which LLVM type a word has is what its
constraint asks for. Source: PTX ISA 9.0, 11.4 (inline assembly in LLVM: NVPTX user guide).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.codegen.llvm_types import llvm_type
from tilewright.codegen.simt.context import SimtContext, element_type
from tilewright.ir.types import storage_bytes
from tilewright.ops.inline.ir import InlineAsmOp
from tilewright.ops.program.ir import ClockOp
from tilewright.support.errors import UnsupportedError
from tilewright.targets.nvidia.rules import NVIDIA_RULES

# By definition: a register of PTX that `r` names.
_WORD_BITS = 32
# The assembler's immediate operand: the value stands in the text.
_IMMEDIATE = "n"
_TYPE_OF_CONSTRAINT = {
    _IMMEDIATE: "i32",
    "r": "i32",
    "l": "i64",
    "h": "i16",
    "f": "float",
    "d": "double",
}
_BITS = {"i32": 32, "i64": 64, "i16": 16, "float": 32, "double": 64}
_ESCAPES = {'"': "\\22", "\n": "\\0A", "\t": "\\09", "\\": "\\5C"}


@NVIDIA_RULES.register(ClockOp)
def _clock(ctx: SimtContext, op: ClockOp) -> None:
    ctx.define(op, ctx.fn.value('call i64 asm sideeffect "mov.u64 $0, %globaltimer;", "=l"()'))


@NVIDIA_RULES.register(InlineAsmOp)
def _assembly(ctx: SimtContext, op: InlineAsmOp) -> None:
    count = op.packed_element.value.data
    columns = [ctx.registers(operand) for operand in op.srcs]
    types = [element_type(operand.type) for operand in op.srcs]
    results = [element_type(result.type) for result in op.outputs]
    total = len(ctx.part_types(op.outputs[0].type))
    made: list[list[str]] = [[] for _ in results]
    for start in range(0, total, count):
        group = [
            _padded(column[start : start + count], count, llvm_type(type_))
            for column, type_ in zip(columns, types, strict=True)
        ]
        for names, new in zip(made, _execute(ctx.fn, op, group, types, results), strict=True):
            names.extend(new)
    for result, names in zip(op.outputs, made, strict=True):
        ctx.define_tile(result, names[:total])


def _padded(names: Sequence[str], count: int, type_: str) -> list[str]:
    """The elements of one execution; a thread with fewer repeats its last."""
    return [*names, *[names[-1]] * (count - len(names))]


def _execute(
    fn: FunctionBuilder,
    op: InlineAsmOp,
    group: Sequence[Sequence[str]],
    types: Sequence[Attribute],
    results: Sequence[Attribute],
) -> list[list[str]]:
    """One execution: the elements of each result."""
    codes = [part.strip() for part in op.constraints.data.split(",") if part.strip()]
    outputs = [_type_of(code) for code in codes if code.startswith(("=", "+"))]
    input_codes = [code for code in codes if not code.startswith(("=", "+", "~"))]
    inputs = [_type_of(code) for code in input_codes]
    words = [w for names, t in zip(group, types, strict=True) for w in _words(fn, names, t)]
    if len(words) != len(inputs):
        raise UnsupportedError(
            f"inline_asm_elementwise(): {op.packed_element.value.data} element(s) of each argument "
            f"fill {len(words)} register(s), but the constraints name {len(inputs)} inputs",
            argument="constraints",
        )
    for code, word in zip(input_codes, words, strict=True):
        _check_immediate(code, word)
    arguments = [
        f"{to} {_cast(fn, name, kind, to)}" for (kind, name), to in zip(words, inputs, strict=True)
    ]
    kind = outputs[0] if len(outputs) == 1 else "{ " + ", ".join(outputs) + " }"
    effect = "" if op.pure.value.data else "sideeffect "
    text = "".join(_ESCAPES.get(c, c) for c in op.asm_string.data)
    head = f'call {kind} asm {effect}"{text}", "{",".join(codes)}"'
    returned = fn.value(f"{head}({', '.join(arguments)})")
    parts = [(kind, returned)]
    if len(outputs) > 1:
        rows = enumerate(outputs)
        parts = [(t, fn.value(f"extractvalue {kind} {returned}, {i}")) for i, t in rows]
    return _elements(fn, parts, results, op.packed_element.value.data)


def _type_of(constraint: str) -> str:
    code = constraint.lstrip("=+&")
    is_immediate_output = code == _IMMEDIATE and constraint != code
    if code not in _TYPE_OF_CONSTRAINT or is_immediate_output:
        raise UnsupportedError(
            f"inline_asm_elementwise(): the constraint {constraint!r} is not known",
            argument="constraints",
            hint=f"they are {', '.join(_TYPE_OF_CONSTRAINT)}; registers of outputs have = in front",
        )
    return _TYPE_OF_CONSTRAINT[code]


def _check_immediate(code: str, word: tuple[str, str]) -> None:
    """Hold what stands in the text to a constant. *Raises*: UnsupportedError."""
    kind, name = word
    if code == _IMMEDIATE and not (kind == "i32" and name.lstrip("-").isdigit()):
        raise UnsupportedError(
            "inline_asm_elementwise(): the constraint 'n' asks for a constant of 32 bits",
            argument="constraints",
            hint="pass a constexpr there, or name a register: r",
        )


def _width(type_: Attribute) -> int:
    return 8 * storage_bytes(type_)


def _words(fn: FunctionBuilder, names: Sequence[str], type_: Attribute) -> list[tuple[str, str]]:
    """The elements of one argument as (type, name) of the words that hold them."""
    kind, bits = llvm_type(type_), _width(type_)
    if bits >= _WORD_BITS:
        return [(kind, name) for name in names]
    per_word = _WORD_BITS // bits
    return [
        ("i32", _pack(fn, names[at : at + per_word], kind, bits))
        for at in range(0, len(names), per_word)
    ]


def _pack(fn: FunctionBuilder, names: Sequence[str], kind: str, bits: int) -> str:
    word = ""
    for position, name in enumerate(names):
        wide = fn.value(f"zext {kind} {name} to i32")
        if position:
            moved = fn.value(f"shl i32 {wide}, {position * bits}")
            wide = fn.value(f"or i32 {word}, {moved}")
        word = wide
    return word


def _cast(fn: FunctionBuilder, name: str, source: str, target: str) -> str:
    """A register under the type that a constraint asks for."""
    if source == target:
        return name
    if source.startswith("ptr"):
        return fn.value(f"ptrtoint {source} {name} to {target}")
    if source.startswith("i") and target.startswith("i"):
        narrowing = int(source[1:]) > int(target[1:])
        return fn.value(f"{'trunc' if narrowing else 'zext'} {source} {name} to {target}")
    return fn.value(f"bitcast {source} {name} to {target}")


def _elements(
    fn: FunctionBuilder,
    parts: Sequence[tuple[str, str]],
    results: Sequence[Attribute],
    count: int,
) -> list[list[str]]:
    """The elements of each result out of the words that the assembly gave."""
    found: list[list[str]] = []
    rest = list(parts)
    for type_ in results:
        kind, bits = llvm_type(type_), _width(type_)
        names: list[str] = []
        while len(names) < count:
            if not rest:
                raise UnsupportedError(
                    f"inline_asm_elementwise(): the results fill more than the {len(parts)} "
                    "output(s) that the constraints name",
                    argument="constraints",
                )
            word = rest.pop(0)
            per_word = max(1, min(_WORD_BITS, _BITS[word[0]]) // bits)
            names += [_element(fn, word, p, kind, bits) for p in range(per_word)]
        found.append(names[:count])
    return found


def _element(
    fn: FunctionBuilder, word: tuple[str, str], position: int, kind: str, bits: int
) -> str:
    source, name = word
    if bits >= min(_WORD_BITS, _BITS[source]):
        return _cast(fn, name, source, kind)
    whole = f"i{_BITS[source]}"
    name = _cast(fn, name, source, whole)
    if position:
        name = fn.value(f"lshr {whole} {name}, {position * bits}")
    return fn.value(f"trunc {whole} {name} to {kind}")
