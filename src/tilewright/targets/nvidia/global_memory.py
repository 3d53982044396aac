"""Loads and stores of global memory: LLVM's own where they are plain, else instructions by name."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.codegen.simt.services import GlobalAccess

# Constraint of an integer of a width in inline assembly; there are no 8-bit registers.
_CONSTRAINTS = {8: "h", 16: "h", 32: "r", 64: "l"}
_EVICTION = {"evict_first": ".L1::evict_first", "evict_last": ".L1::evict_last"}


def load_global(
    fn: FunctionBuilder,
    pointer: str,
    words: int,
    word_bits: int,
    predicate: str | None,
    fallback: Sequence[str] | None,
    access: GlobalAccess,
) -> list[str]:
    """Load `words` integers of `word_bits`; see ThreadServices."""
    address = to_global(fn, pointer)
    if predicate is None and not access.cache and not access.evict:
        return _plain_load(fn, address, words, word_bits, access.is_volatile)
    return _asm_load(fn, address, words, word_bits, predicate, fallback, access)


def store_global(
    fn: FunctionBuilder,
    pointer: str,
    words: Sequence[str],
    word_bits: int,
    predicate: str | None,
    access: GlobalAccess,
) -> None:
    """Store integers of `word_bits`; see ThreadServices."""
    address = to_global(fn, pointer)
    if predicate is None and not access.cache and not access.evict:
        _plain_store(fn, address, words, word_bits)
        return
    _asm_store(fn, address, words, word_bits, predicate, access)


def to_global(fn: FunctionBuilder, pointer: str) -> str:
    """A generic pointer as one to global memory."""
    return fn.value(f"addrspacecast ptr {pointer} to ptr addrspace(1)")


def _plain_load(
    fn: FunctionBuilder, address: str, words: int, bits: int, is_volatile: bool
) -> list[str]:
    kind = f"i{bits}" if words == 1 else f"<{words} x i{bits}>"
    keyword = "load volatile" if is_volatile else "load"
    loaded = fn.value(f"{keyword} {kind}, ptr addrspace(1) {address}, align {words * bits // 8}")
    if words == 1:
        return [loaded]
    return [fn.value(f"extractelement {kind} {loaded}, i32 {i}") for i in range(words)]


def _plain_store(fn: FunctionBuilder, address: str, words: Sequence[str], bits: int) -> None:
    count = len(words)
    align = count * bits // 8
    if count == 1:
        fn.emit(f"store i{bits} {words[0]}, ptr addrspace(1) {address}, align {align}")
        return
    kind, vector = f"<{count} x i{bits}>", "poison"
    for position, word in enumerate(words):
        vector = fn.value(f"insertelement {kind} {vector}, i{bits} {word}, i32 {position}")
    fn.emit(f"store {kind} {vector}, ptr addrspace(1) {address}, align {align}")


def _register_type(bits: int) -> str:
    return f"i{max(bits, 16)}"


def _widen(fn: FunctionBuilder, word: str, bits: int) -> str:
    return word if bits > 8 else fn.value(f"zext i8 {word} to i16")


def _vector(count: int) -> str:
    return "" if count == 1 else f".v{count}"


def _group(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"


def _asm_load(
    fn: FunctionBuilder,
    address: str,
    words: int,
    bits: int,
    predicate: str | None,
    fallback: Sequence[str] | None,
    access: GlobalAccess,
) -> list[str]:
    kind, constraint = _register_type(bits), _CONSTRAINTS[bits]
    outputs = [f"${i}" for i in range(words)]
    opcode = "ld.volatile.global" if access.is_volatile else f"ld.global{_load_hint(access)}"
    load = f"{opcode}{_vector(words)}.b{bits} {_group(outputs)}, [${words}];"
    constraints = [f"={constraint}"] * words + ["l"]
    arguments = [f"ptr addrspace(1) {address}"]
    if predicate is not None:
        constraints.append("b")
        arguments.append(f"i1 {predicate}")
        load = f"@${words + 1} {load}"
        initial = fallback if fallback is not None else ["0"] * words
        for position, word in enumerate(initial):
            constraints.append(str(position))
            arguments.append(f"{kind} {_widen(fn, word, bits)}")
    result = kind if words == 1 else "{" + ", ".join([kind] * words) + "}"
    text = f'call {result} asm sideeffect "{load}", "{",".join(constraints)}"'
    loaded = fn.value(f"{text}({', '.join(arguments)})")
    names = [loaded]
    if words > 1:
        names = [fn.value(f"extractvalue {result} {loaded}, {i}") for i in range(words)]
    return names if bits > 8 else [fn.value(f"trunc i16 {name} to i8") for name in names]


def _asm_store(
    fn: FunctionBuilder,
    address: str,
    words: Sequence[str],
    bits: int,
    predicate: str | None,
    access: GlobalAccess,
) -> None:
    count, kind = len(words), _register_type(bits)
    inputs = [f"${i + 1}" for i in range(count)]
    store = f"st.global{_store_hint(access)}{_vector(count)}.b{bits} [$0], {_group(inputs)};"
    constraints = ["l"] + [_CONSTRAINTS[bits]] * count
    arguments = [f"ptr addrspace(1) {address}"]
    arguments += [f"{kind} {_widen(fn, word, bits)}" for word in words]
    if predicate is not None:
        constraints.append("b")
        arguments.append(f"i1 {predicate}")
        store = f"@${count + 1} {store}"
    fn.emit(
        f'call void asm sideeffect "{store}", "{",".join(constraints)}"({", ".join(arguments)})'
    )


def _load_hint(access: GlobalAccess) -> str:
    """The cache operator of a load, or its eviction priority: PTX takes one of the two."""
    if access.cache in ("ca", "cg", "cs", "cv"):
        return f".{access.cache}"
    return _EVICTION.get(access.evict, "")


def _store_hint(access: GlobalAccess) -> str:
    if access.cache in ("wb", "cg", "cs", "wt"):
        return f".{access.cache}"
    return _EVICTION.get(access.evict, "")
