"""Integers of 8 and 16 bits to floats, past the unit of special functions.

ptxas makes `cvt.rn.f32.s16`, `cvt.rn.f16.s32` and the like one instruction (`I2F`), of which an SM
has 16 a cycle; `cvt.rn.f32.s32` it has four times as many of, and byte permutations, too. So a
narrow integer is spread to 32 bits by `prmt`, whose origin ptxas does not look for, and halves come
from floats in pairs. Bytes become f16 by putting them below the exponent of 1024, which is
subtracted then. All of it is exact up to the one rounding that the conversion has.

Measured on an H200, 2026-11-28, int8 weights times a float32 scale, fp16 product of 16 x 4096 x
4096 in 16 x 64 x 128: 20.0 us past that unit, 25.7 by `I2F`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Operation

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.codegen.rules import DEFAULT_RULES
from tilewright.codegen.simt.context import SimtContext, element_type
from tilewright.codegen.simt.words import pack
from tilewright.ir import types as ir
from tilewright.ir.op import ElementwiseOp
from tilewright.ops.elementwise.ir import SIToFPOp, UIToFPOp
from tilewright.support.errors import InternalError
from tilewright.targets.nvidia.rules import NVIDIA_RULES

# By definition: the bits of a register, and up to where float32 holds every integer.
_WORD_BITS, _EXACT = 32, 1 << 24
# Source: PTX ISA 8.8, prmt: bytes 0 to 3 are those of a, 4 to 7 of b; 8 more spreads a sign.
_SPREAD = {
    (8, True): [0x8880, 0x9991, 0xAAA2, 0xBBB3],
    (8, False): [0x4440, 0x4441, 0x4442, 0x4443],
    (16, True): [0x9910, 0xBB32],
    (16, False): [0x4410, 0x4432],
}
_PAIRS = (0x4140, 0x4342)  # Source: the same.
# By definition: 1024 as f16 has the bits 0x6400 and steps of 1; a signed byte is 128 less than it
# is with its sign flipped.
_BYTES_OF_1024, _SIGNS = 0x64646464, 0x80808080 - (1 << 32)
# By definition: 128 as bf16 has the bits 0x4300 and steps of 1; its next bit makes that 256.
_BYTES_OF_128, _LOW_BITS = 0x43434343, 0x7F7F7F7F
_OFFSETS = {True: "0xH6480", False: "0xH6400"}


@NVIDIA_RULES.register(SIToFPOp, UIToFPOp)
def _integer_to_float(ctx: SimtContext, op: Operation) -> None:
    (source,), (result,) = op.operands, op.results
    width, target = ir.width_bits(source.type), element_type(result.type)
    if not _is_spread(ctx, op, width, target):
        rule = DEFAULT_RULES.find(type(op))
        if rule is None:
            raise InternalError(f"no default rule for {op.name}")
        ctx.emit_elementwise(rule, op)
        return
    names, is_signed = ctx.registers(source), isinstance(op, SIToFPOp)
    distinct = list(dict.fromkeys(names))
    in_words = not isinstance(source.owner, ElementwiseOp)
    has_words = width == 8 and in_words and len(distinct) % 4 == 0
    if has_words and target == ir.f16:
        converted = _halves_of_bytes(ctx.fn, distinct, is_signed)
    elif has_words and target == ir.bf16 and is_signed:
        converted = _bfloats_of_bytes(ctx.fn, distinct)
    else:
        singles = _singles(ctx.fn, width, distinct, is_signed, in_words)
        converted = ctx.target.convert_floats(ctx.fn, ir.f32, target, singles, "rtne")
    by_name = dict(zip(distinct, converted, strict=True))
    ctx.define_tile(result, [by_name[name] for name in names])


def _is_spread(ctx: SimtContext, op: Operation, width: int, target: Attribute) -> bool:
    """Whether a cast is made here: of narrow integers, and to halves by way of float32.

    f16 is infinite where float32 rounds first; bf16 would be rounded twice there.
    """
    if width not in (8, 16, _WORD_BITS) or target not in (ir.f32, ir.f16, ir.bf16):
        return False
    if width < _WORD_BITS or target == ir.f16:
        return True
    least, most = ctx.ranges.of(op.operands[0])
    fewest = -_EXACT if isinstance(op, SIToFPOp) else 0
    return target == ir.bf16 and least >= fewest and most <= _EXACT


def _singles(
    fn: FunctionBuilder, width: int, names: Sequence[str], is_signed: bool, in_words: bool
) -> list[str]:
    """Integers as float32: exact up to 16 bits, and of 32 rounded where f16 is infinite anyway."""
    opcode = "sitofp" if is_signed else "uitofp"
    words = list(names) if width == _WORD_BITS else _spread(fn, width, names, is_signed, in_words)
    return [fn.value(f"{opcode} i32 {word} to float") for word in words]


def _spread(
    fn: FunctionBuilder, width: int, names: Sequence[str], is_signed: bool, in_words: bool
) -> list[str]:
    """Integers of 8 or 16 bits as i32: out of the words that they lie `in`, or one by one."""
    selectors, element = _SPREAD[width, is_signed], {8: ir.i8, 16: ir.i16}[width]
    whole = len(names) - len(names) % len(selectors) if in_words else 0
    spread: list[str] = []
    for word in pack(fn, element, names[:whole], _WORD_BITS):
        spread += [_permuted(fn, word, 0, selector) for selector in selectors]
    for name in names[whole:]:
        word = fn.value(f"zext i{width} {name} to i32")
        spread.append(_permuted(fn, word, 0, selectors[0]))
    return spread


def _halves_of_bytes(fn: FunctionBuilder, names: Sequence[str], is_signed: bool) -> list[str]:
    """Bytes as the bits of f16, two at a time: above 1024, which is subtracted."""
    halves: list[str] = []
    for packed in pack(fn, ir.i8, names, _WORD_BITS):
        word = fn.value(f"xor i32 {packed}, {_SIGNS}") if is_signed else packed
        for selector in _PAIRS:
            raised = _raised(fn, word, _BYTES_OF_1024, selector, "half")
            offset = f"splat (half {_OFFSETS[is_signed]})"
            halves += _bits_of(fn, "half", fn.value(f"fsub <2 x half> {raised}, {offset}"))
    return halves


def _bfloats_of_bytes(fn: FunctionBuilder, names: Sequence[str]) -> list[str]:
    """Signed bytes as the bits of bf16, two at a time: 128 + the low bits, less 128 or 256."""
    found: list[str] = []
    for word in pack(fn, ir.i8, names, _WORD_BITS):
        low, sign = (fn.value(f"and i32 {word}, {mask}") for mask in (_LOW_BITS, _SIGNS))
        for selector in _PAIRS:
            left, right = (
                _raised(fn, part, _BYTES_OF_128, selector, "bfloat") for part in (low, sign)
            )
            found += _bits_of(fn, "bfloat", fn.value(f"fsub <2 x bfloat> {left}, {right}"))
    return found


def _raised(fn: FunctionBuilder, word: str, above: int, selector: int, kind: str) -> str:
    """Two bytes of a word below those of an exponent."""
    pair = _permuted(fn, word, above, selector)
    return fn.value(f"bitcast i32 {pair} to <2 x {kind}>")


def _bits_of(fn: FunctionBuilder, kind: str, pair: str) -> list[str]:
    """Two 16-bit floats as the integers that carry them."""
    bits = fn.value(f"bitcast <2 x {kind}> {pair} to <2 x i16>")
    return [fn.value(f"extractelement <2 x i16> {bits}, i32 {at}") for at in (0, 1)]


def _permuted(fn: FunctionBuilder, low: str, high: int, selector: int) -> str:
    """Four of the bytes of two words: PTX's prmt."""
    symbol = fn.module.declare("llvm.nvvm.prmt", "i32", "i32, i32, i32")
    return fn.value(f"call i32 {symbol}(i32 {low}, i32 {high}, i32 {selector})")
