"""Shared memory of a program: words at byte offsets from its start."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.codegen.llvm_builder import FunctionBuilder


def shared_pointer(fn: FunctionBuilder, offset: str) -> str:
    """The address of byte `offset` (i32, or a number) of the program's shared memory."""
    return fn.value(f"getelementptr i8, ptr addrspace(3) {fn.shared}, i32 {offset}")


def load_shared(fn: FunctionBuilder, offset: str, words: int, word_bits: int) -> list[str]:
    """`words` integers of `word_bits` at byte `offset`, naturally aligned as a whole."""
    pointer = shared_pointer(fn, offset)
    kind = f"i{word_bits}" if words == 1 else f"<{words} x i{word_bits}>"
    align = words * word_bits // 8
    loaded = fn.value(f"load {kind}, ptr addrspace(3) {pointer}, align {align}")
    if words == 1:
        return [loaded]
    return [fn.value(f"extractelement {kind} {loaded}, i32 {i}") for i in range(words)]


def store_shared(fn: FunctionBuilder, offset: str, words: Sequence[str], word_bits: int) -> None:
    """Write integers of `word_bits` to byte `offset`, naturally aligned as a whole."""
    pointer = shared_pointer(fn, offset)
    align = len(words) * word_bits // 8
    if len(words) == 1:
        fn.emit(f"store i{word_bits} {words[0]}, ptr addrspace(3) {pointer}, align {align}")
        return
    kind, vector = f"<{len(words)} x i{word_bits}>", "poison"
    for position, word in enumerate(words):
        vector = fn.value(f"insertelement {kind} {vector}, i{word_bits} {word}, i32 {position}")
    fn.emit(f"store {kind} {vector}, ptr addrspace(3) {pointer}, align {align}")
