"""Checks that rings with one memory use it one after the other, as far as the text shows.

    drained %p; fill %q … ; drained %q; fill %p …          the role that fills
    wait %p … release %p; wait %q … release %q             a role that reads

All rings of a memory stand in one block, and no op of it goes through two of them. Where the role
that fills goes on to another ring, it waits until all slots of the last one were read and released;
in a loop also from the last ring to the first. Who reads has given back all slots of a ring by
then, so that nobody waits for what stands behind that wait.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue

from tilewright.ir.regions import ControlFlowOp
from tilewright.ops.ring_queries import rings_by_memory
from tilewright.ops.rings import RingFill, RingOp, RingSettled, SlotAccess
from tilewright.ops.roles import Role, RolesOp
from tilewright.schedule.protocol.broken import broken, ring_name


def check_shared_memory(roles: RolesOp, rings: Sequence[RingOp]) -> None:
    """Check every role. *Raises*: ProtocolBroken."""
    for own in rings_by_memory(rings):
        if len(own) > 1:
            for role, region in zip(roles.described(), roles.bodies, strict=True):
                _Check(role, own).run(region.block)


class _Check:
    """The check of one role, and of the rings of one memory."""

    def __init__(self, role: Role, rings: Sequence[RingOp]) -> None:
        self._role = role
        self._rings: dict[SSAValue, RingOp] = {ring.result: ring for ring in rings}

    def run(self, body: Block) -> None:
        """Find the block in which the rings take turns, and check it."""
        for op in body.walk():
            if isinstance(op, SlotAccess) and op.is_conditional() and self._accessed(op):
                self._fail(op, "a slot is released under a condition")
        block, is_looped = body, False
        while (inner := self._only_child(block)) is not None:
            region_op, block = inner
            is_looped = is_looped or _is_loop(region_op)
        line = [(op, ring) for op in block.ops for ring in [self._ring_of(op)] if ring is not None]
        if is_looped and line:
            line = [*line, *line]
        self._check_line(line)

    def _only_child(self, block: Block) -> tuple[Operation, Block] | None:
        """The one block inside that goes through several of the rings, with its op."""
        for op in block.ops:
            if len(self._touched(op)) < 2:
                continue
            inner = [b for region in op.regions for b in region.blocks]
            going = [b for b in inner if any(self._touched(o) for o in b.ops)]
            beside = [o for o in block.ops if o is not op and self._touched(o)]
            if len(going) > 1 or beside:
                self._fail(op, "one op goes through several of them")
            return op, going[0]
        return None

    def _touched(self, op: Operation) -> set[RingOp]:
        """The rings of the memory that an op, or what it runs, goes through."""
        found = (self._accessed(inner) for inner in op.walk())
        return {ring for ring in found if ring is not None}

    def _accessed(self, op: Operation) -> RingOp | None:
        if isinstance(op, RingFill):
            return self._rings.get(op.ring)
        return self._rings.get(op.operands[0]) if isinstance(op, SlotAccess) else None

    def _ring_of(self, op: Operation) -> RingOp | None:
        """The ring that an op of the line goes through, or that it waits for."""
        if _drains(op):
            return self._rings.get(op.operands[0])
        return next(iter(self._touched(op)), None)

    def _fills(self, op: Operation) -> bool:
        """Whether an op, or what it runs, takes slots of these rings to fill them."""
        accesses = (inner for inner in op.walk() if self._accessed(inner) is not None)
        return any(isinstance(inner, SlotAccess) and inner.IS_TO_FILL for inner in accesses)

    def _check_line(self, line: Sequence[tuple[Operation, RingOp]]) -> None:
        current: RingOp | None = None
        drained: set[RingOp] = set()
        held, is_filling = 0, False
        for op, ring in line:
            if _drains(op):
                drained.add(ring)
                continue
            is_filling = is_filling or self._fills(op)
            if current is not None and ring is not current:
                if held:
                    self._fail(op, f"slots of ring {ring_name(current)} are held here")
                if is_filling and current not in drained:
                    self._fail(op, f"nothing waits until ring {ring_name(current)} is drained")
            current = ring
            drained.discard(ring)
            if isinstance(op, SlotAccess):
                held += 1 if op.TAKES_SLOT else -1

    def _fail(self, op: Operation, what: str) -> None:
        names = ", ".join(ring_name(ring) for ring in self._rings.values())
        raise broken(self._role.name, f"rings {names} have one memory: {what}", op)


def _drains(op: Operation) -> bool:
    """Whether an op waits until a ring is read."""
    return isinstance(op, RingSettled) and op.IS_EMPTY


def _is_loop(op: Operation) -> bool:
    return isinstance(op, ControlFlowOp) and op.is_loop()
