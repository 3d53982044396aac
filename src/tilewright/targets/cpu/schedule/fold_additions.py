"""Lets a product add itself to what its result is added to.

    addf(dot(a, b, 0), x)   ⇒   dot(a, b, x)

Why: `acc += tl.dot(a, b)` would read and write the whole accumulator once more per step, and
hide from `deepen_products.py` that the loop only adds products up. The microkernel sums a
tile's products from zero and then adds the addend, so the result is the same.
"""

from __future__ import annotations

from xdsl.ir import Operation, OpResult, SSAValue

from tilewright.ir.op import build
from tilewright.ir.types import element_of, f32, f64, i32
from tilewright.ops.matmul import DotOp
from tilewright.targets.cpu.schedule.placement import is_zero

_ADDITIONS = ("arith.addf", "arith.addi")


def fold_additions(kernel: Operation) -> None:
    """Fold every addition to a product of its own block that nothing else uses."""
    for op in tuple(kernel.walk()):
        if op.name in _ADDITIONS:
            left, right = op.operands
            for value, addend in ((left, right), (right, left)):
                product = _pure_product(value, op)
                if product is not None:
                    _fold(op, product, addend)
                    break


def _pure_product(value: SSAValue, user: Operation) -> DotOp | None:
    op = value.op if isinstance(value, OpResult) else None
    if not isinstance(op, DotOp) or not value.has_one_use() or op.parent is not user.parent:
        return None
    is_kept = element_of(value.type) in (f32, f64, i32)
    return op if is_kept and is_zero(op.c) else None


def _fold(addition: Operation, product: DotOp, addend: SSAValue) -> None:
    """Put the product where the addition is: the addend is known there."""
    operands = (product.a, product.b, addend)
    kind = product.result.type
    new = build(DotOp, operands, (kind,), dict(product.properties), (), product.location)
    assert addition.parent is not None
    addition.parent.insert_op_before(new, addition)
    addition.results[0].replace_all_uses_with(new.results[0])
    for old in (addition, product):
        old.detach()
        old.erase()
