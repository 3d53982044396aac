"""Elementwise arithmetic, comparison, selection, casts and math.

One table row is one op: its name and its reference semantics over NumPy arrays. Integers are
signless in the IR; reference functions see them as signed arrays, and the ops that mean
unsigned reinterpret.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from tilewright.ir.attributes import FastMathAttr
from tilewright.ir.op import Array, ElementwiseOp

Reference = Callable[..., Array]


def unsigned(array: Array) -> Array:
    """The same bits as unsigned integers (i1 stays as it is)."""
    return array if array.dtype == np.bool_ else array.view(f"u{array.dtype.itemsize}")


def _as(result: Array, like: Array) -> Array:
    return result.view(like.dtype)


def _on_unsigned(function: Reference) -> Reference:
    def apply(lhs: Array, rhs: Array) -> Array:
        return _as(np.asarray(function(unsigned(lhs), unsigned(rhs))), lhs)

    return apply


def _nonzero(divisor: Array) -> Array:
    """The divisor with 1 for 0, whose quotient is undefined."""
    return np.where(divisor == 0, divisor.dtype.type(1), divisor)


def _truncating_remainder(lhs: Array, rhs: Array) -> Array:
    return np.fmod(lhs, _nonzero(rhs))


def _truncating_division(lhs: Array, rhs: Array) -> Array:
    divisor = _nonzero(rhs)
    # The dividend less its remainder divides exactly, so rounding does not matter.
    return (lhs - np.fmod(lhs, divisor)) // divisor


def _unsigned_division(lhs: Array, rhs: Array) -> Array:
    return lhs // _nonzero(rhs)


def _unsigned_remainder(lhs: Array, rhs: Array) -> Array:
    return lhs % _nonzero(rhs)


def _mask_shift(shift: Array) -> Array:
    return shift & (shift.dtype.itemsize * 8 - 1)


def _high_product(lhs: Array, rhs: Array) -> Array:
    bits = lhs.dtype.itemsize * 8
    if bits < 64:
        return ((lhs.astype(np.uint64) * rhs.astype(np.uint64)) >> np.uint64(bits)).astype(
            lhs.dtype
        )
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    a, b, c, d = lhs >> half, lhs & low, rhs >> half, rhs & low
    middle = a * d + ((b * d) >> half)
    carry = ((middle & low) + b * c) >> half
    return a * c + (middle >> half) + carry


def _scalarwise(function: Callable[[float], float]) -> Reference:
    vectorised = np.vectorize(function, otypes=[np.float64])

    def apply(src: Array) -> Array:
        return vectorised(src.astype(np.float64)).astype(src.dtype)

    return apply


def _in_double(function: Reference) -> Reference:
    """Evaluate a float32 function in float64 and round once: the best NumPy can do."""

    def apply(*operands: Array) -> Array:
        if operands[0].dtype != np.float32:
            return function(*operands)
        return function(*(o.astype(np.float64) for o in operands)).astype(np.float32)

    return apply


def _round_half_away(src: Array) -> Array:
    whole = np.trunc(src)
    # Not floor(|x| + 0.5): that sum rounds up for the float below one half.
    return np.copysign(whole + np.where(np.abs(src - whole) >= 0.5, np.sign(src), 0), src)


def _count_bits(src: Array) -> Array:
    return np.bitwise_count(unsigned(src)).astype(src.dtype)


def _count_leading(src: Array) -> Array:
    bits = src.dtype.itemsize * 8
    smeared = unsigned(src)
    for shift in (1, 2, 4, 8, 16, 32):
        if shift < bits:
            smeared = smeared | (smeared >> smeared.dtype.type(shift))
    return (bits - np.bitwise_count(smeared).astype(np.int64)).astype(src.dtype)


def _count_trailing(src: Array) -> Array:
    bits = unsigned(src)
    return np.bitwise_count(~bits & (bits - bits.dtype.type(1))).astype(src.dtype)


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded sum and its error, which is exact (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded product of doubles and its error (Veltkamp and Dekker)."""

    def split(x: Array) -> tuple[Array, Array]:
        scaled = x * 134217729.0  # 2^27 + 1
        high = scaled - (scaled - x)
        return high, x - high

    product = a * b
    (a_high, a_low), (b_high, b_low) = split(a), split(b)
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def _odd_sum(a: Array, b: Array) -> Array:
    """a + b in doubles, with an odd last bit where it is inexact, so a later rounding is right."""
    total, error = _two_sum(a, b)
    total = np.asarray(total)
    bits = total.view(np.int64)
    step = np.where((error > 0) == (total > 0), 1, -1)
    inexact = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    return np.where(inexact, bits + step, bits).view(np.float64)


def _fused_multiply_add(a: Array, b: Array, c: Array) -> Array:
    """a * b + c with one rounding to the operands' dtype (Boldo and Melquiond, 2008)."""
    x, y, z = (np.asarray(o).astype(np.float64) for o in (a, b, c))
    if a.dtype != np.float64:
        return _odd_sum(x * y, z).astype(a.dtype)  # the product of two floats is exact
    high, low = _two_product(x, y)
    upper, lower = _two_sum(z, low)
    top, rest = _two_sum(high, upper)
    fused = top + _odd_sum(rest, lower)
    return np.where(np.isfinite(fused), fused, x * y + z)


class BinaryOp(ElementwiseOp):
    """result = f(lhs, rhs), all of one type."""

    lhs = operand_def()
    rhs = operand_def()
    result = result_def()
    traits = traits_def(Pure())


class BinaryFloatOp(ElementwiseOp):
    """result = f(lhs, rhs) on floats, with the fast-math flags that may change bits."""

    lhs = operand_def()
    rhs = operand_def()
    fastmath = opt_prop_def(FastMathAttr)
    result = result_def()
    traits = traits_def(Pure())


class UnaryOp(ElementwiseOp):
    """result = f(operand), of one type."""

    operand = operand_def()
    fastmath = opt_prop_def(FastMathAttr)
    result = result_def()
    traits = traits_def(Pure())


class CastOp(ElementwiseOp):
    """A conversion of every element to the result's element type."""

    src = operand_def()
    result = result_def()
    traits = traits_def(Pure())


def _define(base: type[ElementwiseOp], class_name: str, name: str, doc: str, function: Reference):
    def reference(self: ElementwiseOp, *operands: Array) -> Array:
        return function(*operands)

    namespace = {
        "name": name,
        "__doc__": doc,
        "reference": reference,
        "__module__": __name__,
        "__qualname__": class_name,
    }
    return irdl_op_definition(type(class_name, (base,), namespace))


# class name, op name, meaning, reference
_INTEGER_BINARY: tuple[tuple[str, str, str, Reference], ...] = (
    ("AddIOp", "arith.addi", "Wrapping sum.", np.add),
    ("SubIOp", "arith.subi", "Wrapping difference.", np.subtract),
    ("MulIOp", "arith.muli", "Wrapping product.", np.multiply),
    ("DivSIOp", "arith.divsi", "Signed quotient towards zero.", _truncating_division),
    ("DivUIOp", "arith.divui", "Unsigned quotient.", _on_unsigned(_unsigned_division)),
    ("RemSIOp", "arith.remsi", "Remainder with the dividend's sign.", _truncating_remainder),
    ("RemUIOp", "arith.remui", "Unsigned remainder.", _on_unsigned(_unsigned_remainder)),
    ("AndIOp", "arith.andi", "Bitwise and.", np.bitwise_and),
    ("OrIOp", "arith.ori", "Bitwise or.", np.bitwise_or),
    ("XOrIOp", "arith.xori", "Bitwise exclusive or.", np.bitwise_xor),
    ("ShLIOp", "arith.shli", "Left shift.", lambda a, b: np.left_shift(a, _mask_shift(b))),
    (
        "ShRSIOp",
        "arith.shrsi",
        "Arithmetic right shift.",
        lambda a, b: np.right_shift(a, _mask_shift(b)),
    ),
    (
        "ShRUIOp",
        "arith.shrui",
        "Logical right shift.",
        _on_unsigned(lambda a, b: np.right_shift(a, _mask_shift(b))),
    ),
    ("MaxSIOp", "arith.maxsi", "Signed maximum.", np.maximum),
    ("MaxUIOp", "arith.maxui", "Unsigned maximum.", _on_unsigned(np.maximum)),
    ("MinSIOp", "arith.minsi", "Signed minimum.", np.minimum),
    ("MinUIOp", "arith.minui", "Unsigned minimum.", _on_unsigned(np.minimum)),
    ("MulhiUIOp", "tt.mulhiui", "High half of the unsigned product.", _on_unsigned(_high_product)),
)
_FLOAT_BINARY: tuple[tuple[str, str, str, Reference], ...] = (
    ("AddFOp", "arith.addf", "Sum.", np.add),
    ("SubFOp", "arith.subf", "Difference.", np.subtract),
    ("MulFOp", "arith.mulf", "Product.", np.multiply),
    ("DivFOp", "arith.divf", "Quotient, correctly rounded.", np.divide),
    ("RemFOp", "arith.remf", "Remainder of C's fmod.", np.fmod),
    ("MaximumFOp", "arith.maximumf", "Maximum; NaN if either is.", np.maximum),
    ("MinimumFOp", "arith.minimumf", "Minimum; NaN if either is.", np.minimum),
    ("MaxNumFOp", "arith.maxnumf", "Maximum; the other operand if one is NaN.", np.fmax),
    ("MinNumFOp", "arith.minnumf", "Minimum; the other operand if one is NaN.", np.fmin),
    ("PreciseDivFOp", "tt.precise_divf", "Quotient rounded to nearest even.", np.divide),
    ("PowFOp", "math.powf", "lhs to the power rhs.", _in_double(np.power)),
    ("Atan2Op", "math.atan2", "Angle of the point (rhs, lhs).", _in_double(np.arctan2)),
    ("CopySignOp", "math.copysign", "Magnitude of lhs, sign of rhs.", np.copysign),
)
_UNARY: tuple[tuple[str, str, str, Reference], ...] = (
    ("NegFOp", "arith.negf", "Sign flipped.", np.negative),
    ("AbsFOp", "math.absf", "Magnitude of a float.", np.abs),
    ("AbsIOp", "math.absi", "Magnitude of a signed integer (wraps).", np.abs),
    ("CeilOp", "math.ceil", "Least integral value not below.", np.ceil),
    ("FloorOp", "math.floor", "Greatest integral value not above.", np.floor),
    ("RoundOp", "math.round", "Nearest integral value, halves away from zero.", _round_half_away),
    ("RoundEvenOp", "math.roundeven", "Nearest integral value, halves to even.", np.rint),
    ("TruncOp", "math.trunc", "Integral value towards zero.", np.trunc),
    ("ExpOp", "math.exp", "e to the power x.", _in_double(np.exp)),
    ("Exp2Op", "math.exp2", "2 to the power x.", _in_double(np.exp2)),
    ("ExpM1Op", "math.expm1", "e to the power x, less 1.", _in_double(np.expm1)),
    ("LogOp", "math.log", "Natural logarithm.", _in_double(np.log)),
    ("Log2Op", "math.log2", "Logarithm to base 2.", _in_double(np.log2)),
    ("Log10Op", "math.log10", "Logarithm to base 10.", _in_double(np.log10)),
    ("Log1pOp", "math.log1p", "Natural logarithm of 1 + x.", _in_double(np.log1p)),
    ("SqrtOp", "math.sqrt", "Square root.", np.sqrt),
    ("PreciseSqrtOp", "tt.precise_sqrt", "Square root rounded to nearest even.", np.sqrt),
    ("RsqrtOp", "math.rsqrt", "1 over the square root.", _in_double(lambda x: 1 / np.sqrt(x))),
    ("CbrtOp", "math.cbrt", "Cube root.", _in_double(np.cbrt)),
    ("SinOp", "math.sin", "Sine.", _in_double(np.sin)),
    ("CosOp", "math.cos", "Cosine.", _in_double(np.cos)),
    ("TanOp", "math.tan", "Tangent.", _in_double(np.tan)),
    ("AsinOp", "math.asin", "Arc sine.", _in_double(np.arcsin)),
    ("AcosOp", "math.acos", "Arc cosine.", _in_double(np.arccos)),
    ("AtanOp", "math.atan", "Arc tangent.", _in_double(np.arctan)),
    ("SinhOp", "math.sinh", "Hyperbolic sine.", _in_double(np.sinh)),
    ("CoshOp", "math.cosh", "Hyperbolic cosine.", _in_double(np.cosh)),
    ("TanhOp", "math.tanh", "Hyperbolic tangent.", _in_double(np.tanh)),
    ("AsinhOp", "math.asinh", "Inverse hyperbolic sine.", _in_double(np.arcsinh)),
    ("AcoshOp", "math.acosh", "Inverse hyperbolic cosine.", _in_double(np.arccosh)),
    ("AtanhOp", "math.atanh", "Inverse hyperbolic tangent.", _in_double(np.arctanh)),
    ("ErfOp", "math.erf", "Error function.", _scalarwise(math.erf)),
    ("CtPopOp", "math.ctpop", "Number of set bits.", _count_bits),
    ("CtLzOp", "math.ctlz", "Number of leading zero bits.", _count_leading),
    ("CtTzOp", "math.cttz", "Number of trailing zero bits.", _count_trailing),
)

INTEGER_BINARY_OPS = tuple(_define(BinaryOp, *row) for row in _INTEGER_BINARY)
FLOAT_BINARY_OPS = tuple(_define(BinaryFloatOp, *row) for row in _FLOAT_BINARY)
UNARY_OPS = tuple(_define(UnaryOp, *row) for row in _UNARY)

# Index by op name: `ELEMENTWISE["arith.addf"]`.
_CMPI = {
    0: np.equal,
    1: np.not_equal,
    2: np.less,
    3: np.less_equal,
    4: np.greater,
    5: np.greater_equal,
}
INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
FLOAT_PREDICATES = (
    "false",
    "oeq",
    "ogt",
    "oge",
    "olt",
    "ole",
    "one",
    "ord",
    "ueq",
    "ugt",
    "uge",
    "ult",
    "ule",
    "une",
    "uno",
    "true",
)


@irdl_op_definition
class CmpIOp(ElementwiseOp):
    """Integer comparison; `predicate` indexes INTEGER_PREDICATES; the result is i1."""

    name = "arith.cmpi"
    predicate = prop_def(IntegerAttr)
    lhs = operand_def()
    rhs = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def predicate_name(self) -> str:
        """The predicate's name, as LLVM spells it."""
        return INTEGER_PREDICATES[self.predicate.value.data]

    def reference(self, lhs: Array, rhs: Array) -> Array:
        code = self.predicate.value.data
        if code >= 6:
            return _CMPI[code - 4](unsigned(lhs), unsigned(rhs))
        return _CMPI[code](lhs, rhs)


_ORDERED = {
    "eq": np.equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
    "ne": np.not_equal,
}


@irdl_op_definition
class CmpFOp(ElementwiseOp):
    """Float comparison; `predicate` indexes FLOAT_PREDICATES; the result is i1."""

    name = "arith.cmpf"
    predicate = prop_def(IntegerAttr)
    lhs = operand_def()
    rhs = operand_def()
    fastmath = opt_prop_def(FastMathAttr)
    result = result_def()
    traits = traits_def(Pure())

    def predicate_name(self) -> str:
        """The predicate's name, as LLVM spells it."""
        return FLOAT_PREDICATES[self.predicate.value.data]

    def reference(self, lhs: Array, rhs: Array) -> Array:
        name = self.predicate_name()
        unordered = np.isnan(lhs) | np.isnan(rhs)
        if name in ("false", "true"):
            return np.full(np.shape(unordered), name == "true")
        if name in ("ord", "uno"):
            return unordered if name == "uno" else ~unordered
        compared = _ORDERED[name[1:]](lhs, rhs)
        return compared | unordered if name[0] == "u" else compared & ~unordered


@irdl_op_definition
class SelectOp(ElementwiseOp):
    """lhs where `condition` holds, else rhs; a scalar condition picks whole tiles."""

    name = "arith.select"
    condition = operand_def()
    lhs = operand_def()
    rhs = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def verify_(self) -> None:
        """A scalar condition is legal for operands of any shape."""

    def reference(self, condition: Array, lhs: Array, rhs: Array) -> Array:
        return np.where(condition, lhs, rhs)


@irdl_op_definition
class FmaOp(ElementwiseOp):
    """a * b + c rounded once."""

    name = "math.fma"
    a = operand_def()
    b = operand_def()
    c = operand_def()
    fastmath = opt_prop_def(FastMathAttr)
    result = result_def()
    traits = traits_def(Pure())

    def reference(self, a: Array, b: Array, c: Array) -> Array:
        return _fused_multiply_add(a, b, c)


@irdl_op_definition
class ClampFOp(ElementwiseOp):
    """min(max(x, low), high); `propagateNan` 0 = ignore NaN, 0xFFFF = propagate."""

    name = "tt.clampf"
    x = operand_def()
    low = operand_def()
    high = operand_def()
    propagate_nan = opt_prop_def(IntegerAttr, prop_name="propagateNan")
    result = result_def()
    traits = traits_def(Pure())

    def propagates_nan(self) -> bool:
        """Whether a NaN in x gives NaN."""
        return self.propagate_nan is not None and self.propagate_nan.value.data != 0

    def reference(self, x: Array, low: Array, high: Array) -> Array:
        if self.propagates_nan():
            return np.minimum(np.maximum(x, low), high)
        return np.fmin(np.fmax(x, low), high)


def _cast(class_name: str, name: str, doc: str) -> type[CastOp]:
    namespace = {
        "name": name,
        "__doc__": doc,
        "__module__": __name__,
        "__qualname__": class_name,
    }
    return irdl_op_definition(type(class_name, (CastOp,), namespace))


# Casts have no `reference` on plain arrays: their meaning needs the result's element type, so
# the interpreter holds it (interp/casts.py).
SIToFPOp = _cast("SIToFPOp", "arith.sitofp", "Signed integer to float, to nearest even.")
UIToFPOp = _cast("UIToFPOp", "arith.uitofp", "Unsigned integer to float, to nearest even.")
FPToSIOp = _cast("FPToSIOp", "arith.fptosi", "Float to signed integer towards zero.")
FPToUIOp = _cast("FPToUIOp", "arith.fptoui", "Float to unsigned integer towards zero.")
ExtSIOp = _cast("ExtSIOp", "arith.extsi", "Wider integer, sign extended.")
ExtUIOp = _cast("ExtUIOp", "arith.extui", "Wider integer, zero extended.")
TruncIOp = _cast("TruncIOp", "arith.trunci", "Narrower integer, high bits dropped.")
ExtFOp = _cast("ExtFOp", "arith.extf", "Wider float, exact.")
TruncFOp = _cast("TruncFOp", "arith.truncf", "Narrower float, to nearest even.")
ArithBitcastOp = _cast("ArithBitcastOp", "arith.bitcast", "The same bits as another type.")
BitcastOp = _cast("BitcastOp", "tt.bitcast", "The same bits as another type (pointers too).")
IndexCastOp = _cast("IndexCastOp", "arith.index_cast", "Integer to or from index.")
IntToPtrOp = _cast("IntToPtrOp", "tt.int_to_ptr", "i64 to pointer.")
PtrToIntOp = _cast("PtrToIntOp", "tt.ptr_to_int", "Pointer to i64.")


@irdl_op_definition
class FpToFpOp(CastOp):
    """Float to float where fp8 takes part or `rounding` is "rtz" (default "rtne")."""

    name = "tt.fp_to_fp"
    rounding = opt_prop_def(StringAttr)

    def rounding_name(self) -> str:
        """The rounding mode: "rtne" or "rtz"."""
        return "rtne" if self.rounding is None else self.rounding.data


CAST_OPS = (
    SIToFPOp,
    UIToFPOp,
    FPToSIOp,
    FPToUIOp,
    ExtSIOp,
    ExtUIOp,
    TruncIOp,
    ExtFOp,
    TruncFOp,
    ArithBitcastOp,
    BitcastOp,
    IndexCastOp,
    IntToPtrOp,
    PtrToIntOp,
    FpToFpOp,
)
ELEMENTWISE_OPS = (
    *INTEGER_BINARY_OPS,
    *FLOAT_BINARY_OPS,
    *UNARY_OPS,
    CmpIOp,
    CmpFOp,
    SelectOp,
    FmaOp,
    ClampFOp,
    *CAST_OPS,
)
ELEMENTWISE: dict[str, type[ElementwiseOp]] = {op.name: op for op in ELEMENTWISE_OPS}
