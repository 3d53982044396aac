"""How far a nest writes: elements behind the end of the masks of all its writes are left out.

    acc = where(r < n, acc + x, acc)          from n on every element is stored over itself
    tl.store(out + r, y, mask=r < n)          from n on nothing is stored

Of tiles that a loop carries, what is chosen between a new element and the old one is made where the
old one lies: where the mask is false it is there already. What is read for elements that are not
written is of no use, so loops end where the masks of all writes do.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from tilewright.ops.elementwise.ir import SelectOp
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.full_chunks import mask_of
from tilewright.targets.cpu.nests.prefixes import surely_false_from
from tilewright.targets.cpu.schedule.inline import is_tile, owner
from tilewright.targets.cpu.schedule.roots import Root, RootKind


def written_end(ev: Evaluator, roots: Sequence[Root], dim: int, size: int) -> SSAValue | None:
    """From which index (i32, at most `size`) on along a dimension no root writes; None: unknown."""
    emit = ev.emit
    total: SSAValue | None = None
    for root in roots:
        mask = _mask_of_write(ev, root)
        ends = [] if mask is None else surely_false_from(ev, mask).get(dim, [])
        if not ends:
            return None
        last = emit.constant(i64, size)
        for end in ends:
            last = emit.integer("minsi", last, end)
        total = last if total is None else emit.integer("maxsi", total, last)
    if total is None:
        return None
    return emit.narrow(emit.integer("maxsi", total, emit.constant(i64, 0)), i32)


def _mask_of_write(ev: Evaluator, root: Root) -> SSAValue | None:
    """The mask without which a root changes nothing; None where it writes all it runs over."""
    if root.kind is RootKind.STORE:
        return mask_of(root.op)
    if root.kind is not RootKind.MATERIALIZE or root.strides is not None:
        return None
    (value,) = root.values
    op = owner(value)
    if not isinstance(op, SelectOp) or not is_tile(op.condition):
        return None
    return op.condition if _is_there(ev, op.rhs, value) else None


def _is_there(ev: Evaluator, old: SSAValue, new: SSAValue) -> bool:
    """Whether each element of a tile lies where that of another one is written."""
    if old in ev.fresh or not is_tile(old) or not ev.lowering.bufferization.is_stored(old):
        return False
    source, target = ev.lowering.buffer(old), ev.lowering.buffer(new)
    return source.base is target.base and source == target
