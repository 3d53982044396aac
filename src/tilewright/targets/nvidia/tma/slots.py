"""Loads of the copy engine that run ahead of their loop, to slots with an mbarrier each."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.ir.encoding import SharedType
from tilewright.ops.function import function_around
from tilewright.ops.staging import LocalAllocOp
from tilewright.schedule.pipeline.emitter import Emitter
from tilewright.schedule.pipeline.expansion import Start
from tilewright.schedule.pipeline.fetches import Fetch
from tilewright.support.dataclass import dataclass
from tilewright.targets.nvidia.tma.box_annotations import copy_box
from tilewright.targets.nvidia.tma_ops import (
    TmaDoneOp,
    TmaLoadOp,
    TmaLoadSlotOp,
    TmaWaitOp,
    TmaWaitSlotOp,
    find_init,
)


@dataclass(frozen=True)
class TmaEngine:
    """The engine that `pipeline-loops` asks for."""

    def fetch(self, op: Operation) -> Fetch | None:
        """A load to a tile that is made for it and waited for once, with others that are too."""
        if not isinstance(op, TmaLoadOp):
            return None
        alloc, waits = op.dst.owner, [use.operation for use in op.token.uses]
        is_own = isinstance(alloc, LocalAllocOp) and alloc.parent is op.parent
        if not is_own or len(waits) != 1 or waits[0].parent is not op.parent:
            return None
        assert isinstance(alloc, LocalAllocOp) and isinstance(op.dst.type, SharedType)
        inputs = (op.desc, *op.indices)
        return Fetch(op, inputs, op.dst.type, alloc=alloc, by_engine=True)

    def waits(self, fetches: Sequence[Fetch]) -> Sequence[Operation]:
        """The waits for some loads as they are in the loop."""
        found = [use.operation for fetch in fetches for use in fetch.load.results[0].uses]
        return list(dict.fromkeys(found))

    def unfit(self, fetches: Sequence[Fetch]) -> str:
        """Why these loads do not run ahead without others; '' where they do."""
        loads = {fetch.load for fetch in fetches}
        for wait in self.waits(fetches):
            assert isinstance(wait, TmaWaitOp)
            if any(token.owner not in loads for token in wait.tokens):
                return "a load that stays is waited for together with one that runs ahead"
        return ""

    def reserve(self, loop: Operation, slots: int) -> int:
        """Have an mbarrier for each slot; the first."""
        kernel = function_around(loop)
        init = find_init(kernel)
        assert init is not None
        first = init.count.value.data
        init.properties["count"] = IntegerAttr(first + slots, i32)
        return first

    def start(
        self, out: Emitter, load: Operation, inputs: Sequence[SSAValue], start: Start
    ) -> None:
        """Start a load with other inputs, to a slot."""
        desc, *indices = inputs
        properties: dict[str, Attribute] = {"barrier": IntegerAttr(start.barriers, i32)}
        if start.announced_bytes:
            properties["announced_bytes"] = IntegerAttr(start.announced_bytes, i32)
        if "is_fenced" in load.properties:
            properties["is_fenced"] = load.properties["is_fenced"]
        operands = [desc, start.view, start.slot, start.is_there, *indices]
        copy_box(load, out.emit(TmaLoadSlotOp, operands, (), properties))

    def finish(self, out: Emitter, rings: Sequence[SSAValue]) -> None:
        """Note behind the loop that all has come."""
        out.emit(TmaDoneOp, rings)

    def wait(
        self,
        out: Emitter,
        views: Sequence[SSAValue],
        position: Sequence[SSAValue],
        barriers: int,
    ) -> None:
        """Wait until the tiles of a slot, of a phase, have come."""
        properties = {"barrier": IntegerAttr(barriers, i32)}
        out.emit(TmaWaitSlotOp, [*views, *position], (), properties)
