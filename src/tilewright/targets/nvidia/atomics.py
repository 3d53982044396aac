"""Atomic accesses of global memory as PTX, which LLVM would strip of their order and scope.

*Source*: PTX ISA 8.8, 9.7.13 "atom" and "red", 9.7.9.8 "ld", 9.7.9.11 "st"; vectors of floats
are new on sm_90.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.codegen.simt.services import AtomicAccess

_CONSTRAINTS = {8: "h", 16: "h", 32: "r", 64: "l"}
# Adjacent floats that one instruction adds to. Source: PTX ISA 8.8, red.vec.
_WIDEST = {"f32": 4, "f16": 8, "bf16": 8}
_SUFFIXES = {"max": "s", "min": "s", "umax": "u", "umin": "u", "add": "u"}
_NAMES = {"umax": "max", "umin": "min"}


def atomic_width(access: AtomicAccess, adjacent: int) -> int:
    """How many of `adjacent` elements one access takes."""
    return min(adjacent, _WIDEST.get(access.number, 1))


def emit_atomic(
    fn: FunctionBuilder,
    access: AtomicAccess,
    address: str,
    operands: Sequence[Sequence[str]],
    width: int,
    predicate: str | None,
) -> list[str]:
    """One access of `width` adjacent elements at `address`; the old values if it gives them.

    `operands` are integers of the access's width. Where `predicate` is false the old values are 0.
    """
    is_paired = access.bits == 16 and width > 1
    words = [_paired(fn, values) if is_paired else list(values) for values in operands]
    count = width // 2 if is_paired else width
    bits = 32 if is_paired else access.bits
    old = _emit(fn, access, address, words, count, bits, predicate)
    return _unpaired(fn, old) if is_paired else old


def _paired(fn: FunctionBuilder, values: Sequence[str]) -> list[str]:
    """Integers of 16 bits as pairs of 32."""
    pairs: list[str] = []
    for low, high in zip(values[::2], values[1::2], strict=True):
        vector = fn.value(f"insertelement <2 x i16> poison, i16 {low}, i32 0")
        vector = fn.value(f"insertelement <2 x i16> {vector}, i16 {high}, i32 1")
        pairs.append(fn.value(f"bitcast <2 x i16> {vector} to i32"))
    return pairs


def _unpaired(fn: FunctionBuilder, pairs: Sequence[str]) -> list[str]:
    values: list[str] = []
    for pair in pairs:
        vector = fn.value(f"bitcast i32 {pair} to <2 x i16>")
        values += [fn.value(f"extractelement <2 x i16> {vector}, i32 {i}") for i in range(2)]
    return values


def _emit(
    fn: FunctionBuilder,
    access: AtomicAccess,
    address: str,
    operands: Sequence[Sequence[str]],
    count: int,
    bits: int,
    predicate: str | None,
) -> list[str]:
    """The instruction on words of `bits`, in inline assembly."""
    kind, constraint = f"i{max(bits, 16)}", _CONSTRAINTS[bits]
    outputs = count if _gives_old(access) else 0
    inputs = [_widened(fn, word, bits) for words in operands for word in words]
    text = _instruction(access, bits, count, outputs, len(operands))
    constraints = [f"={constraint}"] * outputs + ["l"] + [constraint] * len(inputs)
    arguments = [f"ptr addrspace(1) {address}", *(f"{kind} {word}" for word in inputs)]
    if predicate is not None:
        text = f"@${len(constraints)} {text}"
        constraints.append("b")
        arguments.append(f"i1 {predicate}")
        for place in range(outputs):
            constraints.append(str(place))
            arguments.append(f"{kind} 0")
    constraints.append("~{memory}")
    result = _result_type(kind, outputs)
    call = f'call {result} asm sideeffect "{text}", "{",".join(constraints)}"'
    call = f"{call}({', '.join(arguments)})"
    if not outputs:
        fn.emit(call)
        return []
    found = fn.value(call)
    names = [found]
    if outputs > 1:
        names = [fn.value(f"extractvalue {result} {found}, {place}") for place in range(outputs)]
    return names if bits > 8 else [fn.value(f"trunc i16 {name} to i8") for name in names]


def _gives_old(access: AtomicAccess) -> bool:
    """Whether the instruction reads: what acquires does, also when nobody looks."""
    if access.kind == "store":
        return False
    is_silent = access.kind not in ("load", "cas", "exch") and not access.acquires
    return access.returns or not is_silent


def _result_type(kind: str, outputs: int) -> str:
    if outputs == 0:
        return "void"
    return kind if outputs == 1 else "{" + ", ".join([kind] * outputs) + "}"


def _widened(fn: FunctionBuilder, word: str, bits: int) -> str:
    return word if bits > 8 else fn.value(f"zext i8 {word} to i16")


def _instruction(access: AtomicAccess, bits: int, count: int, outputs: int, operands: int) -> str:
    """The text, with the outputs first, then the address, then the operands one after another."""
    groups = [_group(outputs + 1 + place * count, count) for place in range(operands)]
    old, place = _group(0, outputs), f"[${outputs}]"
    head = f"{access.order}.{access.scope}.global"
    if access.kind == "load":
        return f"ld.{head}.b{bits} {old}, {place};"
    if access.kind == "store":
        return f"st.{head}.b{bits} {place}, {groups[0]};"
    vector = "" if count == 1 else f".v{count}"
    suffix = f"{_NAMES.get(access.kind, access.kind)}{_type(access, bits, vector)}"
    if not outputs:
        return f"red.{head}.{suffix} {', '.join([place, *groups])};"
    return f"atom.{head}.{suffix} {', '.join([old, place, *groups])};"


def _type(access: AtomicAccess, bits: int, vector: str) -> str:
    """The modifiers behind the operation."""
    if access.number in ("f16", "bf16"):
        return f".noftz{vector}.{access.number}{'x2' if bits == 32 else ''}"
    if access.number:
        return f"{vector}.{access.number}"
    letter = _SUFFIXES.get(access.kind, "b")
    return f".{letter}{bits}"


def _group(first: int, count: int) -> str:
    names = [f"${first + place}" for place in range(count)]
    return names[0] if count == 1 else "{" + ", ".join(names) + "}"


def emit_fence(fn: FunctionBuilder, scope: str) -> None:
    """Order this thread's accesses before against those after, as seen from `scope`."""
    fn.emit(f'call void asm sideeffect "fence.acq_rel.{scope};", "~{{memory}}"()')
