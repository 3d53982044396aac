"""Conversions between floating-point types, scalar and vector, rounded once and exactly.

LLVM lowers several of these to library calls that no library has, and the x86 instruction for
bfloat16 flushes denormals, so narrow results are made with integer arithmetic unless an
instruction gives the same bits. The 8-bit types are `i8` in LLVM.
"""

from __future__ import annotations

import math

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.codegen.math.lanes import NVPTX, LaneCode, LaneValue
from tilewright.support.dataclass import dataclass

ROUNDINGS = ("rtne", "rtz")


@dataclass(frozen=True)
class NarrowFormat:
    """A floating-point type of 8 or 16 bits: its fields and its special codes.

    *Units*: codes are bit patterns without the sign. `infinity` and `nan` are None where the
    type has none. The types of 8 bits saturate: to nearest, what is beyond `largest` (infinite
    arguments too) becomes `largest`, and so does NaN where there is none.
    """

    element: str
    mantissa_bits: int
    bias: int
    largest: int
    infinity: int | None
    nan: int | None
    is_unsigned_zero: bool = False

    @property
    def num_bits(self) -> int:
        """The width of the type."""
        return 16 if self.element in ("half", "bfloat") else 8

    @property
    def sign_bit(self) -> int:
        """The sign's place in a code."""
        return 1 << (self.num_bits - 1)

    def overflow(self, rounding: str) -> tuple[int, int]:
        """The codes of finite results beyond the largest, and of infinite arguments."""
        infinity = self.largest if self.infinity is None else self.infinity
        if rounding == "rtz":
            return self.largest, infinity
        return (self.largest, self.largest) if self.num_bits == 8 else (infinity, infinity)


# In the FNUZ types the code of negative zero is the only NaN, and zero has no sign. The last one
# is Triton's float8e4b15, whatever MLIR means by the name.
FORMATS: dict[str, NarrowFormat] = {
    "f16": NarrowFormat("half", 10, 15, 0x7BFF, 0x7C00, 0x7E00),
    "bf16": NarrowFormat("bfloat", 7, 127, 0x7F7F, 0x7F80, 0x7FC0),
    "f8E5M2": NarrowFormat("i8", 2, 15, 0x7B, 0x7C, 0x7E),
    "f8E4M3FN": NarrowFormat("i8", 3, 7, 0x7E, None, 0x7F),
    "f8E5M2FNUZ": NarrowFormat("i8", 2, 16, 0x7F, None, 0x80, is_unsigned_zero=True),
    "f8E4M3FNUZ": NarrowFormat("i8", 3, 8, 0x7F, None, 0x80, is_unsigned_zero=True),
    "f8E4M3B11FNUZ": NarrowFormat("i8", 3, 15, 0x7F, None, None),
}
_WIDE = {"f32": "float", "f64": "double"}
_SINGLE_MANTISSA, _SINGLE_BIAS = 23, 127
_MAGNITUDE, _SIGN, _INFINITY = 0x7FFFFFFF, 0x80000000, 0x7F800000
# By definition: the floats of a 512-bit register, and `vfpclassps`'s bit for denormal numbers.
_VECTOR_LANES, _DENORMAL_CLASS = 16, 0x20


def llvm_element(dtype: str) -> str:
    """The LLVM type that holds a value of `dtype`."""
    return _WIDE[dtype] if dtype in _WIDE else FORMATS[dtype].element


def emit_fp_to_fp(
    fn: FunctionBuilder,
    source: str,
    target: str,
    lanes: int | None,
    value: str,
    rounding: str = "rtne",
    features: frozenset[str] = frozenset(),
    flush_denormals: bool = False,
) -> str:
    """Emit the conversion of `value` from dtype `source` to dtype `target`; return the result.

    *Rounding*: once, to nearest even (`rtne`) or toward zero (`rtz`), denormals included.
    *NaN*: stays NaN with another payload. *Overflow*: infinity; types of 8 bits saturate; under
    `rtz` finite arguments give the largest number. *Dtypes*: `f64 f32 f16 bf16` and the keys of
    `FORMATS`. `flush_denormals` allows the bfloat16 instruction of x86, which
    takes float denormals for zero.
    """
    assert rounding in ROUNDINGS, rounding
    code = LaneCode(fn, lanes, features)
    operand = code.wrap(llvm_element(source), value)
    if source == target:
        return value
    if target == "f64":
        return to_single(code, source, operand).convert("fpext", "double").name
    if source == "f64":
        return _from_double(code, target, operand, rounding).name
    single = to_single(code, source, operand)
    if target == "f32":
        return single.name
    if target == "bf16" and flush_denormals and rounding == "rtne" and code.has("avx512bf16"):
        return single.convert("fptrunc", "bfloat").name
    return from_single(code, target, single, rounding).name


def to_single(code: LaneCode, source: str, value: LaneValue) -> LaneValue:
    """The value of `source`, any type but f64, as `float`: exact."""
    if source == "f32":
        return value
    if source == "f16" and _has_half_conversion(code):
        return value.convert("fpext", "float")
    form = FORMATS[source]
    bits = value if form.element == "i8" else value.bits()
    wide = bits.convert("zext", "i32")
    if source == "bf16":
        return (wide << 16).as_float("float")
    if source == "f8E5M2" and _has_half_conversion(code):
        # The upper byte of a half.
        return (bits.convert("zext", "i16") << 8).as_float("half").convert("fpext", "float")
    return _widen_by_product(form, wide)


def _widen_by_product(form: NarrowFormat, wide: LaneValue) -> LaneValue:
    """The float of a code: the fields moved into place, then one exact product fixes the bias."""
    magnitude = wide & (form.sign_bit - 1)
    moved = (magnitude << (_SINGLE_MANTISSA - form.mantissa_bits)).as_float("float")
    number = (moved * 2.0 ** (_SINGLE_BIAS - form.bias)).bits()
    sign = (wide & form.sign_bit) << (32 - form.num_bits)
    if form.is_unsigned_zero:
        result = (number | sign).as_float("float")
        return wide.compare("eq", form.sign_bit).select(result.coerce(math.nan), result)
    if form.infinity is not None:
        special = (magnitude << (_SINGLE_MANTISSA - form.mantissa_bits)) | _INFINITY
        number = magnitude.compare("ugt", form.largest).select(special, number)
    elif form.nan is not None:
        number = magnitude.compare("ugt", form.largest).select(
            number.coerce(_INFINITY | 1 << 22), number
        )
    return (number | sign).as_float("float")


def from_single(code: LaneCode, target: str, value: LaneValue, rounding: str) -> LaneValue:
    """The `float` value rounded to `target`, a narrow type."""
    form = FORMATS[target]
    if target == "f16" and rounding == "rtne" and _has_half_conversion(code):
        return value.convert("fptrunc", "half")
    if target == "bf16":
        return _to_bfloat(value, rounding)
    bits = value.bits()
    magnitude = bits & _MAGNITUDE
    number = _round_magnitude(form, magnitude, rounding)
    number = _saturate(form, magnitude, number, rounding)
    sign = (bits >> (32 - form.num_bits)) & form.sign_bit
    is_nan = magnitude.compare("ugt", _INFINITY)
    if form.nan is not None:
        number = is_nan.select(number.coerce(form.nan), number)
    else:  # the largest number; the sign of a NaN means nothing
        sign = is_nan.select(sign.coerce(0), sign)
    if form.is_unsigned_zero:
        # No sign beside zero and NaN: both have no bits below the sign's.
        has_sign = (number & (form.sign_bit - 1)).compare("ne", 0)
        sign = has_sign.select(sign, 0)
    narrow = (number | sign).convert("trunc", f"i{form.num_bits}")
    return narrow.as_float(form.element) if form.num_bits == 16 else narrow


def _round_magnitude(form: NarrowFormat, magnitude: LaneValue, rounding: str) -> LaneValue:
    """The code of a nonnegative number, as if the exponent had no upper end."""
    shift = _SINGLE_MANTISSA - form.mantissa_bits
    rebased = magnitude - ((_SINGLE_BIAS - form.bias) << _SINGLE_MANTISSA)
    single = magnitude.as_float("float")
    # Denormals: adding a power of two whose last place is the type's smallest number rounds to
    # it; the sum's low bits are the code. For `rtz` a multiple below the argument is wanted.
    magic = 2.0 ** (_SINGLE_MANTISSA + 1 - form.bias - form.mantissa_bits)
    total = single + magic
    denormal = total.bits() - total.coerce(magic).bits()
    if rounding == "rtne":
        normal = (rebased + _half_below(magnitude, shift)) >> shift
    else:
        normal = rebased >> shift
        is_above = (total - magic).compare("ogt", single)
        denormal = denormal - is_above.convert("zext", "i32")
    smallest_normal = (_SINGLE_BIAS - form.bias + 1) << _SINGLE_MANTISSA
    return magnitude.compare("ult", smallest_normal).select(denormal, normal)


def _half_below(bits: LaneValue, shift: int) -> LaneValue:
    """What to add before dropping `shift` bits so that ties go to even."""
    return ((bits >> shift) & 1) + ((1 << (shift - 1)) - 1)


def _saturate(
    form: NarrowFormat, magnitude: LaneValue, number: LaneValue, rounding: str
) -> LaneValue:
    """`number`, or what stands for results beyond the largest."""
    is_beyond = number.compare("ugt", form.largest)
    # Large exponents wrap around in no format: the code stays below 2^31 as unsigned.
    finite, infinite = form.overflow(rounding)
    overflow = number.coerce(finite)
    if finite != infinite:
        overflow = magnitude.compare("uge", _INFINITY).select(number.coerce(infinite), overflow)
    return is_beyond.select(overflow, number)


def _to_bfloat(value: LaneValue, rounding: str) -> LaneValue:
    """The upper half of a float, rounded; a NaN keeps its quiet bit."""
    code = value.code
    is_wide = code.lanes is not None and code.lanes % _VECTOR_LANES == 0
    if rounding == "rtne" and is_wide and code.has("avx512bf16") and code.has("avx512dq"):
        return _by_instruction(value)
    return _by_integers(value, rounding)


def _by_instruction(value: LaneValue) -> LaneValue:
    """`_to_bfloat` by the instruction, or by integers where a lane is denormal.

    The instruction takes denormals for zero. Two operations a vector in place of nine.
    """
    fn, kind = value.code.fn, f"<{value.code.lanes} x bfloat>"
    plain, careful, done = fn.new_label(), fn.new_label(), fn.new_label()
    fn.branch_if(_has_denormal(value), careful, plain)
    fn.place(plain)
    fast = value.convert("fptrunc", "bfloat").name
    fn.branch(done)
    fn.place(careful)
    slow = _by_integers(value, "rtne").name
    fn.branch(done)
    fn.place(done)
    result = fn.value(f"phi {kind} [ {fast}, %{plain} ], [ {slow}, %{careful} ]")
    return value.code.wrap("bfloat", result)


def _has_denormal(value: LaneValue) -> str:
    """An i1: some lane is a denormal number. Whole vectors of 512 bits."""
    fn, kind = value.code.fn, f"<{_VECTOR_LANES} x float>"
    mask = f"<{_VECTOR_LANES} x i1>"
    symbol = fn.module.declare("llvm.x86.avx512.fpclass.ps.512", mask, f"{kind}, i32")
    found = [
        fn.value(f"call {mask} {symbol}({kind} {part.name}, i32 {_DENORMAL_CLASS})")
        for part in value.code.split(value, _VECTOR_LANES)
    ]
    total = found[0]
    for lanes in found[1:]:
        total = fn.value(f"or {mask} {total}, {lanes}")
    bits = fn.value(f"bitcast {mask} {total} to i{_VECTOR_LANES}")
    return fn.value(f"icmp ne i{_VECTOR_LANES} {bits}, 0")


def _by_integers(value: LaneValue, rounding: str) -> LaneValue:
    bits = value.bits()
    rounded = bits if rounding == "rtz" else bits + _half_below(bits, 16)
    is_nan = value.compare("uno", value)
    result = is_nan.select(bits | (1 << 22), rounded)
    return (result >> 16).convert("trunc", "i16").as_float("bfloat")


def _from_double(code: LaneCode, target: str, value: LaneValue, rounding: str) -> LaneValue:
    """The `double` value rounded once to `target`, through a float rounded to odd."""
    nearest = value.convert("fptrunc", "float")
    if target == "f32" and rounding == "rtne":
        return nearest
    back = nearest.convert("fpext", "double")
    is_above = back.absolute().compare("ogt", value.absolute())
    toward_zero = nearest.bits() - is_above.convert("zext", "i32")
    if rounding == "rtz":
        single = toward_zero.as_float("float")
        return single if target == "f32" else from_single(code, target, single, rounding)
    # Round to odd: an inexact result ends in a one, which no tie of a narrower type does.
    is_inexact = back.compare("one", value)
    odd = toward_zero | is_inexact.convert("zext", "i32")
    return from_single(code, target, odd.as_float("float"), rounding)


def _has_half_conversion(code: LaneCode) -> bool:
    """Whether half and float convert into each other by an instruction."""
    return any(code.has(name) for name in ("f16c", "avx512f", "neon", "fullfp16", NVPTX))


def emit_int_to_fp(
    fn: FunctionBuilder,
    num_bits: int,
    is_signed: bool,
    target: str,
    lanes: int | None,
    value: str,
    features: frozenset[str] = frozenset(),
) -> str:
    """Emit the conversion of an integer of `num_bits` to dtype `target`; return the result.

    *Rounding*: once, to nearest even; beyond the largest number as `emit_fp_to_fp`.
    """
    code = LaneCode(fn, lanes, features)
    operand = code.wrap(f"i{num_bits}", value)
    opcode = "sitofp" if is_signed else "uitofp"
    if target in _WIDE:
        return operand.convert(opcode, _WIDE[target]).name
    if num_bits <= 16:
        return from_single(code, target, operand.convert(opcode, "float"), "rtne").name
    if num_bits == 64:
        operand = _shorten(operand, is_signed)
    return _from_double(code, target, operand.convert(opcode, "double"), "rtne").name


def _shorten(value: LaneValue, is_signed: bool) -> LaneValue:
    """A 64-bit integer rounded to odd where a double cannot hold it, unchanged elsewhere."""
    moved = value + (1 << 53) if is_signed else value
    is_long = (moved >> (54 if is_signed else 53)).compare("ne", 0)
    lost = (1 << 11) - 1
    odd = (value | ((value & lost) + lost)) & ~lost
    return is_long.select(odd, value)
