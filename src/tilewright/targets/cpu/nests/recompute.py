"""Scalars of tile ops computed once more, where they are wanted before their turn comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Operation, SSAValue

from tilewright.ir.effects import is_free
from tilewright.support.dataclass import replace
from tilewright.support.worklist import needed_first
from tilewright.targets.cpu.nests.emitter import Emitter
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.schedule.inline import is_tile, owner
from tilewright.targets.cpu.schedule.lowering import Lowering
from tilewright.targets.cpu.schedule.roots import operands_of, reach, scalars_of


def can_recompute(lowering: Lowering, tile: SSAValue) -> bool:
    """Whether every scalar that a tile is made of is known here, or can be computed here."""
    bufferization = lowering.bufferization
    for value in reach((tile,), bufferization.stored):
        made = owner(value)
        if is_tile(value):
            if bufferization.is_stored(value) or made is None or not is_free(made):
                return False
            continue
        seen = set(lowering.scalars)
        for needed in needed_first(value, operands_of, seen.__contains__):
            seen.add(needed)
            op = owner(needed)
            if op is None or is_tile(needed) or op.regions or not is_free(op):
                return False
    return True


def _unchanged(op: Operation, value: SSAValue) -> SSAValue:
    return value


def with_scalars_of(
    lowering: Lowering,
    emit: Emitter,
    tile: SSAValue,
    changed: Callable[[Operation, SSAValue], SSAValue] = _unchanged,
    is_known: Callable[[SSAValue], bool] | None = None,
) -> Evaluator:
    """An evaluator of a tile, with the scalars that it is made of computed here.

    `changed` may put another value in the place of what an op makes. `is_known` says which
    scalars are taken as they are: by default those that there are.
    """
    taken = lowering.scalars.__contains__ if is_known is None else is_known

    def below(value: SSAValue) -> Sequence[SSAValue]:
        return () if taken(value) else operands_of(value)

    values: dict[SSAValue, SSAValue] = {}
    for scalar in scalars_of(tile):
        for value in needed_first(scalar, below, values.__contains__):
            op = owner(value)
            if op is None or taken(value):
                values[value] = lowering.scalar(value)
                continue
            operands = [values[operand] for operand in op.operands]
            found = emit.pure(type(op), operands, value.type, dict(op.properties), op.location)
            values[value] = changed(op, found)
    there = replace(lowering, scalars={**lowering.scalars, **values})
    return Evaluator(there, emit)
