"""The layouts of a matrix product: its instruction's, from the plan."""

from __future__ import annotations

from math import prod

from xdsl.ir import Operation, SSAValue
from xdsl.traits import IsTerminator

from tilewright.ir.op import AccumulatingOp
from tilewright.ir.plans import REGISTERS, ProductPlan
from tilewright.ir.regions import is_control_flow
from tilewright.ir.types import shape_of, width_bits
from tilewright.layout.build import (
    blocked,
    mma_accumulator,
    mma_operand,
    wgmma_accumulator,
    wgmma_operand_a,
)
from tilewright.layout.linear import LinearLayout
from tilewright.ops.function import FuncOp
from tilewright.ops.matmul.ir import ProductOp
from tilewright.schedule.layout.anchors import Anchored, Neighbours, own_or_default
from tilewright.schedule.layout.transfer import is_tile

# The lanes of a warp along the rows and the columns of a product by threads. Chosen, not measured:
# of what makes 32 it reads the fewest different rows and columns.
_LANES = (4, 8)


def anchor_product(near: Neighbours, op: ProductOp, plan: ProductPlan) -> Anchored:
    """The layouts of a product's operands and result: its instruction's, where it has one.

    An operand that goes to shared memory does so from the layout that it is in.
    """
    a, b, result = instruction_layouts(op, plan)
    operands = (a or own_or_default(near, op.a), b or own_or_default(near, op.b), result)
    return Anchored(operands, (result,))


def instruction_layouts(
    op: ProductOp, plan: ProductPlan
) -> tuple[LinearLayout | None, LinearLayout | None, LinearLayout]:
    """The layouts of A, B and the result that the instruction asks for; None for any."""
    a, b = None, None
    if plan.instruction == "mma":
        a, b = (
            mma_operand(shape_of(value.type), which, width_bits(value.type), plan.warps)
            for which, value in enumerate((op.a, op.b))
        )
    if plan.instruction == "wgmma" and plan.a == REGISTERS:
        a = wgmma_operand_a(shape_of(op.a.type), width_bits(op.a.type), plan.warps)
    return a, b, accumulator_layout(op, plan)


def accumulator_layout(op: ProductOp, plan: ProductPlan) -> LinearLayout:
    """The layout of a product's result."""
    shape = shape_of(op.result.type)
    if plan.instruction == "wgmma":
        return wgmma_accumulator(shape, plan.warps, plan.columns)
    if plan.instruction == "mma":
        return mma_accumulator(shape, plan.warps)
    return _by_threads(shape, plan.warps[0])


def values_of_products(kernel: FuncOp) -> frozenset[SSAValue]:
    """What is computed from matrix products, but for what control flow hands on."""
    found: set[SSAValue] = set()
    for op in kernel.walk():
        is_product = isinstance(op, AccumulatingOp)
        is_computed = is_product or any(value in found for value in op.operands)
        if is_computed and _computes_tiles(op):
            found.update(op.results)
    return frozenset(found)


def _computes_tiles(op: Operation) -> bool:
    if is_control_flow(op) or op.has_trait(IsTerminator):
        return False
    return any(map(is_tile, (*op.operands, *op.results)))


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
