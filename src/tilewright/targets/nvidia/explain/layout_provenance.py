"""What decided the layout of a value: the op that made it so, and the op that wants it so."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Block, Operation, SSAValue, Use
from xdsl.traits import IsTerminator

from tilewright.ir.locations import describe
from tilewright.ir.regions import is_control_flow, receivers_of, sources_of
from tilewright.ops.staging import ConvertLayoutOp, LaidOutDotOp
from tilewright.schedule.layout.anchors import ANCHORS
from tilewright.schedule.layout.transfer import is_source, is_tile
from tilewright.support.dataclass import dataclass

_TEXTS = {
    "tt.load": "the load wants adjacent elements in adjacent lanes",
    "tt.store": "the store wants adjacent elements in adjacent lanes",
    "ttg.async_copy_global_to_local": "the copy wants adjacent elements in adjacent lanes",
    "tt.reduce": "the reduction folds its operand where it is",
    "tt.scan": "the scan walks along its axis",
    "tt.gather": "the gather reads its operand where it is",
    "tt.cat": "the halves of a `cat` are in the same threads",
    "tt.split": "a split wants both halves in one thread",
    "ttg.local_load": "it is read from shared memory",
    "ttg.local_alloc": "it goes to shared memory",
    "ttg.local_store": "it goes to shared memory",
}


@dataclass(frozen=True)
class Requirement:
    """Why a tile is in its layout: a reason in words, and the line of the op that it comes from."""

    text: str
    line: str


def requirement_of_source(value: SSAValue) -> Requirement:
    """What decided the layout in which a value was made."""
    return _first((value,), _sources, _made_by) or _default(value)


def requirement_of_uses(value: SSAValue) -> Requirement:
    """What asked for a value in its layout."""
    for use in value.uses:
        found = _wanted_by(use.operation)
        if found is not None:
            return found
    return _first((value,), _users, _wanted_by_users) or _default(value)


def _first(
    start: Sequence[SSAValue],
    step: Callable[[SSAValue], Sequence[SSAValue]],
    look: Callable[[SSAValue], Requirement | None],
) -> Requirement | None:
    """The first requirement on the way from some values, breadth first."""
    pending, seen = list(start), set(start)
    for value in pending:
        found = look(value)
        if found is not None:
            return found
        for other in step(value):
            if other not in seen:
                seen.add(other)
                pending.append(other)
    return None


def _default(value: SSAValue) -> Requirement:
    owner = value.owner
    line = "" if isinstance(owner, Block) else describe(owner)
    return Requirement("nothing decides its layout", line)


# --- backward ---


def _sources(value: SSAValue) -> Sequence[SSAValue]:
    owner = value.owner
    handed_on = sources_of(value)
    if handed_on is not None or isinstance(owner, Block) or owner.regions:
        return handed_on or ()
    return [] if is_source(owner) else [v for v in owner.operands if is_tile(v)]


def _made_by(value: SSAValue) -> Requirement | None:
    owner = value.owner
    return None if isinstance(owner, Block) or owner.regions else _text_of(owner, is_result=True)


# --- forward ---


def _users(value: SSAValue) -> Sequence[SSAValue]:
    return [after for use in value.uses for after in _passed_on(use)]


def _passed_on(use: Use) -> Sequence[SSAValue]:
    """The values that hold an operand of an op after it."""
    op = use.operation
    is_end = is_control_flow(op) or op.has_trait(IsTerminator)
    return receivers_of(use) if is_end else op.results


def _wanted_by_users(value: SSAValue) -> Requirement | None:
    found = (_wanted_by(use.operation) for use in value.uses)
    return next((requirement for requirement in found if requirement is not None), None)


def _wanted_by(op: Operation) -> Requirement | None:
    return _text_of(op, is_result=False)


def _text_of(op: Operation, *, is_result: bool) -> Requirement | None:
    if isinstance(op, LaidOutDotOp):
        what = "leaves its result" if is_result else "takes its operand"
        return Requirement(f"the {op.product.data.instruction} product {what} so", describe(op))
    text = _TEXTS.get(op.name)
    if text is None and ANCHORS.find(type(op)) is not None and not isinstance(op, ConvertLayoutOp):
        text = f"the {op.name.partition('.')[2]} has layouts of its own"
    return None if text is None else Requirement(text, describe(op))
