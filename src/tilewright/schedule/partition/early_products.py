"""Starts what a loop's body only waits for: loads first, then products of tiles that are there.

    p = f(dot k, q); dv = dot p, o, dv; n = load …; t = dot v, o; d = g(p, t, n)
    ⇒ n = load …; s = dot k, q; t = dot v, o; p = f(s); dv = dot p, o, dv; d = g(p, t, n)

Only the order of ops without effects, of plain loads, of products and of waits for slots changes,
up to the first other op behind the first product. What is moved takes what it needs along.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.ir import Block, Operation
from xdsl.traits import IsTerminator

from tilewright.ir.effects import is_free, is_plain_read
from tilewright.ir.encoding import SharedType
from tilewright.ops.memory.ir import LoadOp
from tilewright.ops.rings import RingWaitOp
from tilewright.ops.staging import LaidOutDotOp
from tilewright.schedule.plan.copies import is_volatile


def start_early(block: Block) -> None:
    """Reorder the body of a loop; see the module."""
    stretch = _stretch(block)
    inside = set(stretch)
    loads = _with_needed([op for op in stretch if isinstance(op, LoadOp)], inside)
    products = _with_needed([op for op in stretch if _is_ready(op, inside)], inside)
    if not products:
        return
    chosen = dict.fromkeys((*loads, *products))
    ordered = [*chosen, *(op for op in stretch if op not in chosen)]
    place = stretch[-1].next_op
    assert place is not None
    for op in ordered:
        op.detach()
        block.insert_op_before(op, place)


def _stretch(block: Block) -> list[Operation]:
    """The ops around the first product that may change places with each other."""
    found: list[Operation] = []
    has_product = False
    for op in block.ops:
        if _is_movable(op):
            found.append(op)
            has_product = has_product or isinstance(op, LaidOutDotOp)
        elif has_product:
            break
        else:
            found = []
    return found if has_product else []


def _is_movable(op: Operation) -> bool:
    if isinstance(op, LaidOutDotOp | RingWaitOp):
        return True
    is_plain = isinstance(op, LoadOp) and is_plain_read(op) and not is_volatile(op)
    return is_plain or (is_free(op) and not op.regions and not op.has_trait(IsTerminator))


def _is_ready(op: Operation, inside: set[Operation]) -> bool:
    """Whether a product takes tiles of shared memory only, and adds to nothing of the stretch."""
    if not isinstance(op, LaidOutDotOp):
        return False
    is_shared = isinstance(op.a.type, SharedType) and isinstance(op.b.type, SharedType)
    needed = _with_needed([op], inside)
    return is_shared and not any(
        isinstance(other, LoadOp | LaidOutDotOp) for other in needed if other is not op
    )


def _with_needed(ops: Iterable[Operation], inside: set[Operation]) -> Sequence[Operation]:
    """Ops and what they are computed from among those inside, in an order that works."""
    found: dict[Operation, None] = {}
    pending = list(reversed(list(ops)))
    while pending:
        op = pending[-1]
        owners = (operand.owner for operand in op.operands)
        missing = [o for o in owners if isinstance(o, Operation) and o in inside and o not in found]
        if missing:
            pending += missing
            continue
        pending.pop()
        found[op] = None
    return tuple(found)
