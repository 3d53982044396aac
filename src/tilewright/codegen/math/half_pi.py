"""Reduction of huge arguments modulo π/2: one scalar function, called for single lanes.

Up to a limit (`trigonometric.py`) a few fused multiply-adds reduce an argument. Beyond it
`x·2/π` needs the bits of 2/π at the place that the exponent of `x` selects
(Payne and Hanek, 1983): `x = m·2^e` with a 53-bit integer `m`, so only the 192 bits of
`2^e·2/π mod 4` matter.
"""

from __future__ import annotations

from tilewright.codegen.llvm_builder import ModuleBuilder

# The first 1280 bits after the binary point of 2/π, most significant word first.
TWO_OVER_PI = (
    0xA2F9836E4E441529,
    0xFC2757D1F534DDC0,
    0xDB6295993C439041,
    0xFE5163ABDEBBC561,
    0xB7246E3A424DD2E0,
    0x06492EEA09D1921C,
    0xFE1DEB1CB129A73E,
    0xE88235F52EBB4484,
    0xE99C7026B45F7E41,
    0x3991D639835339F4,
    0x9C845F8BBDF9283B,
    0x1FF897FFDE05980F,
    0xEF2F118B5A0A6D1F,
    0x6D367ECF27CB09B7,
    0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B,
    0x3D0739F78A5292EA,
    0x6BFB5FB11F8D5D08,
    0x56033046FC7B6BAB,
    0xF0CFBC209AF4361D,
)
_NAME = "tw.reduce_half_pi"
_TABLE = f"{_NAME}.table"
# Bits before the bit of weight 2^1 in a table that starts with 64 zeros, for e = 0.
_WINDOW_START = 62

# No double is so near a multiple of π/2 that the leading 128 bits of its fraction are zero.
# m·W is exact modulo 2^192; its unit is 2^-190 quarter turns. %index is the byte offset of the
# 256 bits in which the window starts, %shift the place of the window in them.
REDUCTION_RESULT = "{ double, double, i64 }"
_TEXT = f"""define internal {REDUCTION_RESULT} @{_NAME}(double %x) noinline nounwind memory(none) {{
entry:
  %bits = bitcast double %x to i64
  %biased.wide = lshr i64 %bits, 52
  %biased = and i64 %biased.wide, 2047
  %finite = icmp ne i64 %biased, 2047
  %large = icmp uge i64 %biased, 1023
  %inside = and i1 %finite, %large
  %exponent = select i1 %inside, i64 %biased, i64 1023
  %start = sub i64 %exponent, {1075 - _WINDOW_START}
  %word = lshr i64 %start, 6
  %shift = and i64 %start, 63
  %index = sub i64 {len(TWO_OVER_PI) + 1 - 4}, %word
  %address = getelementptr i64, ptr @{_TABLE}, i64 %index
  %raw = load i256, ptr %address, align 8
  %shift.wide = zext i64 %shift to i256
  %aligned = shl i256 %raw, %shift.wide
  %top = lshr i256 %aligned, 64
  %window = trunc i256 %top to i192
  %fraction.bits = and i64 %bits, 4503599627370495
  %mantissa = or i64 %fraction.bits, 4503599627370496
  %mantissa.wide = zext i64 %mantissa to i192
  %product = mul i192 %mantissa.wide, %window
  %half = shl i192 1, 189
  %rounded = add i192 %product, %half
  %quadrant.wide = lshr i192 %rounded, 190
  %quadrant = trunc i192 %quadrant.wide to i64
  %turns = shl i192 %quadrant.wide, 190
  %fraction = sub i192 %product, %turns
  %below = icmp slt i192 %fraction, 0
  %opposite = sub i192 0, %fraction
  %magnitude = select i1 %below, i192 %opposite, i192 %fraction
  %leading.wide = lshr i192 %magnitude, 64
  %leading = trunc i192 %leading.wide to i128
  %zeros.narrow = call i128 @llvm.ctlz.i128(i128 %leading, i1 false)
  %zeros.wide = zext i128 %zeros.narrow to i192
  %normal = shl i192 %magnitude, %zeros.wide
  %zeros = trunc i128 %zeros.narrow to i64
  %high.wide = lshr i192 %normal, 139
  %high.bits = trunc i192 %high.wide to i64
  %low.wide = lshr i192 %normal, 86
  %low.long = trunc i192 %low.wide to i64
  %low.bits = and i64 %low.long, 9007199254740991
  %high.integer = sitofp i64 %high.bits to double
  %low.integer = sitofp i64 %low.bits to double
  %scale.high.exponent = sub i64 {1023 - 51}, %zeros
  %scale.high.bits = shl i64 %scale.high.exponent, 52
  %scale.high = bitcast i64 %scale.high.bits to double
  %scale.low.exponent = sub i64 {1023 - 104}, %zeros
  %scale.low.bits = shl i64 %scale.low.exponent, 52
  %scale.low = bitcast i64 %scale.low.bits to double
  %high = fmul double %high.integer, %scale.high
  %low = fmul double %low.integer, %scale.low
  %r = fmul double %high, 0x3FF921FB54442D18
  %r.negative = fneg double %r
  %r.error = call double @llvm.fma.f64(double %high, double 0x3FF921FB54442D18, double %r.negative)
  %cross = fmul double %high, 0x3C91A62633145C07
  %cross.low = fmul double %low, 0x3FF921FB54442D18
  %rest = fadd double %cross, %cross.low
  %r.low = fadd double %r.error, %rest
  %sign.bits = and i64 %bits, -9223372036854775808
  %sign.below = select i1 %below, i64 -9223372036854775808, i64 0
  %sign = xor i64 %sign.bits, %sign.below
  %r.bits = bitcast double %r to i64
  %r.signed = xor i64 %r.bits, %sign
  %r.result = bitcast i64 %r.signed to double
  %r.low.bits = bitcast double %r.low to i64
  %r.low.signed = xor i64 %r.low.bits, %sign
  %r.low.result = bitcast i64 %r.low.signed to double
  %is.negative = icmp slt i64 %bits, 0
  %quadrant.opposite = sub i64 0, %quadrant
  %quadrant.result = select i1 %is.negative, i64 %quadrant.opposite, i64 %quadrant
  %not.a.number = fsub double %x, %x
  %r.final = select i1 %finite, double %r.result, double %not.a.number
  %with.r = insertvalue {REDUCTION_RESULT} poison, double %r.final, 0
  %with.low = insertvalue {REDUCTION_RESULT} %with.r, double %r.low.result, 1
  %all = insertvalue {REDUCTION_RESULT} %with.low, i64 %quadrant.result, 2
  ret {REDUCTION_RESULT} %all
}}"""


def declare_reduction(module: ModuleBuilder) -> str:
    """Define the scalar reduction `double → {r, r_low, quadrant}` in the module.

    *Semantics*: `x = q·π/2 + r + r_low` with `|r| ≤ π/4` and `quadrant ≡ q mod 4`, for every
    finite `|x| ≥ 1`; `r` is NaN for infinities and NaN, meaningless for smaller `|x|`. The
    relative error of `r + r_low` is below 2^-70.
    """
    if not module.has_function(_NAME):
        # In memory the least significant word comes first, so one load gives 256 bits; the
        # zero word is what stands before the binary point.
        words = ", ".join(f"i64 {word}" for word in (*reversed(TWO_OVER_PI), 0))
        size = len(TWO_OVER_PI) + 1
        module.add_global(_TABLE, f"internal constant [{size} x i64] [{words}], align 8")
        module.declare("llvm.ctlz.i128", "i128", "i128, i1")
        module.declare("llvm.fma.f64", "double", "double, double, double")
        module.add_function(_NAME, _TEXT)
    return f"@{_NAME}"
