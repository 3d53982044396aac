"""Loads of a loop that its products take something computed of: scaled, converted, unpacked."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation

from tilewright.analysis.computed_loads import computed_loads
from tilewright.analysis.facts import AxisFacts
from tilewright.ir.annotations import annotated
from tilewright.ir.plans import AccessAttr
from tilewright.ir.types import storage_bytes
from tilewright.ops.function import FuncOp
from tilewright.ops.memory.ir import LoadOp
from tilewright.schedule.plan.accesses import LEAST_COPY_BYTES


def computed_operands(kernel: FuncOp, block: Block, products: Sequence[Operation]) -> list[LoadOp]:
    """The loads of a block that operands of `products` are computed from, in its order.

    Left out are those that no copy to shared memory can make, of less than 4 bytes a lane, or that
    are volatile; those that are operands as they are, which products find in registers; and those
    that are known to load an element several times, as packed weights are: slots have a place for
    each time.
    """
    loads = [load for load in computed_loads(block, products) if _is_copied(load)]
    if not loads:
        return []
    facts = AxisFacts(kernel)
    return [load for load in loads if max(facts.of(load.ptr).constancy) == 1]


def _is_copied(load: LoadOp) -> bool:
    plan = annotated(load, AccessAttr)
    return plan is not None and plan.vector * storage_bytes(load.result.type) >= LEAST_COPY_BYTES
