"""Loads of a loop that its products take something computed of: scaled, converted, unpacked."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue

from tilewright.analysis.facts import AxisFacts
from tilewright.ir.annotations import annotated
from tilewright.ir.effects import is_free
from tilewright.ir.plans import AccessAttr
from tilewright.ir.types import storage_bytes
from tilewright.ops.function import FuncOp
from tilewright.ops.memory.ir import LoadOp, is_volatile
from tilewright.schedule.plan.accesses import LEAST_COPY_BYTES


def computed_operands(kernel: FuncOp, block: Block, products: Sequence[Operation]) -> list[LoadOp]:
    """The loads of a block that operands of `products` are computed from, in its order.

    Left out are those that no copy to shared memory can make, of less than 4 bytes a lane, or that
    are volatile; those that are operands as they are, which products find in registers; and those
    that are known to load an element several times, as packed weights are: slots have a place for
    each time.
    """
    operands = [operand for product in products for operand in product.operands[:2]]
    seen, pending = set[Operation](), list(operands)
    while pending:
        op = pending.pop().owner
        if not isinstance(op, Operation) or op.parent is not block or op in seen:
            continue
        seen.add(op)
        pending += _read_by(op)
    loads = [op for op in block.ops if op in seen and isinstance(op, LoadOp) and _is_copied(op)]
    loads = [load for load in loads if load.result not in operands]
    if not loads:
        return []
    facts = AxisFacts(kernel)
    return [load for load in loads if max(facts.of(load.ptr).constancy) == 1]


def _read_by(op: Operation) -> Sequence[SSAValue]:
    """What an op computes its results from; nothing for one that does something else."""
    return op.operands if is_free(op) else ()


def _is_copied(load: LoadOp) -> bool:
    plan = annotated(load, AccessAttr)
    if plan is None or is_volatile(load):
        return False
    return plan.vector * storage_bytes(load.result.type) >= LEAST_COPY_BYTES
