"""Loads of a loop that its products take something computed of: scaled, converted, unpacked."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue

from tilewright.ir.annotations import annotated
from tilewright.ir.effects import is_free
from tilewright.ir.plans import AccessAttr
from tilewright.ir.types import storage_bytes
from tilewright.schedule.plan.anchors import kind_of

# Source: PTX ISA 8.8, cp.async: the least that one instruction of a lane copies.
_LEAST_COPY_BYTES = 4


def computed_operands(block: Block, products: Sequence[Operation]) -> list[Operation]:
    """The loads of a block that operands of `products` are computed from, in its order.

    Those that no copy to shared memory can make, of less than 4 bytes a lane, are left out.
    """
    seen = set[Operation]()
    pending = [operand for product in products for operand in product.operands[:2]]
    while pending:
        op = pending.pop().owner
        if not isinstance(op, Operation) or op.parent is not block or op in seen:
            continue
        seen.add(op)
        pending += _read_by(op)
    return [op for op in block.ops if op in seen and _is_copied(op)]


def _read_by(op: Operation) -> Sequence[SSAValue]:
    """What an op computes its results from; nothing for one that does something else."""
    return op.operands if is_free(op) else ()


def _is_copied(op: Operation) -> bool:
    plan = annotated(op, AccessAttr) if kind_of(op) == "load" else None
    if plan is None:
        return False
    return plan.vector * storage_bytes(op.results[0].type) >= _LEAST_COPY_BYTES
