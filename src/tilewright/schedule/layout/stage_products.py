"""A matrix product at T1: operands brought to where the instruction reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.ir.encoding import SharedType, layout_of, shared_tile
from tilewright.ir.op import build
from tilewright.ir.plans import SHARED, ProductAttr, ProductPlan
from tilewright.ir.schedule_attributes import anchor_of, name_anchor
from tilewright.ir.types import element_of, shape_of, storage_bytes
from tilewright.layout.build import shared_linear, shared_swizzled
from tilewright.ops.matmul.ir import ProductOp
from tilewright.ops.staging import LaidOutDotOp
from tilewright.schedule.layout.anchors import fastest_dim

Stage = Callable[[SSAValue, SharedType], SSAValue]
"""Gives a tile its place in shared memory, of a type; the shared tile."""


def stage_product(
    op: ProductOp, operands: Sequence[SSAValue], plan: ProductPlan, stage: Stage
) -> Operation:
    """The op that computes a product from laid-out operands, and from those that it stages."""
    a, b, c = operands
    shared_type = swizzled if plan.instruction == "wgmma" else _row_by_row
    if plan.a == SHARED:
        a = stage(a, shared_type(a, k_dim=1))
    if plan.b == SHARED:
        b = stage(b, shared_type(b, k_dim=0))
    properties: dict[str, Attribute] = {"product": ProductAttr(plan)}
    for name in ("inputPrecision", "maxNumImpreciseAcc"):
        if name in op.properties:
            properties[name] = op.properties[name]
    product = build(LaidOutDotOp, [a, b, c], [c.type], properties, location=op.location)
    anchor = anchor_of(op)
    if anchor is not None:
        name_anchor(product, anchor)
    return product


def swizzled(value: SSAValue, k_dim: int) -> SharedType:
    """An operand of tensor cores in shared memory, swizzled as wgmma and ldmatrix read it.

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
    return shared_tile(element_of(value.type), layout)


def _row_by_row(value: SSAValue, k_dim: int) -> SharedType:
    """An operand of a product by threads in shared memory."""
    shape = shape_of(value.type)
    layout = shared_linear(shape, tuple(reversed(range(len(shape)))))
    return shared_tile(element_of(value.type), layout)
