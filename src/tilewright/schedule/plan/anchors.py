"""Which ops the anchors of a schedule name: `dot#1` is the second product in text order.

The numbers are those of T0, so that a schedule means the same ops whatever is done to them later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from tilewright.ir.effects import global_access
from tilewright.ir.locations import describe, span_of
from tilewright.ir.schedule import REST, Anchor, Schedule
from tilewright.ir.schedule_attributes import name_anchor
from tilewright.ir.types import shape_of
from tilewright.ops.control_flow import ForOp
from tilewright.ops.descriptors.ir import DescriptorLoadOp
from tilewright.ops.elementwise.ir import CastOp
from tilewright.ops.matmul.ir import DotOp
from tilewright.ops.reduction.ir import ReduceOp
from tilewright.support.errors import MalformedSchedule


def anchors_of(kernel: Operation) -> dict[Anchor, Operation]:
    """Every anchor of a kernel with its op: by number in text order, by hint where it is unique.

    Of a loop, the numbers count from the loop on.
    """
    numbered: dict[str, list[Operation]] = {}
    hinted: dict[Anchor, list[Operation]] = {}
    for op in kernel.walk():
        kind = kind_of(op)
        if kind in _NUMBERED:
            numbered.setdefault(kind, []).append(op)
        for anchor in _hinted(op, kind):
            hinted.setdefault(anchor, []).append(op)
    anchors = {Anchor(k, i): op for k, ops in numbered.items() for i, op in enumerate(ops)}
    anchors.update((anchor, ops[0]) for anchor, ops in hinted.items() if len(ops) == 1)
    return anchors


def name_anchors(kernel: Operation) -> None:
    """Let the numbered ops of a kernel be found by their anchors at the levels below."""
    for anchor, op in anchors_of(kernel).items():
        if anchor.index >= 0:
            name_anchor(op, anchor)


_KINDS = {DotOp.name: "dot", ForOp.name: "for", ReduceOp.name: "reduce"}
_NUMBERED = ("dot", "load", "store", "for", "cvt", "reduce")


def by_engine(load: Operation) -> bool:
    """Whether a copy engine makes a load."""
    return isinstance(load, DescriptorLoadOp)


def kind_of(op: Operation) -> str:
    """The kind by which anchors name an op: `op` where it has none of its own.

    Accesses of tiles only are loads and stores: scalars go where they are needed.
    """
    kind = _KINDS.get(op.name)
    if kind is not None:
        return kind
    if isinstance(op, CastOp):
        return "cvt"
    access = global_access(op)
    if access is None or access.atomic is not None:
        return "op"
    if access.writes:
        return "store" if not access.reads and not op.results else "op"
    return "load" if op.results and shape_of(op.results[0].type) else "op"


def _hinted(op: Operation, kind: str) -> Iterator[Anchor]:
    hint = op.results[0].name_hint if op.results else None
    if hint:
        yield Anchor("op", hint=hint)
        if kind != "op":
            yield Anchor(kind, hint=hint)


def require_anchors(schedule: Schedule, kernel: Operation) -> Mapping[Anchor, Operation]:
    """The ops that a schedule names. *Raises*: MalformedSchedule for one that is not there."""
    anchors = anchors_of(kernel)
    named = [anchor for anchor in _named(schedule) if anchor != REST]
    for anchor in named:
        if anchor not in anchors:
            raise _unknown(anchor, anchors, kernel)
    return {anchor: anchors[anchor] for anchor in named}


def _named(schedule: Schedule) -> Iterator[Anchor]:
    for channel in schedule.channels:
        yield from channel.tiles
    for loop in schedule.loops:
        yield loop.loop
        yield from (anchor for anchor, _ in loop.places)
        yield from (s.subject for s in loop.order if isinstance(s.subject, Anchor))
    if schedule.turns is not None:
        yield schedule.turns.lock


def _name_of(kernel: Operation) -> str:
    name = kernel.properties["sym_name"]
    assert isinstance(name, StringAttr)
    return name.data


def _unknown(
    anchor: Anchor, anchors: Mapping[Anchor, Operation], kernel: Operation
) -> MalformedSchedule:
    there = [str(other) for other in anchors if other.kind == anchor.kind]
    is_loop = kind_of(kernel) == "for"
    what = f"the loop at {describe(kernel)}" if is_loop else f"`{_name_of(kernel)}`"
    where = "loop" if is_loop else "kernel"
    hint = f"there are {', '.join(there)}" if there else f"the {where} has no `{anchor.kind}`"
    span, chain = span_of(kernel)
    return MalformedSchedule(
        f"the schedule names `{anchor}`, which {what} does not have",
        hint=hint,
        span=span,
        chain=chain,
    )
