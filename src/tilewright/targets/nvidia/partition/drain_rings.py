"""Lets who fills rings with one memory wait before another one of them is filled (T1 to T1).

    for … { ring_acquire %p … }; for … { ring_acquire %q … }
    ⇒ for … { ring_acquire %p … }; ring_drained %p; for … { ring_acquire %q … }

In a loop around both, `ring_drained %q` stands in front of the first one, too. That the rings go
one after the other was proved where the roles were formed (`schedule/partition/lives.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Block, Operation

from tilewright.ir.edits import insert_before
from tilewright.ir.op import build
from tilewright.ir.regions import ControlFlowOp
from tilewright.ops.ring_queries import rings_by_memory
from tilewright.ops.rings import RingAcquireOp, RingDrainedOp, RingOp
from tilewright.ops.roles import RolesOp


def drain_rings(roles: RolesOp) -> None:
    """Put the waits for all rings of a program with roles."""
    assert roles.parent is not None
    for rings in rings_by_memory(op for op in roles.parent.ops if isinstance(op, RingOp)):
        for body in roles.bodies if len(rings) > 1 else ():
            _drain(body.block, rings)


def _drain(body: Block, rings: Sequence[RingOp]) -> None:
    block, is_looped = body, False
    while (around := _around_all(block, rings)) is not None:
        op, block = around
        is_looped = is_looped or (isinstance(op, ControlFlowOp) and op.is_loop())
    line = [(op, ring) for op in block.ops for ring in _filled(op, rings)]
    if not line:
        return
    before = line[-1][1] if is_looped else line[0][1]
    for op, ring in line:
        if ring is not before:
            insert_before(op, build(RingDrainedOp, [before.result], (), location=op.location))
        before = ring


def _around_all(block: Block, rings: Sequence[RingOp]) -> tuple[Operation, Block] | None:
    """The one op of a block that has the fills of several rings inside, with their block."""
    for op in block.ops:
        if len(set(_filled(op, rings))) < 2:
            continue
        inner = (b for region in op.regions for b in region.blocks)
        return op, next(b for b in inner if any(True for o in b.ops for _ in _filled(o, rings)))
    return None


def _filled(op: Operation, rings: Sequence[RingOp]) -> Iterator[RingOp]:
    """The rings of which an op, or what it runs, acquires slots, each once."""
    found = (i.ring_of() for i in op.walk() if isinstance(i, RingAcquireOp))
    return (ring for ring in dict.fromkeys(found) if ring in rings)
