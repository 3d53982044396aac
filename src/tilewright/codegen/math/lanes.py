"""Lane-wise LLVM instructions written as Python expressions.

A routine of this package is arithmetic on `LaneValue`: `a * b + 1.0` appends one `fmul` and
one `fadd` to the function, for a scalar or for any number of lanes alike. The text stays in
SSA form and without control flow, so the short pipeline has nothing to clean up.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.support.dataclass import dataclass

Number = int | float

# Stored mantissa bits, and the integer type of the same width.
MANTISSA_BITS = {"float": 23, "double": 52}
EXPONENT_BIAS = {"float": 127, "double": 1023}
INTEGER_OF = {"half": "i16", "bfloat": "i16", "float": "i32", "double": "i64"}
_SUFFIX = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}
# The feature that stands for an NVIDIA GPU, where every code is scalar.
NVPTX = "nvptx"
# Whoever writes for no machine has no wide loads, and functions give one number.
WORDS = "words"
_FMA_FEATURES = frozenset({"fma", "avx512f", "neon", NVPTX})


def float_literal(element: str, number: float) -> str:
    """The LLVM literal of `number` rounded to `element` (`float` or `double`)."""
    if element == "float":
        number = struct.unpack("<f", struct.pack("<f", number))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"


def float_bits(element: str, number: float) -> int:
    """The bits of `number` rounded to `element`, as an unsigned integer."""
    code, unsigned = ("<f", "<I") if element == "float" else ("<d", "<Q")
    return struct.unpack(unsigned, struct.pack(code, number))[0]


def is_float(element: str) -> bool:
    """Whether `element` names a floating-point type of LLVM."""
    return element in INTEGER_OF


@dataclass(frozen=True)
class LaneCode:
    """The place where lane-wise instructions go: a function, a lane count, CPU features."""

    fn: FunctionBuilder
    lanes: int | None
    features: frozenset[str]

    def type_of(self, element: str) -> str:
        """The LLVM type of a value of `element`: itself, or a vector of `lanes`."""
        return element if self.lanes is None else f"<{self.lanes} x {element}>"

    def suffix(self, element: str) -> str:
        """The mangled type at the end of an intrinsic's name (`v16f32`)."""
        base = _SUFFIX.get(element, element)
        return base if self.lanes is None else f"v{self.lanes}{base}"

    def wrap(self, element: str, name: str) -> LaneValue:
        """The value called `name` in the function, of type `type_of(element)`."""
        return LaneValue(self, element, name)

    def constant(self, element: str, number: Number) -> LaneValue:
        """`number` in every lane."""
        text = float_literal(element, number) if is_float(element) else str(int(number))
        return self.wrap(element, text if self.lanes is None else f"splat ({element} {text})")

    def with_lanes(self, lanes: int | None) -> LaneCode:
        """The same place for values of another lane count."""
        return LaneCode(self.fn, lanes, self.features)

    def has(self, feature: str) -> bool:
        """Whether the CPU has `feature` (LLVM's name for it)."""
        return feature in self.features

    def has_fused_multiply_add(self) -> bool:
        """Whether a fused multiply-add is one instruction."""
        return not _FMA_FEATURES.isdisjoint(self.features)

    def intrinsic(self, name: str, *operands: LaneValue) -> LaneValue:
        """Call `llvm.<name>`, overloaded on the type of its operands, which it returns."""
        return self.call(f"llvm.{name}.{self.suffix(operands[0].element)}", *operands)

    def call(self, name: str, *operands: LaneValue, result: str = "") -> LaneValue:
        """Call function `name`; it returns `result`, by default the first operand's type."""
        element = result or operands[0].element
        kind = self.type_of(element)
        types = ", ".join(operand.type for operand in operands)
        symbol = self.fn.module.declare(name, kind, types)
        arguments = ", ".join(f"{operand.type} {operand.name}" for operand in operands)
        return self.wrap(element, self.fn.value(f"call {kind} {symbol}({arguments})"))

    def fused(self, a: LaneValue, b: LaneValue | Number, c: LaneValue | Number) -> LaneValue:
        """`a·b + c` rounded once, on every machine (a library call where none is native)."""
        return self.intrinsic("fma", a, a.coerce(b), a.coerce(c))

    def multiply_add(self, a: LaneValue, b: LaneValue | Number, c: LaneValue | Number) -> LaneValue:
        """`a·b + c` rounded once where that is one instruction, twice elsewhere."""
        return self.fused(a, b, c) if self.has_fused_multiply_add() else a * b + c

    def horner(self, x: LaneValue, coefficients: Sequence[float]) -> LaneValue:
        """The polynomial of `x` whose coefficients are given from the constant term up."""
        result: LaneValue | Number = coefficients[-1]
        for coefficient in reversed(coefficients[:-1]):
            result = self.multiply_add(x, result, coefficient)
        return x.coerce(result)

    def two_product(self, a: LaneValue, b: LaneValue | Number) -> tuple[LaneValue, LaneValue]:
        """The product `a·b` as its rounded value and the rounding error, exactly."""
        product = a * b
        return product, self.fused(a, b, -product)

    def plain_quotient(self, a: LaneValue, b: LaneValue) -> LaneValue:
        """`a / b` within a last place, for a `b` whose reciprocal is a normal number."""
        if b.element == "float" or not self.has(NVPTX):
            return a / b
        # The quotient of doubles is a subroutine there; this reciprocal has 20 bits.
        inverse = self.call("llvm.nvvm.rcp.approx.ftz.d", b)
        for _ in range(2):
            inverse = self.fused(inverse, self.fused(-b, inverse, 1.0), inverse)
        quotient = a * inverse
        return self.fused(self.fused(-b, quotient, a), inverse, quotient)

    def split(self, value: LaneValue, width: int) -> list[LaneValue]:
        """`value` as pieces of `width` lanes, which divides the lane count."""
        if self.lanes is None or self.lanes == width:
            return [value]
        kind, piece = self.type_of(value.element), self.with_lanes(width)
        names = []
        for start in range(0, self.lanes, width):
            mask = ", ".join(f"i32 {start + lane}" for lane in range(width))
            names.append(
                self.fn.value(
                    f"shufflevector {kind} {value.name}, {kind} poison, <{width} x i32> <{mask}>"
                )
            )
        return [piece.wrap(value.element, name) for name in names]

    def join(self, pieces: Sequence[LaneValue]) -> LaneValue:
        """The concatenation of `pieces` of equal width, whose lanes add up to `lanes`."""
        level = list(pieces)
        while len(level) & (len(level) - 1):
            level.append(level[-1])
        while len(level) > 1:
            level = [_concatenate(a, b) for a, b in zip(level[::2], level[1::2], strict=True)]
        return self.split_first(level[0])

    def split_first(self, value: LaneValue) -> LaneValue:
        """The first `lanes` lanes of a value that has at least as many."""
        if value.code.lanes == self.lanes:
            return value
        mask = ", ".join(f"i32 {lane}" for lane in range(self.lanes or 1))
        kind = value.type
        name = self.fn.value(
            f"shufflevector {kind} {value.name}, {kind} poison, <{self.lanes} x i32> <{mask}>"
        )
        return self.wrap(value.element, name)


@dataclass(frozen=True)
class LaneValue:
    """One SSA value and its element type; operators append instructions to the function."""

    code: LaneCode
    element: str
    name: str

    @property
    def type(self) -> str:
        """The LLVM type of the value."""
        return self.code.type_of(self.element)

    def coerce(self, other: LaneValue | Number) -> LaneValue:
        """`other` as a value: a number becomes a constant of this element type."""
        return other if isinstance(other, LaneValue) else self.code.constant(self.element, other)

    def _binary(self, floating: str, integer: str, other: LaneValue | Number) -> LaneValue:
        opcode = floating if is_float(self.element) else integer
        right = self.coerce(other).name
        name = self.code.fn.value(f"{opcode} {self.type} {self.name}, {right}")
        return self.code.wrap(self.element, name)

    def __add__(self, other: LaneValue | Number) -> LaneValue:
        return self._binary("fadd", "add", other)

    def __sub__(self, other: LaneValue | Number) -> LaneValue:
        return self._binary("fsub", "sub", other)

    def __rsub__(self, other: Number) -> LaneValue:
        return self.coerce(other) - self

    def __mul__(self, other: LaneValue | Number) -> LaneValue:
        return self._binary("fmul", "mul", other)

    def __truediv__(self, other: LaneValue | Number) -> LaneValue:
        if self.element == "float" and self.code.has(NVPTX):
            # Within 2 ulp; the rounded quotient is a subroutine on that machine.
            return self.code.call("llvm.nvvm.div.full", self, self.coerce(other))
        return self._binary("fdiv", "sdiv", other)

    def __rtruediv__(self, other: Number) -> LaneValue:
        return self.coerce(other) / self

    def __and__(self, other: LaneValue | Number) -> LaneValue:
        return self._binary("and", "and", other)

    def __or__(self, other: LaneValue | Number) -> LaneValue:
        return self._binary("or", "or", other)

    def __xor__(self, other: LaneValue | Number) -> LaneValue:
        return self._binary("xor", "xor", other)

    def __lshift__(self, other: LaneValue | Number) -> LaneValue:
        return self._binary("shl", "shl", other)

    def __rshift__(self, other: LaneValue | Number) -> LaneValue:
        """The logical shift right: the bits are unsigned here."""
        return self._binary("lshr", "lshr", other)

    def arithmetic_shift(self, amount: int) -> LaneValue:
        """The signed shift right by a constant."""
        return self._binary("ashr", "ashr", amount)

    def __neg__(self) -> LaneValue:
        name = self.code.fn.value(f"fneg {self.type} {self.name}")
        return self.code.wrap(self.element, name)

    def compare(self, predicate: str, other: LaneValue | Number) -> LaneValue:
        """The i1 lanes of `fcmp predicate` (or `icmp predicate` for integers)."""
        opcode = "fcmp" if is_float(self.element) else "icmp"
        right = self.coerce(other).name
        name = self.code.fn.value(f"{opcode} {predicate} {self.type} {self.name}, {right}")
        return self.code.wrap("i1", name)

    def select(self, then: LaneValue, otherwise: LaneValue | Number) -> LaneValue:
        """`then` in the lanes where this i1 value is set, `otherwise` elsewhere."""
        right = then.coerce(otherwise)
        name = self.code.fn.value(
            f"select {self.type} {self.name}, {then.type} {then.name}, {right.type} {right.name}"
        )
        return self.code.wrap(then.element, name)

    def convert(self, opcode: str, element: str) -> LaneValue:
        """The result of the LLVM conversion `opcode` to `element` (`fpext`, `zext`, …)."""
        target = self.code.type_of(element)
        return self.code.wrap(
            element, self.code.fn.value(f"{opcode} {self.type} {self.name} to {target}")
        )

    def bits(self) -> LaneValue:
        """The bits of a floating-point value as an integer of the same width."""
        return self.convert("bitcast", INTEGER_OF[self.element])

    def as_float(self, element: str) -> LaneValue:
        """The bits of an integer value as the floating-point type `element`."""
        return self.convert("bitcast", element)

    def absolute(self) -> LaneValue:
        """The magnitude of a floating-point value; a NaN stays a NaN."""
        return self.code.intrinsic("fabs", self)

    def with_sign_of(self, other: LaneValue) -> LaneValue:
        """The magnitude of this value with the sign of `other`."""
        return self.code.intrinsic("copysign", self, other)

    def at_most(self, limit: LaneValue | Number) -> LaneValue:
        """The smaller of the value and `limit`; a NaN stays a NaN (one `minps` on x86)."""
        bound = self.coerce(limit)
        if self.element == "float" and self.code.has(NVPTX):
            return self.code.intrinsic("minimum", self, bound)
        return bound.compare("olt", self).select(bound, self)

    def at_least(self, limit: LaneValue | Number) -> LaneValue:
        """The larger of the value and `limit`; a NaN stays a NaN (one `maxps` on x86)."""
        bound = self.coerce(limit)
        if self.element == "float" and self.code.has(NVPTX):
            return self.code.intrinsic("maximum", self, bound)
        return bound.compare("ogt", self).select(bound, self)


def _concatenate(a: LaneValue, b: LaneValue) -> LaneValue:
    width = a.code.lanes or 1
    mask = ", ".join(f"i32 {lane}" for lane in range(2 * width))
    name = a.code.fn.value(
        f"shufflevector {a.type} {a.name}, {b.type} {b.name}, <{2 * width} x i32> <{mask}>"
    )
    return a.code.with_lanes(2 * width).wrap(a.element, name)
