"""The layouts of a matrix product: its instruction's, from the plan."""

from __future__ import annotations

from math import prod
from typing import Protocol

from xdsl.ir import SSAValue

from tilewright.ir.types import shape_of, width_bits
from tilewright.layout.build import (
    blocked,
    mma_accumulator,
    mma_operand,
    wgmma_accumulator,
    wgmma_operand_a,
)
from tilewright.layout.linear import LinearLayout
from tilewright.ops.matmul import DotOp
from tilewright.schedule.layout.anchors import Anchored, Neighbours, own_or_default
from tilewright.schedule.plan.products import ProductPlan

# The lanes of a warp along the rows and the columns of a product by threads.
_LANES = (4, 8)


class ProductNeighbours(Neighbours, Protocol):
    """What the rule of a product asks besides."""

    def is_product(self, value: SSAValue) -> bool:
        """Whether a value is computed from a matrix product."""
        ...


def anchor_product(near: ProductNeighbours, op: DotOp, plan: ProductPlan) -> Anchored:
    """The layouts of a product's register operands; an operand in shared memory keeps its own."""
    result = accumulator_layout(op, plan)
    if plan.instruction == "mma":
        operands = tuple(
            mma_operand(shape_of(value.type), which, width_bits(value.type), plan.warps)
            for which, value in enumerate((op.a, op.b))
        )
        return Anchored((*operands, result), (result,))
    a = own_or_default(near, op.a)
    if plan.instruction == "wgmma" and takes_registers(near, op):
        a = wgmma_operand_a(shape_of(op.a.type), width_bits(op.a.type), plan.warps)
    return Anchored((a, own_or_default(near, op.b), result), (result,))


def takes_registers(near: ProductNeighbours, op: DotOp) -> bool:
    """Whether A of a wgmma stays in registers: it was computed there, from another product.

    Elements of 8 bits sit elsewhere in an accumulator than in an operand, so those go through
    shared memory.
    """
    return near.is_product(op.a) and width_bits(op.a.type) == 16


def accumulator_layout(op: DotOp, plan: ProductPlan) -> LinearLayout:
    """The layout of a product's result."""
    shape = shape_of(op.result.type)
    if plan.instruction == "wgmma":
        return wgmma_accumulator(shape, plan.warps, plan.columns)
    if plan.instruction == "mma":
        return mma_accumulator(shape, plan.warps)
    return _by_threads(shape, plan.warps[0])


def _by_threads(shape: tuple[int, ...], num_warps: int) -> LinearLayout:
    """Blocks of up to 4 x 4 results a thread, lanes 4 x 8, warps along the rows first."""
    *batch, rows, columns = shape
    rank = len(shape)
    order = tuple(reversed(range(rank)))
    threads = prod(_LANES) * num_warps
    share = max(1, rows * columns // threads)
    per_row = min(4, share, columns)
    per_column = min(4, max(1, share // per_row), rows)
    sizes = (*(1 for _ in batch), _below(per_column), _below(per_row))
    lanes = (*(1 for _ in batch), *_LANES)
    warps = (*(1 for _ in batch), num_warps, 1)
    return blocked(shape, sizes, lanes, warps, order)


def _below(value: int) -> int:
    return 1 << (value.bit_length() - 1)
