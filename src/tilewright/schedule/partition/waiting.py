"""Products of a body that run beside what follows, waited for where something needs them."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, UnitAttr, i32
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from tilewright.ir.encoding import SharedType
from tilewright.ir.op import build
from tilewright.ops.rings import RingReleaseOp, RingWaitOp
from tilewright.ops.shape.ir import PermutingOp
from tilewright.ops.staging import DotWaitOp, LaidOutDotOp, MemdescSliceOp, MemdescTransOp


def slot_read(value: SSAValue) -> RingWaitOp | None:
    """The wait for the slot that a shared tile is a view of; None for other tiles."""
    op = value.owner
    while isinstance(op, MemdescSliceOp | MemdescTransOp):
        op = op.src.owner
    return op if isinstance(op, RingWaitOp) else None


def transpose_late(block: Block) -> None:
    """Move each transposition of a product in front of who takes it: it needs the product there."""
    for op in [op for op in block.ops if isinstance(op, PermutingOp)]:
        users = {use.operation for use in op.result.uses}
        user = next((other for other in block.ops if other in users), None)
        if isinstance(op.src.owner, LaidOutDotOp) and user is not None:
            op.detach()
            block.insert_op_before(op, user)


class Waiting:
    """The walk over a body: the products that run, and the releases that wait for them."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._running: list[LaidOutDotOp] = []
        self._held: list[RingReleaseOp] = []

    def run(self) -> None:
        """Make the products asynchronous, and put the waits."""
        for op in tuple(self._block.ops):
            if op.has_trait(IsTerminator):
                self._wait(len(self._running), op)
                return
            self._wait_for(op)
            if isinstance(op, RingReleaseOp):
                self._give_back(op)
            elif isinstance(op, LaidOutDotOp):
                op.properties["is_async"] = UnitAttr()
                self._running.append(op)

    def _wait_for(self, op: Operation) -> None:
        """Wait for the products whose results an op, or what stands inside of it, takes."""
        taken = {operand for inner in op.walk() for operand in inner.operands}
        ended = [n for n, dot in enumerate(self._running, 1) if dot.result in taken]
        if ended:
            self._wait(ended[-1], op)

    def _wait(self, count: int, before: Operation) -> None:
        """Wait for the first products that run, and give back what only they have read."""
        ended, self._running = self._running[:count], self._running[count:]
        if not ended:
            return
        tiles = [dot.result for dot in ended]
        uses = [tuple(tile.uses) for tile in tiles]
        properties = {"pending": IntegerAttr(len(self._running), i32)}
        types = [tile.type for tile in tiles]
        wait = build(DotWaitOp, tiles, types, properties, location=before.location)
        self._block.insert_op_before(wait, before)
        for own, result in zip(uses, wait.results, strict=True):
            for use in own:
                operands = list(use.operation.operands)
                operands[use.index] = result
                use.operation.operands = operands
        for release in tuple(self._held):
            if not self._is_read(release):
                self._held.remove(release)
                release.detach()
                self._block.insert_op_before(release, before)

    def _give_back(self, release: RingReleaseOp) -> None:
        """Keep a slot that a running product reads until it has ended."""
        if self._is_read(release):
            self._held.append(release)

    def _is_read(self, release: RingReleaseOp) -> bool:
        """Whether a running product reads a slot of the ring."""
        operands = [operand for dot in self._running for operand in (dot.a, dot.b)]
        waits = [slot_read(v) for v in operands if isinstance(v.type, SharedType)]
        return any(wait is not None and wait.ring_of() is release.ring_of() for wait in waits)
