"""Lets a product add itself to what its result is added to.

    %p = tt.dot %a, %b, 0;  %s = arith.addf %x, %p   ⇒   %s = tt.dot %a, %b, %x

Why here: `acc += tl.dot(a, b)` is what most kernels say. Apart from the accumulator, the product
would need as many registers again (128×128 with 4 warps: 255 and 41 spills instead of 168), and on
a CPU one more trip of the tile through memory. It also shows that a loop adds products up.

The sum is taken in another order, which an addition of floats must allow (`contract`, off with
`enable_fp_fusion=False`), unless the target's products start from zero and add the addend last.
Products of 8-bit floats are left alone there: tensor cores add them with 14 bits or so, and the
addition is what makes long sums precise. Requires and produces T0.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue

from tilewright.ir.attributes import FastMathAttr
from tilewright.ir.edits import erase
from tilewright.ir.op import build
from tilewright.ir.passes import Pass
from tilewright.ir.types import element_of, f32, f64, i32, width_bits
from tilewright.ops.creation.ir import constant_of
from tilewright.ops.matmul.ir import DotOp
from tilewright.support.dataclass import dataclass

_ADDITIONS = ("arith.addf", "arith.addi")
_KEPT = (f32, f64, i32)
_NARROW_BITS = 8


@dataclass(frozen=True)
class FoldAdditions(Pass):
    """The pass; see the module. `adds_last`: what the target's products do with an addend."""

    adds_last: bool = False
    name = "fold-additions"

    def apply(self, module: ModuleOp) -> None:
        """Fold every addition to a product of its own block that nothing else uses."""
        for op in tuple(module.walk()):
            if op.name in _ADDITIONS:
                left, right = op.operands
                for value, addend in ((left, right), (right, left)):
                    product = _pure_product(value, op)
                    if product is not None and (self.adds_last or _is_licensed(op, product)):
                        _fold(op, product, addend)
                        break


def _pure_product(value: SSAValue, user: Operation) -> DotOp | None:
    op = value.op if isinstance(value, OpResult) else None
    if not isinstance(op, DotOp) or not value.has_one_use() or op.parent is not user.parent:
        return None
    return op if element_of(value.type) in _KEPT and _is_zero(op.c) else None


def _is_zero(value: SSAValue) -> bool:
    return constant_of(value) == 0


def _is_licensed(addition: Operation, product: DotOp) -> bool:
    if addition.name == "arith.addi":
        return True
    flags = addition.properties.get("fastmath")
    is_free = isinstance(flags, FastMathAttr) and "contract" in flags.data
    return is_free and width_bits(product.a.type) > _NARROW_BITS


def _fold(addition: Operation, product: DotOp, addend: SSAValue) -> None:
    """Put the product where the addition is: the addend is known there."""
    operands = (product.a, product.b, addend)
    kind = product.result.type
    new = build(DotOp, operands, (kind,), dict(product.properties), (), product.location)
    new.attributes.update(product.attributes)
    assert addition.parent is not None
    addition.parent.insert_op_before(new, addition)
    addition.results[0].replace_all_uses_with(new.results[0])
    for old in (addition, product):
        erase(old)
