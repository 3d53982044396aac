"""Loops like those of attention's backward: three products or more, of which it adds some up.

for … { s = dot k, q; p = exp2(s); dv = dot p, g, dv; t = dot v, g; d = p * t; dk = dot d, q, dk }
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import BlockArgument

from tilewright.ir.types import shape_of
from tilewright.machine.mma import WGMMA
from tilewright.ops.control_flow import ForOp, counted_loops
from tilewright.ops.function import FuncOp
from tilewright.ops.matmul.ir import DotOp, ProductOp
from tilewright.support.dataclass import dataclass

# By definition: loops of two have an order of their own (`order.py`).
FEWEST_PRODUCTS = 3
# Source: attention's backward by hand and as compiled, no spills at heads of 64 and 128 (H200).
REGISTERS = (24, 240)
"""Those of a thread that loads and of one that multiplies, where two groups run such loops."""


@dataclass(frozen=True)
class GradientLoop:
    """A loop of several products, and those of them that it adds up, as the text has them."""

    loop: ForOp
    products: tuple[DotOp, ...]
    sums: tuple[DotOp, ...]


def gradient_loops(kernel: FuncOp) -> Iterator[GradientLoop]:
    """The loops of a kernel with at least three products right in them, one of them a sum."""
    for loop in counted_loops(kernel):
        products = tuple(op for op in loop.body.block.ops if isinstance(op, DotOp))
        sums = tuple(product for product in products if _is_carried(product, loop))
        if len(products) >= FEWEST_PRODUCTS and sums:
            yield GradientLoop(loop, products, sums)


def num_products(kernel: FuncOp) -> int:
    """How many products a kernel has, in its loops and beside them."""
    return sum(isinstance(op, ProductOp) for op in kernel.walk())


def gradient_groups(kernel: FuncOp) -> int:
    """How many groups share the rows of what such loops add up; 0 for a kernel of other loops."""
    rows = [
        shape_of(product.result.type)[-2]
        for found in gradient_loops(kernel)
        for product in found.sums
    ]
    return min(rows) // WGMMA.rows if rows else 0


def _is_carried(product: DotOp, loop: ForOp) -> bool:
    """Whether a product adds itself to what its loop carries."""
    return isinstance(product.c, BlockArgument) and product.c.owner is loop.body.block
