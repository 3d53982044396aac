"""A matrix product at T1: operands brought to where the instruction reads them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, StringAttr, i32
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.ir.encoding import layout_of, shared_tile
from tilewright.ir.op import build
from tilewright.ir.types import element_of, shape_of, storage_bytes
from tilewright.layout.build import shared_linear, shared_swizzled, wgmma_operand_a
from tilewright.layout.linear import LinearLayout
from tilewright.ops.matmul import DotOp
from tilewright.ops.staging import LaidOutDotOp, LocalAllocOp
from tilewright.schedule.layout.anchors import fastest_dim
from tilewright.schedule.plan.products import ProductPlan

REASON_ATTRIBUTE = "reason"
"""Why a product runs on a slower instruction than there is."""


def stage_product(op: DotOp, operands: Sequence[SSAValue], plan: ProductPlan) -> list[Operation]:
    """The ops that compute a product from laid-out operands; the last one's result is it."""
    a, b, c = operands
    staged: list[Operation] = []
    if plan.instruction == "wgmma":
        if not _is_fragment(op, a, plan):
            a = _stage(staged, op, a, k_dim=1)
        b = _stage(staged, op, b, k_dim=0)
    elif plan.instruction == "fma":
        a, b = (_stage_plainly(staged, op, value) for value in (a, b))
    properties: dict[str, Attribute] = {
        "instruction": StringAttr(plan.instruction),
        "shape": DenseArrayBase.from_list(i32, _instruction_shape(plan)),
        "warps": DenseArrayBase.from_list(i32, plan.warps),
    }
    for name in ("inputPrecision", "maxNumImpreciseAcc"):
        if name in op.properties:
            properties[name] = op.properties[name]
    product = build(LaidOutDotOp, [a, b, c], [c.type], properties, location=op.location)
    if plan.reason:
        product.attributes[REASON_ATTRIBUTE] = StringAttr(plan.reason)
    return [*staged, product]


def _instruction_shape(plan: ProductPlan) -> tuple[int, int, int]:
    rows = {"wgmma": 64, "mma": 16, "fma": 1}[plan.instruction]
    return rows, plan.columns, plan.depth


def _is_fragment(op: DotOp, a: SSAValue, plan: ProductPlan) -> bool:
    """Whether A is in registers as the instruction takes it."""
    bits = 8 * storage_bytes(op.a.type)
    return bits == 16 and layout_of(a.type) == wgmma_operand_a(shape_of(a.type), bits, plan.warps)


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


def _stage_plainly(staged: list[Operation], op: DotOp, value: SSAValue) -> SSAValue:
    shape = shape_of(value.type)
    layout = shared_linear(shape, tuple(reversed(range(len(shape)))))
    return _alloc(staged, op, value, layout)


def _alloc(staged: list[Operation], op: DotOp, value: SSAValue, layout: LinearLayout) -> SSAValue:
    type_ = shared_tile(element_of(value.type), layout)
    staged.append(build(LocalAllocOp, [value], [type_], location=op.location))
    return staged[-1].results[0]
