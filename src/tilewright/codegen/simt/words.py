"""Elements to machine words and back: memory and shuffles move integers of 8 to 64 bits."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.codegen.llvm_types import llvm_type
from tilewright.ir import types as ir


def storage_bits(element: Attribute) -> int:
    """The bits of one element in memory; i1 takes a byte."""
    return 8 * ir.storage_bytes(element)


def word_bits_of(element: Attribute, count: int) -> int:
    """The width of the words that move `count` adjacent elements: as few words as possible."""
    bits = storage_bits(element)
    return bits if bits >= 32 else min(32, bits * count)


def to_bits(fn: FunctionBuilder, element: Attribute, value: str) -> str:
    """An element as an integer of its storage width."""
    kind, bits = llvm_type(element), storage_bits(element)
    if isinstance(element, ir.PointerType):
        return fn.value(f"ptrtoint ptr {value} to i64")
    if kind in ("float", "double"):
        return fn.value(f"bitcast {kind} {value} to i{bits}")
    if kind == "i1":
        return fn.value(f"zext i1 {value} to i8")
    return value


def from_bits(fn: FunctionBuilder, element: Attribute, value: str) -> str:
    """An element out of the integer that `to_bits` made."""
    kind = llvm_type(element)
    if isinstance(element, ir.PointerType):
        return fn.value(f"inttoptr i64 {value} to ptr")
    if kind in ("float", "double"):
        return fn.value(f"bitcast i{storage_bits(element)} {value} to {kind}")
    if kind == "i1":
        return fn.value(f"trunc i8 {value} to i1")
    return value


def pack(
    fn: FunctionBuilder, element: Attribute, values: Sequence[str], word_bits: int
) -> list[str]:
    """Adjacent elements as words of `word_bits`, the first element in the low bits."""
    bits = storage_bits(element)
    integers = [to_bits(fn, element, value) for value in values]
    count = word_bits // bits
    if count == 1:
        return integers
    vector = f"<{count} x i{bits}>"
    words = []
    for start in range(0, len(integers), count):
        packed = "poison"
        for position, integer in enumerate(integers[start : start + count]):
            packed = fn.value(f"insertelement {vector} {packed}, i{bits} {integer}, i32 {position}")
        words.append(fn.value(f"bitcast {vector} {packed} to i{word_bits}"))
    return words


def unpack(
    fn: FunctionBuilder, element: Attribute, words: Sequence[str], word_bits: int
) -> list[str]:
    """The elements of words that `pack` made."""
    bits = storage_bits(element)
    count = word_bits // bits
    if count == 1:
        return [from_bits(fn, element, word) for word in words]
    vector = f"<{count} x i{bits}>"
    values = []
    for word in words:
        split = fn.value(f"bitcast i{word_bits} {word} to {vector}")
        for position in range(count):
            integer = fn.value(f"extractelement {vector} {split}, i32 {position}")
            values.append(from_bits(fn, element, integer))
    return values


def as_words32(fn: FunctionBuilder, element: Attribute, value: str) -> list[str]:
    """One element as the i32 words that a shuffle moves: one, or two for 64 bits."""
    bits = storage_bits(element)
    integer = to_bits(fn, element, value)
    if bits == 32:
        return [integer]
    if bits < 32:
        return [fn.value(f"zext i{bits} {integer} to i32")]
    high = fn.value(f"lshr i64 {integer}, 32")
    return [fn.value(f"trunc i64 {part} to i32") for part in (integer, high)]


def from_words32(fn: FunctionBuilder, element: Attribute, words: Sequence[str]) -> str:
    """The element that `as_words32` took apart."""
    bits = storage_bits(element)
    if bits == 32:
        return from_bits(fn, element, words[0])
    if bits < 32:
        return from_bits(fn, element, fn.value(f"trunc i32 {words[0]} to i{bits}"))
    low, high = (fn.value(f"zext i32 {word} to i64") for word in words)
    shifted = fn.value(f"shl i64 {high}, 32")
    return from_bits(fn, element, fn.value(f"or disjoint i64 {shifted}, {low}"))
