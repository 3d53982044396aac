"""A matrix product at T1: operands brought to where the instruction reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.ir.encoding import SharedType, layout_of, shared_tile
from tilewright.ir.locations import span_of
from tilewright.ir.op import build
from tilewright.ir.plans import SHARED, ProductAttr, ProductPlan
from tilewright.ir.schedule_attributes import anchor_of, name_anchor
from tilewright.ir.types import element_of, shape_of, storage_bytes
from tilewright.layout.build import shared_linear, shared_swizzled
from tilewright.ops.channels import GetOp, PutPartOp
from tilewright.ops.matmul.ir import ProductOp
from tilewright.ops.staging import ConvertLayoutOp, LaidOutDotOp
from tilewright.schedule.layout.anchors import fastest_dim
from tilewright.support.errors import NotPowerOfTwo
from tilewright.support.powers_of_two import is_power_of_two

Stage = Callable[[SSAValue, SharedType], SSAValue]
"""Gives a tile its place in shared memory, of a type; the shared tile."""


def stage_product(
    op: ProductOp, operands: Sequence[SSAValue], plan: ProductPlan, stage: Stage
) -> Operation:
    """The op that computes a product from laid-out operands, and from those that it stages."""
    a, b, c = operands
    if plan.instruction == "fma":
        _require_rows(op, plan)
    shared_type = _for_wgmma if plan.instruction == "wgmma" else _row_by_row
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


def _require_rows(op: ProductOp, plan: ProductPlan) -> None:
    """Refuse rows whose places follow from no bits of a thread. *Raises*: NotPowerOfTwo."""
    rows = [shape_of(operand.type)[-1] for operand in (op.a, op.b)]
    odd = [extent for extent in rows if not is_power_of_two(extent)]
    if odd:
        span, chain = span_of(op)
        raise NotPowerOfTwo(
            f"dot(): rows of {odd[0]} elements are no power of two, and no matrix instruction "
            f"computes the product: {plan.reason or 'the plan takes none'}",
            hint="take powers of two, or numbers and a precision that the tensor cores multiply",
            span=span,
            chain=chain,
        )


def for_single_warps(value: SSAValue, k_dim: int) -> SharedType:
    """An operand of `mma` in shared memory, that lies as its registers do.

    Of 32-bit elements that do not lie along K an instruction reads four rows and two chunks of 16
    bytes in each: rows that follow each other are two chunks apart, so no two share banks.
    """
    fast = fastest_dim(layout_of(value.type))
    crosses = fast != k_dim and storage_bytes(value.type) == 4
    return _swizzled(value, fast, rotation=int(crosses))


def _for_wgmma(value: SSAValue, k_dim: int) -> SharedType:
    """An operand of wgmma, which reads 16-bit ones along either dim and others along K alone."""
    if storage_bytes(value.type) != 2:
        return _swizzled(value, k_dim)
    fast = fastest_dim(layout_of(value.type))
    if _is_gathered(value):
        # Threads write it, and matrices turn as they are written.
        fast = max((fast, 1 - fast), key=lambda dim: _swizzle_bytes(value, dim))
    return _swizzled(value, fast)


def _swizzle_bytes(value: SSAValue, fast: int) -> int:
    """The most bytes that rows along a dim are swizzled by."""
    row_bytes = shape_of(value.type)[fast] * storage_bytes(value.type)
    # Rows of 16 bytes are what the instruction calls no swizzle.
    return next(swizzle for swizzle in (128, 64, 32, 16) if row_bytes % swizzle == 0)


def _swizzled(value: SSAValue, fast: int, rotation: int = 0) -> SharedType:
    """A tile in shared memory whose rows along `fast` are swizzled as tensor cores read them."""
    size, shape = storage_bytes(value.type), shape_of(value.type)
    swizzle = _swizzle_bytes(value, fast)
    layout = shared_swizzled(shape, size, swizzle, (fast, 1 - fast), rotation)
    return shared_tile(element_of(value.type), layout)


def _row_by_row(value: SSAValue, k_dim: int) -> SharedType:
    """An operand of a product by threads in shared memory."""
    shape = shape_of(value.type)
    layout = shared_linear(shape, tuple(reversed(range(len(shape)))))
    return shared_tile(element_of(value.type), layout)


def _is_gathered(value: SSAValue) -> bool:
    """Whether replicas write parts of a tile for each other, as they like it to lie."""
    owner = value.owner
    while isinstance(owner, ConvertLayoutOp):
        owner = owner.src.owner
    if not isinstance(owner, GetOp):
        return False
    return any(isinstance(use.operation, PutPartOp) for use in owner.channel.uses)
