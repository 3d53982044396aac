"""Keeps what a replica computes with its product behind the turn that it passes on (T1 to T1).

    turn_pass; softmax; %v = ring_wait …  ⇒  turn_pass; %v = ring_wait …; softmax

An assembler may compute first and pass the turn afterwards, as the two do not depend on each other;
the next replica then multiplies when this one is done, and nothing overlaps. A wait that loops is
a place that nothing is moved across. What it waits for is needed in the same iteration anyway.

Nothing else that a role does with rings or turns is passed over: the role that loads fills in the
order of the text, and may wait for what is done in between before it fills what is waited for.

*Source*: ptxas 13.0 put the arrival behind 64 of 66 exponentials of attention; H200, (8, 16, 8192,
128), bf16: 453 TFLOP/s so, against 634 where it comes first.
"""

from __future__ import annotations

from xdsl.ir import Block, Operation

from tilewright.ops.rings import ring_entered
from tilewright.ops.roles import passes_turn, shared_by_roles


def wait_behind_turns(body: Block) -> None:
    """In every block of a role, let the wait that follows the pass of a turn come right behind."""
    for passing in [op for op in body.walk() if passes_turn(op)]:
        wait = _next_wait(passing)
        if wait is not None:
            wait.detach()
            assert passing.parent is not None
            passing.parent.insert_op_after(wait, passing)


def _next_wait(passing: Operation) -> Operation | None:
    """The wait for a slot that follows in the block, before anything else that roles share."""
    op = passing.next_op
    while op is not None and not any(map(shared_by_roles, op.walk())):
        op = op.next_op
    return None if op is None or ring_entered(op) is None else op
