"""A matrix product at T1: operands brought to where the instruction reads them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.ir.encoding import layout_of, shared_tile
from tilewright.ir.op import build
from tilewright.ir.plans import SHARED, ProductAttr, ProductPlan
from tilewright.ir.types import element_of, shape_of, storage_bytes
from tilewright.layout.build import shared_linear, shared_swizzled
from tilewright.layout.linear import LinearLayout
from tilewright.ops.matmul.ir import DotOp
from tilewright.ops.staging import LaidOutDotOp, LocalAllocOp
from tilewright.schedule.layout.anchors import fastest_dim


def stage_product(op: DotOp, operands: Sequence[SSAValue], plan: ProductPlan) -> list[Operation]:
    """The ops that compute a product from laid-out operands; the last one's result is it."""
    a, b, c = operands
    staged: list[Operation] = []
    stage = _stage if plan.instruction == "wgmma" else _stage_plainly
    if plan.a == SHARED:
        a = stage(staged, op, a, k_dim=1)
    if plan.b == SHARED:
        b = stage(staged, op, b, k_dim=0)
    properties: dict[str, Attribute] = {"product": ProductAttr(plan)}
    for name in ("inputPrecision", "maxNumImpreciseAcc"):
        if name in op.properties:
            properties[name] = op.properties[name]
    product = build(LaidOutDotOp, [a, b, c], [c.type], properties, location=op.location)
    return [*staged, product]


def _stage(staged: list[Operation], op: DotOp, value: SSAValue, k_dim: int) -> SSAValue:
    """An operand of wgmma in shared memory, swizzled as the instruction reads it.

    16-bit operands are read along either dim, so they lie as their registers do; others along
    K alone.
    """
    size = storage_bytes(value.type)
    fast = fastest_dim(layout_of(value.type)) if size == 2 else k_dim
    shape = shape_of(value.type)
    span = shape[fast] * size
    # Rows of 16 bytes are what the instruction calls no swizzle.
    swizzle = next(s for s in (128, 64, 32, 16) if span % s == 0)
    layout = shared_swizzled(shape, size, swizzle, (fast, 1 - fast))
    return _alloc(staged, op, value, layout)


def _stage_plainly(staged: list[Operation], op: DotOp, value: SSAValue, k_dim: int) -> SSAValue:
    """An operand of a product by threads in shared memory, row by row."""
    shape = shape_of(value.type)
    layout = shared_linear(shape, tuple(reversed(range(len(shape)))))
    return _alloc(staged, op, value, layout)


def _alloc(staged: list[Operation], op: DotOp, value: SSAValue, layout: LinearLayout) -> SSAValue:
    type_ = shared_tile(element_of(value.type), layout)
    staged.append(build(LocalAllocOp, [value], [type_], location=op.location))
    return staged[-1].results[0]
