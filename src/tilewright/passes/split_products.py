"""Rewrites float32 products of emulated precision to several products of narrow operands.

    dot %a, %b, %c {tf32x3}
    ⇒ dot %a_hi, %b_hi, dot(%a_hi, %b_lo, dot(%a_lo, %b_hi, %c)) {tf32}

Each operand is split into parts that sum to it, the first with the leading bits; of the products
of parts those that matter are summed, the smallest first. `bf16x3` and `bf16x6` take two and
three parts of bfloat16. Requires and produces T0. For targets whose matrix instructions take
tf32 and bf16.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32
from xdsl.ir import Attribute, SSAValue

from tilewright.ir import types as ir
from tilewright.ir.edits import erase
from tilewright.ir.passes import Pass
from tilewright.ir.types import shape_of, tile_of
from tilewright.ops.elementwise.comparisons import CmpFOp
from tilewright.ops.elementwise.ir import ELEMENTWISE, ArithBitcastOp, ExtFOp, SelectOp, TruncFOp
from tilewright.ops.matmul.ir import DotOp, ProductOp
from tilewright.passes.tile_builder import TileBuilder
from tilewright.support.dataclass import dataclass
from tilewright.support.options import INPUT_PRECISIONS

# The products of part i of a and part j of b, smallest first.
_TERMS = {
    "tf32x3": ((1, 0), (0, 1), (0, 0)),
    "bf16x3": ((1, 0), (0, 1), (0, 0)),
    "bf16x6": ((2, 0), (1, 1), (0, 2), (1, 0), (0, 1), (0, 0)),
}
# tf32 keeps 10 of the 23 bits of a mantissa.
_TF32_BITS = -(1 << 13)
_ORDERED = 7


@dataclass(frozen=True)
class SplitProducts(Pass):
    """The pass; see the module."""

    name = "split-products"

    def apply(self, module: ModuleOp) -> None:
        """Rewrite every product of emulated precision."""
        for op in tuple(module.walk()):
            if isinstance(op, DotOp) and precision_of(op) in _TERMS:
                split_product(op)


def precision_of(op: ProductOp) -> str:
    """The precision of a float32 product; '' of others."""
    if op.input_precision is None or ir.element_of(op.a.type) != ir.f32:
        return ""
    return INPUT_PRECISIONS[op.input_precision.value.data]


def split_product(op: ProductOp) -> None:
    """Put products of parts in the place of a product of emulated precision.

    An infinity is its own first part, and times the second part of a number it is NaN or has the
    wrong sign: zeros meet second parts instead, in tiles of their own.
    """
    make, precision = TileBuilder(op), precision_of(op)
    terms = _TERMS[precision]
    count = 1 + max(max(term) for term in terms)
    split = _tf32_parts if precision == "tf32x3" else _bf16_parts
    a, b = (split(make, value, count) for value in (op.a, op.b))
    small_a = [_finite(make, a[0]), *a[1:]]
    small_b = [_finite(make, b[0]), *b[1:]]
    narrow = "tf32" if precision == "tf32x3" else "ieee"
    code = IntegerAttr(INPUT_PRECISIONS.index(narrow), i32)
    properties = {**op.properties, "inputPrecision": code}
    total: SSAValue = op.c
    for i, j in terms:
        operands = [small_a[i], small_b[j], total] if i + j else [a[0], b[0], total]
        total = make.emit(DotOp, operands, op.result.type, properties, op.attributes)
    op.result.replace_all_uses_with(total)
    erase(op)


def _finite(make: TileBuilder, value: SSAValue) -> SSAValue:
    """`value` with zeros in the place of infinities and NaNs: where `value - value` is no zero."""
    rest = make.emit(ELEMENTWISE["arith.subf"], [value, value], value.type)
    return _where_number(make, rest, value)


def _tf32_parts(make: TileBuilder, value: SSAValue, count: int) -> list[SSAValue]:
    """`value` with its low bits cleared, and the rest."""
    shape = shape_of(value.type)
    words = tile_of(ir.i32, shape)
    bits = make.emit(ArithBitcastOp, [value], words)
    mask = make.constant(words, _TF32_BITS)
    high = make.emit(ArithBitcastOp, [make.binary("andi", bits, mask)], value.type)
    return [high, _rest(make, value, high)]


def _bf16_parts(make: TileBuilder, value: SSAValue, count: int) -> list[SSAValue]:
    """`count` tiles of bfloat16 that sum to `value`, as far as they reach."""
    narrow = tile_of(ir.bf16, shape_of(value.type))
    parts = []
    for _ in range(count):
        parts.append(make.emit(TruncFOp, [value], narrow))
        # Numbers beyond the largest bfloat16 round to infinity, which leaves no rest either.
        value = _finite(make, _rest(make, value, make.emit(ExtFOp, [parts[-1]], value.type)))
    return parts


def _rest(make: TileBuilder, value: SSAValue, part: SSAValue) -> SSAValue:
    """`value` - `part`; 0 where that is no number, since infinity is its own first part."""
    rest = make.emit(ELEMENTWISE["arith.subf"], [value, part], value.type)
    return _where_number(make, rest, rest)


def _where_number(make: TileBuilder, tested: SSAValue, value: SSAValue) -> SSAValue:
    """`value` where `tested` is no NaN, else 0."""
    flags = tile_of(ir.i1, shape_of(value.type))
    code: dict[str, Attribute] = {"predicate": IntegerAttr(_ORDERED, ir.i64)}
    is_number = make.emit(CmpFOp, [tested, tested], flags, code)
    return make.emit(SelectOp, [is_number, value, make.constant(value.type, 0)], value.type)
