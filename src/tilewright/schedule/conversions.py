"""How a conversion of layout moves its elements: the choices, and the moves of the one taken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from math import prod

from tilewright.ir.annotations import decided
from tilewright.ir.encoding import layout_of
from tilewright.ir.plans import ExchangeAttr, ExchangePlan
from tilewright.ir.types import shape_of, storage_bytes
from tilewright.layout.atoms import atom_view
from tilewright.layout.convert import (
    Conversion,
    SharedRoundTrip,
    WarpShuffle,
    plan_conversion,
)
from tilewright.layout.gf2 import Span
from tilewright.layout.linear import LinearLayout
from tilewright.layout.roundtrip import plan_round_trip
from tilewright.layout.shuffle import plan_shuffle
from tilewright.ops.staging import ConvertLayoutOp
from tilewright.schedule.exchanges import CHECKS, CHOICES, too_few_bytes
from tilewright.support.dataclass import replace

MAX_SCRATCH_BYTES = 64 << 10
"""A conversion goes in several passes rather than take more of the shared memory than this.

Chosen, not measured: three programs of an H100 still fit on a multiprocessor, and what is larger
is right in smaller parts."""
# Chosen, not measured: a sixteenth of the tile is a choice for whoever has no room for more; the
# choice taken without being asked for does not depend on it.
_MAX_HALVINGS = 4
_MISSED = "a {} wants elements that {}"
_Ends = tuple[LinearLayout, LinearLayout, int]
"""The layouts of a conversion, and the bytes of an element."""


@cache
def _best(ends: _Ends) -> Conversion:
    source, target, element_bytes = ends
    return plan_conversion(source, target, element_bytes, max_bytes=MAX_SCRATCH_BYTES)


def _others(ends: _Ends) -> Iterator[Conversion]:
    """What else moves the elements: shuffles, then memory, as a whole and in ever smaller parts."""
    source, target, element_bytes = ends
    before, after = atom_view(source), atom_view(target)
    shuffle = plan_shuffle(before, after, element_bytes)
    if shuffle is not None:
        yield shuffle
    whole_bytes = prod(source.shape) * element_bytes
    for halvings in range(_MAX_HALVINGS + 1):
        yield plan_round_trip(before, after, element_bytes, max(1, whole_bytes >> halvings))


def _plan(made: Conversion) -> ExchangePlan:
    """What is decided where elements are moved in this way."""
    if isinstance(made, SharedRoundTrip):
        return ExchangePlan("memory", made.bytes, made.num_passes)
    return ExchangePlan("shuffle" if isinstance(made, WarpShuffle) else "registers")


def conversion_of(op: ConvertLayoutOp) -> Conversion:
    """How a conversion moves its elements, by its plan. *Raises*: PlanMissing before that."""
    return _moves(_ends(op), replace(decided(op, ExchangeAttr), reason=""))


@cache
def _moves(ends: _Ends, plan: ExchangePlan) -> Conversion:
    best = _best(ends)
    if _plan(best) == plan:
        return best
    return next(made for made in _others(ends) if _plan(made) == plan)


def _ends(op: ConvertLayoutOp) -> _Ends:
    return layout_of(op.src.type), layout_of(op.result.type), storage_bytes(op.src.type)


@CHOICES.register(ConvertLayoutOp)
def _choices(op: ConvertLayoutOp) -> Iterator[ExchangePlan]:
    ends = _ends(op)
    yield _plan(_best(ends))
    yield from map(_plan, _others(ends))


@CHECKS.register(ConvertLayoutOp)
def _check(op: ConvertLayoutOp, plan: ExchangePlan) -> str:
    """Each thread, or each warp, has what it wants; or the memory holds the tile."""
    if plan.method == "memory":
        return too_few_bytes(plan, prod(shape_of(op.src.type)) * storage_bytes(op.src.type))
    source, target = (atom_view(layout_of(value.type)) for value in (op.src, op.result))
    if plan.method == "registers":
        held, wanted = source.registers, target.registers
        moves = zip((*source.lanes, *source.warps), (*target.lanes, *target.warps), strict=True)
        return (
            "" if _is_within(held, wanted, moves) else _MISSED.format("thread", "it does not hold")
        )
    if plan.method == "shuffle":
        held, wanted = (*source.registers, *source.lanes), (*target.registers, *target.lanes)
        moves = zip(source.warps, target.warps, strict=True)
        return (
            "" if _is_within(held, wanted, moves) else _MISSED.format("warp", "no lane of it holds")
        )
    return f"there is no `{plan.method}`, but registers, shuffle and memory"


def _is_within(
    held: Sequence[int], wanted: Sequence[int], moves: Iterable[tuple[int, int]]
) -> bool:
    """Whether one at the origin holds what it wants, and all others do likewise.

    Layouts are linear: it is so everywhere if what each step to another one adds differs between
    source and target by elements that are held.
    """
    span = Span(held)
    return all(v in span for v in wanted) and all(a ^ b in span for a, b in moves)
