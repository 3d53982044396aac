"""Loads that operands of products are computed from: scaled, converted, unpacked."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation

from tilewright.ir.effects import is_free
from tilewright.ops.memory.ir import LoadOp, is_volatile


def computed_loads(block: Block, products: Sequence[Operation]) -> list[LoadOp]:
    """The loads of a block that operands of its `products` are computed from, in its order.

    Left out are volatile ones, and those that are operands as they are.
    """
    operands = [operand for product in products for operand in product.operands[:2]]
    seen, pending = set[Operation](), list(operands)
    while pending:
        op = pending.pop().owner
        if isinstance(op, Operation) and op.parent is block and op not in seen:
            seen.add(op)
            pending += op.operands if is_free(op) else ()
    loads = [op for op in block.ops if op in seen and isinstance(op, LoadOp)]
    return [load for load in loads if not is_volatile(load) and load.result not in operands]
