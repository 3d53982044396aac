"""Elementwise arithmetic, comparison, selection, casts and math.

One table row is one op: its name and its reference semantics over NumPy arrays. Integers are
signless in the IR; reference functions see them as signed arrays, and the ops that mean
unsigned reinterpret.
"""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import OpTrait, Pure

from tilewright.ir.attributes import FastMathAttr
from tilewright.ir.op import Array, DerivedAddress, ElementwiseOp
from tilewright.ir.types import is_float, is_integer
from tilewright.ops.elementwise.comparisons import CmpFOp, CmpIOp
from tilewright.ops.elementwise.reference import (
    Reference,
    count_bits,
    count_leading,
    count_trailing,
    fused_multiply_add,
    high_product,
    in_double,
    on_unsigned,
    round_half_away,
    scalarwise,
    shift_left,
    shift_right,
    truncating_division,
    truncating_remainder,
    unsigned_division,
    unsigned_remainder,
)
from tilewright.ops.elementwise.verify import (
    is_counted,
    verify_cast,
    verify_choice,
    verify_one_type,
)


class BinaryOp(ElementwiseOp):
    """result = f(lhs, rhs), all of one type."""

    lhs = operand_def()
    rhs = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def verify_(self) -> None:
        """Integers of one type and shape."""
        super().verify_()
        verify_one_type(self, is_counted, "integer")


class BinaryFloatOp(ElementwiseOp):
    """result = f(lhs, rhs) on floats, with the fast-math flags that may change bits."""

    lhs = operand_def()
    rhs = operand_def()
    fastmath = opt_prop_def(FastMathAttr)
    result = result_def()
    traits = traits_def(Pure())

    def verify_(self) -> None:
        """Floats of one type and shape."""
        super().verify_()
        verify_one_type(self, is_float, "float")


class UnaryOp(ElementwiseOp):
    """result = f(operand), of one type."""

    operand = operand_def()
    fastmath = opt_prop_def(FastMathAttr)
    result = result_def()
    traits = traits_def(Pure())

    def verify_(self) -> None:
        """One type and shape: integers for what is about bits and `absi`, else floats."""
        super().verify_()
        if self.name in _OF_INTEGERS:
            verify_one_type(self, is_integer, "integer")
        else:
            verify_one_type(self, is_float, "float")


class CastOp(ElementwiseOp):
    """A conversion of every element to the result's element type."""

    src = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def verify_(self) -> None:
        """One shape, and the kinds of elements that the op converts."""
        super().verify_()
        verify_cast(self)


_OF_INTEGERS = frozenset(("math.absi", "math.ctpop", "math.ctlz", "math.cttz"))


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
    ("DivSIOp", "arith.divsi", "Signed quotient towards zero.", truncating_division),
    ("DivUIOp", "arith.divui", "Unsigned quotient.", on_unsigned(unsigned_division)),
    ("RemSIOp", "arith.remsi", "Remainder with the dividend's sign.", truncating_remainder),
    ("RemUIOp", "arith.remui", "Unsigned remainder.", on_unsigned(unsigned_remainder)),
    ("AndIOp", "arith.andi", "Bitwise and.", np.bitwise_and),
    ("OrIOp", "arith.ori", "Bitwise or.", np.bitwise_or),
    ("XOrIOp", "arith.xori", "Bitwise exclusive or.", np.bitwise_xor),
    ("ShLIOp", "arith.shli", "Left shift.", shift_left),
    ("ShRSIOp", "arith.shrsi", "Arithmetic right shift.", shift_right),
    ("ShRUIOp", "arith.shrui", "Logical right shift.", on_unsigned(shift_right)),
    ("MaxSIOp", "arith.maxsi", "Signed maximum.", np.maximum),
    ("MaxUIOp", "arith.maxui", "Unsigned maximum.", on_unsigned(np.maximum)),
    ("MinSIOp", "arith.minsi", "Signed minimum.", np.minimum),
    ("MinUIOp", "arith.minui", "Unsigned minimum.", on_unsigned(np.minimum)),
    ("MulhiUIOp", "tt.mulhiui", "High half of the unsigned product.", on_unsigned(high_product)),
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
    ("PowFOp", "math.powf", "lhs to the power rhs.", in_double(np.power)),
    ("Atan2Op", "math.atan2", "Angle of the point (rhs, lhs).", in_double(np.arctan2)),
    ("CopySignOp", "math.copysign", "Magnitude of lhs, sign of rhs.", np.copysign),
)
_UNARY: tuple[tuple[str, str, str, Reference], ...] = (
    ("NegFOp", "arith.negf", "Sign flipped.", np.negative),
    ("AbsFOp", "math.absf", "Magnitude of a float.", np.abs),
    ("AbsIOp", "math.absi", "Magnitude of a signed integer (wraps).", np.abs),
    ("CeilOp", "math.ceil", "Least integral value not below.", np.ceil),
    ("FloorOp", "math.floor", "Greatest integral value not above.", np.floor),
    ("RoundOp", "math.round", "Nearest integral value, halves away from zero.", round_half_away),
    ("RoundEvenOp", "math.roundeven", "Nearest integral value, halves to even.", np.rint),
    ("TruncOp", "math.trunc", "Integral value towards zero.", np.trunc),
    ("ExpOp", "math.exp", "e to the power x.", in_double(np.exp)),
    ("Exp2Op", "math.exp2", "2 to the power x.", in_double(np.exp2)),
    ("ExpM1Op", "math.expm1", "e to the power x, less 1.", in_double(np.expm1)),
    ("LogOp", "math.log", "Natural logarithm.", in_double(np.log)),
    ("Log2Op", "math.log2", "Logarithm to base 2.", in_double(np.log2)),
    ("Log10Op", "math.log10", "Logarithm to base 10.", in_double(np.log10)),
    ("Log1pOp", "math.log1p", "Natural logarithm of 1 + x.", in_double(np.log1p)),
    ("SqrtOp", "math.sqrt", "Square root.", np.sqrt),
    ("PreciseSqrtOp", "tt.precise_sqrt", "Square root rounded to nearest even.", np.sqrt),
    ("RsqrtOp", "math.rsqrt", "1 over the square root.", in_double(lambda x: 1 / np.sqrt(x))),
    ("CbrtOp", "math.cbrt", "Cube root.", in_double(np.cbrt)),
    ("SinOp", "math.sin", "Sine.", in_double(np.sin)),
    ("CosOp", "math.cos", "Cosine.", in_double(np.cos)),
    ("TanOp", "math.tan", "Tangent.", in_double(np.tan)),
    ("AsinOp", "math.asin", "Arc sine.", in_double(np.arcsin)),
    ("AcosOp", "math.acos", "Arc cosine.", in_double(np.arccos)),
    ("AtanOp", "math.atan", "Arc tangent.", in_double(np.arctan)),
    ("SinhOp", "math.sinh", "Hyperbolic sine.", in_double(np.sinh)),
    ("CoshOp", "math.cosh", "Hyperbolic cosine.", in_double(np.cosh)),
    ("TanhOp", "math.tanh", "Hyperbolic tangent.", in_double(np.tanh)),
    ("AsinhOp", "math.asinh", "Inverse hyperbolic sine.", in_double(np.arcsinh)),
    ("AcoshOp", "math.acosh", "Inverse hyperbolic cosine.", in_double(np.arccosh)),
    ("AtanhOp", "math.atanh", "Inverse hyperbolic tangent.", in_double(np.arctanh)),
    ("ErfOp", "math.erf", "Error function.", scalarwise(math.erf)),
    ("CtPopOp", "math.ctpop", "Number of set bits.", count_bits),
    ("CtLzOp", "math.ctlz", "Number of leading zero bits.", count_leading),
    ("CtTzOp", "math.cttz", "Number of trailing zero bits.", count_trailing),
)

INTEGER_BINARY_OPS = tuple(_define(BinaryOp, *row) for row in _INTEGER_BINARY)
FLOAT_BINARY_OPS = tuple(_define(BinaryFloatOp, *row) for row in _FLOAT_BINARY)
UNARY_OPS = tuple(_define(UnaryOp, *row) for row in _UNARY)


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
        verify_choice(self)

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

    def verify_(self) -> None:
        """Floats of one type and shape."""
        super().verify_()
        verify_one_type(self, is_float, "float")

    def reference(self, a: Array, b: Array, c: Array) -> Array:
        return fused_multiply_add(a, b, c)


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

    def verify_(self) -> None:
        """Floats of one type and shape."""
        super().verify_()
        verify_one_type(self, is_float, "float")

    def propagates_nan(self) -> bool:
        """Whether a NaN in x gives NaN."""
        return self.propagate_nan is not None and self.propagate_nan.value.data != 0

    def reference(self, x: Array, low: Array, high: Array) -> Array:
        if self.propagates_nan():
            return np.minimum(np.maximum(x, low), high)
        return np.fmin(np.fmax(x, low), high)


def _cast(class_name: str, name: str, doc: str, *traits: OpTrait) -> type[CastOp]:
    namespace = {
        "traits": traits_def(*traits),
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
BitcastOp = _cast(
    "BitcastOp", "tt.bitcast", "The same bits as another type (pointers too).", DerivedAddress()
)
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
