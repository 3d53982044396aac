"""Lets the products of a role's loop run on until something needs what they make (T1 to T1).

    s = dot k, q; t = dot v, o; p = f(s); d = g(p, t); dv = dot p, o, dv; release o
    ⇒ s = dot async k, q; t = dot async v, o; wait 1 (s); p = f(s); wait 0 (t); d = g(p, t)
      dv = dot async p, o, dv; … wait for dv; release o

In loops of more than two products: those of two are a stage apart or take turns. Loads of threads
and products of slots start where the body begins (`early_products.py`), the others stay in the
order of the text. A product is waited for right before the first op that takes its result, and all
that run where the iteration ends. A slot that a running product reads is given back behind
that wait. Only slots of rings are read so: what a role writes to shared memory itself it would
write again too early. A body with loops or branches that go through rings stays as it is: a slot
would be held while they ask for the next ones.

*Why here*: behind `overlap-products`, whose loops have their waits, and in front of the passes that
order accesses, which see how long a product reads.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block

from tilewright.ir.encoding import SharedType
from tilewright.ir.passes import Pass
from tilewright.ir.schedule_attributes import note_pipelining
from tilewright.ops.control_flow import counted_loops
from tilewright.ops.function import find_kernel
from tilewright.ops.roles import TurnWaitOp, find_roles, shared_by_roles
from tilewright.ops.staging import LaidOutDotOp
from tilewright.schedule.partition.early_products import start_early
from tilewright.schedule.partition.waiting import Waiting, slot_read, transpose_late
from tilewright.support.dataclass import dataclass

# By definition: loops of two have an order of their own (`overlap-products`).
FEWEST_PRODUCTS = 3


@dataclass(frozen=True)
class WaitLate(Pass):
    """The pass; see the module."""

    name = "wait-late"
    requires = "T1"
    produces = "T1"
    after = ("overlap-products",)

    def apply(self, module: ModuleOp) -> None:
        """Rewrite the loops of the kernel's roles."""
        roles = find_roles(find_kernel(module))
        for loop in () if roles is None else counted_loops(roles):
            body = loop.body.block
            if _is_fit(body):
                start_early(body)
                transpose_late(body)
                Waiting(body).run()
                note_pipelining(loop, "products run until something needs what they make")


def _is_fit(block: Block) -> bool:
    """Whether the products of a loop may run on: as many as are worth it, and of slots alone."""
    products = [op for op in block.ops if isinstance(op, LaidOutDotOp)]
    takes_turns = any(isinstance(op, TurnWaitOp) for op in block.ops)
    inner = (op for outer in block.ops if outer.regions for op in outer.walk())
    return (
        len(products) >= FEWEST_PRODUCTS
        and not takes_turns
        and not any(map(shared_by_roles, inner))
        and all(_reads_slots(op) for op in products)
    )


def _reads_slots(product: LaidOutDotOp) -> bool:
    """Whether a product runs by itself, and what it takes from shared memory are slots."""
    is_plain = product.product.data.instruction == "wgmma" and product.is_async is None
    shared = [v for v in (product.a, product.b) if isinstance(v.type, SharedType)]
    return is_plain and all(slot_read(value) is not None for value in shared)
