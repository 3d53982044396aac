"""Which slot of a ring a view is of, counted from a slot that another value names.

A slot that is n behind another in a ring of s is `select(x + n >= s, x + n - s, x + n)`; two that
count from the same value are the same slot where they are equally far from it, modulo s.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Block, Operation, SSAValue

from tilewright.analysis.alias import is_shared
from tilewright.ir.encoding import SharedType
from tilewright.ir.types import i32
from tilewright.ops.creation.ir import constant_of
from tilewright.ops.elementwise.comparisons import integer_predicate
from tilewright.ops.elementwise.ir import ELEMENTWISE, SelectOp
from tilewright.ops.staging import MemdescIndexOp
from tilewright.support.dataclass import dataclass

_AT_LEAST = "uge"


@dataclass(frozen=True)
class RingPosition:
    """A slot of `ring`, `steps` behind the one that `base` names; behind slot 0 without a base."""

    ring: SSAValue
    slots: int
    base: SSAValue | None
    steps: int

    def is_other(self, position: RingPosition) -> bool:
        """Whether two positions are certainly of different slots, or rings."""
        if self.ring is not position.ring:
            return False
        return self.base is position.base and self.steps != position.steps


Count = Callable[[SSAValue, int], tuple[SSAValue | None, int]]
"""`counted_from`, or what remembers its answers."""


def position_of(view: SSAValue, count: Count) -> RingPosition | None:
    """The position that a view is of; None for what is no slot of a ring, as far as is known."""
    owner: Operation | Block | None = view.owner
    while isinstance(owner, Operation):
        if isinstance(owner, MemdescIndexOp):
            return _named_by(owner, count)
        # A view of a view is of the same slot.
        seen = next((operand for operand in owner.operands if is_shared(operand)), None)
        owner = None if seen is None else seen.owner
    return None


def _named_by(view: MemdescIndexOp, count: Count) -> RingPosition | None:
    type_ = view.src.type
    if not isinstance(type_, SharedType) or type_.slots.data < 2:
        return None
    slots = type_.slots.data
    base, steps = count(view.index, slots)
    return RingPosition(view.src, slots, base, steps)


def counted_from(index: SSAValue, slots: int) -> tuple[SSAValue | None, int]:
    """A slot as the value that it is counted from (None: from slot 0), and how far."""
    steps = 0
    while True:
        known = constant_of(index)
        if known is not None:
            return None, (int(known) + steps) % slots
        found = _step(index, slots)
        if found is None:
            return index, steps % slots
        index, moved = found
        steps += moved


def _step(index: SSAValue, slots: int) -> tuple[SSAValue, int] | None:
    """The slot that another is computed from, and how far that is behind it."""
    choice = index.owner
    if not isinstance(choice, SelectOp):
        return None
    test, wrapped, moved = choice.condition.owner, choice.lhs.owner, choice.rhs
    add = moved.owner
    if not isinstance(test, Operation) or integer_predicate(test) != _AT_LEAST:
        return None
    if not isinstance(add, ELEMENTWISE["arith.addi"]):
        return None
    if not isinstance(wrapped, ELEMENTWISE["arith.subi"]):
        return None
    source, steps = add.operands[0], constant_of(add.operands[1])
    sizes = [constant_of(test.operands[1]), constant_of(wrapped.operands[1])]
    is_same = test.operands[0] is moved and wrapped.operands[0] is moved
    if steps is None or sizes != [slots, slots] or not is_same or source.type != i32:
        return None
    return (source, int(steps)) if 0 <= steps < slots else None
