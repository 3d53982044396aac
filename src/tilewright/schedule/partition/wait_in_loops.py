"""Lets the products of a loop without roles run on until something needs them (T1 to T1).

    s = dot k, q; p = f(s); dv = dot p, o, dv; t = dot v, o; d = g(p, t); dk = dot d, q, dk
    ⇒ s = dot async k, q; t = dot async v, o; wait 1 (s); p = f(s); dv = dot async p, o, dv
      wait 1 (t); d = g(p, t); dk = dot async d, q, dk; wait 0

As `wait-late` does in roles: for loops of more than two products, whose tiles in shared memory lie
there for the whole loop: slots that copies fill, and what was put there before it. What threads
write in the loop they would write again too early. All products have ended where an iteration
ends, so the copies of the next one may fill what they read.

*Why here*: behind `pipeline-loops`, which makes the slots, and in front of the passes that order
accesses, which see how long a product reads.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from tilewright.ir.effects import Access, Resource, own_effects
from tilewright.ir.encoding import SharedType
from tilewright.ir.passes import Pass
from tilewright.ir.schedule_attributes import note_pipelining, pipelining_of
from tilewright.ops.control_flow import ForOp, counted_loops
from tilewright.ops.function import find_kernel
from tilewright.ops.roles import find_roles
from tilewright.ops.staging import (
    LaidOutDotOp,
    LocalAllocOp,
    MemdescIndexOp,
    MemdescSliceOp,
    MemdescTransOp,
)
from tilewright.schedule.partition.early_products import start_early
from tilewright.schedule.partition.waiting import Waiting, transpose_late
from tilewright.support.dataclass import dataclass

# By definition: one of two has nothing beside it that runs.
_FEWEST_PRODUCTS = 3
_VIEWS = (MemdescIndexOp, MemdescSliceOp, MemdescTransOp)


@dataclass(frozen=True)
class WaitInLoops(Pass):
    """The pass; see the module."""

    name = "wait-in-loops"
    requires = "T1"
    produces = "T1"
    after = ("pipeline-loops",)

    def apply(self, module: ModuleOp) -> None:
        """Rewrite the loops of a kernel without roles."""
        kernel = find_kernel(module)
        if find_roles(kernel) is not None:
            return
        for loop in counted_loops(kernel):
            if _is_fit(loop):
                start_early(loop.body.block)
                transpose_late(loop.body.block)
                Waiting(loop.body.block).run()
                text = "products run until something needs what they make"
                before = pipelining_of(loop)
                note_pipelining(loop, f"{before}; {text}" if before else text)


def _is_fit(loop: ForOp) -> bool:
    """Whether the products of a loop may run on: as many as are worth it, of kept tiles alone."""
    products = [op for op in loop.body.block.ops if isinstance(op, LaidOutDotOp)]
    return len(products) >= _FEWEST_PRODUCTS and all(_may_run(op, loop) for op in products)


def _may_run(product: LaidOutDotOp, loop: ForOp) -> bool:
    is_plain = product.product.data.instruction == "wgmma" and product.is_async is None
    shared = [v for v in (product.a, product.b) if isinstance(v.type, SharedType)]
    return is_plain and all(_is_kept(value, loop) for value in shared)


def _is_kept(value: SSAValue, loop: ForOp) -> bool:
    """Whether a shared tile lies outside of a loop: a slot, or what the loop does not write."""
    place, is_slot = _place_of(value)
    if not isinstance(place, LocalAllocOp) or _is_inside(place, loop):
        return False
    return is_slot or not any(_writes(op, place) for op in loop.walk())


def _place_of(value: SSAValue) -> tuple[Operation | Block, bool]:
    """What makes the memory that a shared tile is a view of, and whether it is a slot of that."""
    op, is_slot = value.owner, False
    while isinstance(op, _VIEWS):
        is_slot = is_slot or isinstance(op, MemdescIndexOp)
        op = op.src.owner
    return op, is_slot


def _writes(op: Operation, place: LocalAllocOp) -> bool:
    """Whether an op itself writes the memory of an allocation."""
    written = [
        effect.value
        for effect in own_effects(op)
        if isinstance(effect, Access) and effect.is_on(Resource.SHARED) and effect.writes
    ]
    return any(value is not None and _place_of(value)[0] is place for value in written)


def _is_inside(op: Operation, loop: ForOp) -> bool:
    around = op.parent_op()
    while around is not None and around is not loop:
        around = around.parent_op()
    return around is loop
