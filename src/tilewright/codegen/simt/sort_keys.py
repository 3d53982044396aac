"""Elements as unsigned integers that order like them, with the position they came from.

NaN is the greatest. Zeros of both signs are equal where positions travel along, and the sign is
a bit below the position; without positions -0 sorts before 0.
"""

from __future__ import annotations

from xdsl.ir import Attribute

from tilewright.codegen.simt.combine import Value
from tilewright.codegen.simt.context import SimtContext
from tilewright.codegen.simt.words import from_bits, to_bits
from tilewright.ir import types as ir
from tilewright.schedule.sorts import SortKeys
from tilewright.support.dataclass import dataclass

# The bits of infinity: what is above it, without sign, is NaN.
_INFINITY: dict[Attribute, int] = {
    ir.f16: 0x7C00,
    ir.bf16: 0x7F80,
    ir.f32: 0x7F800000,
    ir.f64: 0x7FF0000000000000,
}


@dataclass(frozen=True)
class KeyCodec:
    """Turns elements into words that are sorted, and back."""

    ctx: SimtContext
    element: Attribute
    keys: SortKeys
    is_descending: bool

    @property
    def _kind(self) -> str:
        return f"i{self.keys.key_bits}"

    @property
    def _sign(self) -> int:
        return -1 << (self.keys.key_bits - 1)

    def encode(self, name: str, position: str) -> Value:
        """The words of an element that stands at `position` (i32)."""
        fn, kind = self.ctx.fn, self._kind
        bits = to_bits(fn, self.element, name)
        is_negative_zero = ""
        if ir.is_float(self.element):
            if self.keys.low_bits:
                is_negative_zero = fn.value(f"icmp eq {kind} {bits}, {self._sign}")
                bits = fn.value(f"select i1 {is_negative_zero}, {kind} 0, {kind} {bits}")
            key = self._float_key(bits)
        else:
            key = fn.value(f"xor {kind} {bits}, {self._sign}")
        if self.is_descending:
            key = fn.value(f"xor {kind} {key}, -1")
        if not self.keys.low_bits:
            return (self._widened(kind, key, self.keys.word_bits[0]),)
        low = fn.value(f"shl i32 {position}, 1")
        if is_negative_zero:
            flag = fn.value(f"zext i1 {is_negative_zero} to i32")
            low = fn.value(f"or disjoint i32 {low}, {flag}")
        return self._joined(key, low)

    def _float_key(self, bits: str) -> str:
        fn, kind = self.ctx.fn, self._kind
        magnitude = fn.value(f"and {kind} {bits}, {~self._sign}")
        is_nan = fn.value(f"icmp ugt {kind} {magnitude}, {_INFINITY[self.element]}")
        negative = fn.value(f"ashr {kind} {bits}, {self.keys.key_bits - 1}")
        change = fn.value(f"or {kind} {negative}, {self._sign}")
        key = fn.value(f"xor {kind} {bits}, {change}")
        return fn.value(f"select i1 {is_nan}, {kind} -1, {kind} {key}")

    def _joined(self, key: str, low: str) -> Value:
        if not self.keys.is_one_word:
            return (key, low)
        fn, (width,) = self.ctx.fn, self.keys.word_bits
        word = f"i{width}"
        high = self._widened(self._kind, key, width)
        high = fn.value(f"shl {word} {high}, {self.keys.low_bits}")
        return (fn.value(f"or disjoint {word} {high}, {self._widened('i32', low, width)}"),)

    def _widened(self, kind: str, name: str, width: int) -> str:
        if kind == f"i{width}":
            return name
        return self.ctx.fn.value(f"zext {kind} {name} to i{width}")

    def decode(self, value: Value) -> tuple[str, str]:
        """The element that words stand for, and its position ("0" without positions)."""
        fn, kind = self.ctx.fn, self._kind
        key, low = self._parts(value)
        if self.is_descending:
            key = fn.value(f"xor {kind} {key}, -1")
        if not ir.is_float(self.element):
            bits = fn.value(f"xor {kind} {key}, {self._sign}")
        else:
            bits = self._float_bits(key)
        position = "0"
        if low:
            position = fn.value(f"lshr i32 {low}, 1")
            if ir.is_float(self.element):
                is_negative_zero = fn.value(f"trunc i32 {low} to i1")
                bits = fn.value(f"select i1 {is_negative_zero}, {kind} {self._sign}, {kind} {bits}")
        return from_bits(fn, self.element, bits), position

    def _float_bits(self, key: str) -> str:
        fn, kind = self.ctx.fn, self._kind
        positive = fn.value(f"ashr {kind} {key}, {self.keys.key_bits - 1}")
        negative = fn.value(f"xor {kind} {positive}, -1")
        change = fn.value(f"or {kind} {negative}, {self._sign}")
        return fn.value(f"xor {kind} {key}, {change}")

    def _parts(self, value: Value) -> tuple[str, str]:
        """The key, and the word with the position ('' without)."""
        if not self.keys.is_one_word:
            return value[0], value[1]
        fn, (width,) = self.ctx.fn, self.keys.word_bits
        word, shift = f"i{width}", self.keys.low_bits
        high = fn.value(f"lshr {word} {value[0]}, {shift}") if shift else value[0]
        key = high if width == self.keys.key_bits else self._narrowed(word, high, self._kind)
        if not shift:
            return key, ""
        low = value[0] if width == 32 else self._narrowed(word, value[0], "i32")
        if shift < 32:
            low = fn.value(f"and i32 {low}, {(1 << shift) - 1}")
        return key, low

    def _narrowed(self, word: str, name: str, kind: str) -> str:
        return self.ctx.fn.value(f"trunc {word} {name} to {kind}")

    def is_less(self, first: Value, second: Value) -> str:
        """Whether the first stands before the second, i1."""
        fn = self.ctx.fn
        high = f"i{self.keys.word_bits[0]}"
        less = fn.value(f"icmp ult {high} {first[0]}, {second[0]}")
        if len(first) == 1:
            return less
        is_equal = fn.value(f"icmp eq {high} {first[0]}, {second[0]}")
        is_before = fn.value(f"icmp ult i32 {first[1]}, {second[1]}")
        tie = fn.value(f"and i1 {is_equal}, {is_before}")
        return fn.value(f"or i1 {less}, {tie}")

    def choose(self, condition: str, first: Value, second: Value) -> Value:
        """The first where the condition holds, else the second."""
        kinds = (f"i{bits}" for bits in self.keys.word_bits)
        return tuple(
            self.ctx.fn.value(f"select i1 {condition}, {kind} {a}, {kind} {b}")
            for kind, a, b in zip(kinds, first, second, strict=True)
        )
