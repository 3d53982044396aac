"""What a launch computes and tests for boxes of plain pointers: sums as expressions over arguments.

A kernel carries the guards of all its boxes as one attribute, from the pass that makes them to the
metadata of the artifact.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Operation, SSAValue

from tilewright.analysis.affine.expression import Expression
from tilewright.analysis.affine.guards import Demand, Guard
from tilewright.ir.regions import counter_of
from tilewright.ir.types import width_bits
from tilewright.ops.function import FuncOp, function_around
from tilewright.ops.program.ir import GetGridExtentOp, GetNumProgramsOp, GetProgramIdOp
from tilewright.ops.program.persistence import most_programs
from tilewright.runtime.launch_numbers import (
    LaunchGuard,
    LaunchNumber,
    guards_from_metadata,
    guards_to_metadata,
    operands_of,
    parts_of,
    to_table,
)
from tilewright.targets.nvidia.tma.recipes import Known, expression_of

_ATTRIBUTE = "ttng.launch_guards"
_Kinds = Mapping[type[object], str]
_OF_GRID: _Kinds = {GetProgramIdOp: "program", GetNumProgramsOp: "programs"}
_OF_PERSISTENT: _Kinds = {GetGridExtentOp: "programs"}
"""A persistent kernel runs in other programs than those of the grid that is asked for."""
_DEMANDS = {Demand.MULTIPLE: "multiple", Demand.AT_LEAST: "at_least", Demand.AT_MOST: "at_most"}
# By definition: a launch computes in as many bits as addresses have.
_BITS = 64
_MAX_PARTS = 256
"""What a test of a launch may compute. Chosen, not measured: it is done once for each tensor."""


def number_of(expression: Expression) -> LaunchNumber | None:
    """A sum of products as a launch computes it; None where it depends on more than arguments."""
    return _sum(expression, expression_of)


def range_of(expression: Expression) -> LaunchNumber | None:
    """The same where it may depend on the grid, the program's number, and counters of loops."""
    return _in_size(_sum(expression, _Varying().number))


def _in_size(number: LaunchNumber | None) -> LaunchNumber | None:
    """A number, where a launch may compute as much."""
    if number is None or sum(1 for _ in parts_of([number])) > _MAX_PARTS:
        return None
    return number


def _sum(
    expression: Expression, scalar: Callable[[SSAValue], LaunchNumber | None]
) -> LaunchNumber | None:
    total: LaunchNumber = ("constant", 0)
    for coefficient, factors in expression.terms:
        term: LaunchNumber = ("constant", coefficient)
        for factor in factors:
            found = scalar(factor)
            if found is None:
                return None
            term = found if term == ("constant", 1) else ("mul", _BITS, term, found)
        total = term if total == ("constant", 0) else ("add", _BITS, total, term)
    return total


class _Varying:
    """Scalars over arguments, the grid, the program's number and counters; each is one object."""

    def __init__(self) -> None:
        self._known: Known = {}

    def number(self, value: SSAValue) -> LaunchNumber | None:
        """A scalar; None where it is made of something else."""
        return expression_of(value, self._leaf, self._known)

    def _leaf(self, value: SSAValue) -> LaunchNumber | None:
        """The number of the program, how many there are, or the counter of a loop."""
        if isinstance(value.owner, Operation):
            return _of_grid(value.owner)
        counter = counter_of(value.owner.parent_op())
        if counter is None or counter.value is not value:
            return None
        numbers = [self.number(bound) for bound in (counter.start, counter.end, counter.step)]
        found = [number for number in numbers if number is not None]
        return ("count", width_bits(value.type), *found) if len(found) == len(numbers) else None


def _of_grid(op: Operation) -> LaunchNumber | None:
    kinds = _OF_PERSISTENT if most_programs(function_around(op)) else _OF_GRID
    kind, axis = kinds.get(type(op)), op.properties.get("axis")
    return (kind, axis.value.data) if kind and isinstance(axis, IntegerAttr) else None


def launch_guard(guard: Guard, text: str = "") -> LaunchGuard | None:
    """A guard as a launch tests it; None where it speaks of what a launch does not know.

    `text` says it for people, where they may care.
    """
    number = range_of(guard.number)
    if number is None:
        return None
    return LaunchGuard(number, _DEMANDS[guard.demand], guard.bound, text)


def index_guard(index: SSAValue, text: str) -> LaunchGuard | None:
    """That an index is negative in no program; None where a launch may fail to see it.

    Where arguments are positive and nothing wraps, the launch sees it: it adds, multiplies and
    divides, and each program divides by the same. Bounds of a difference may be negative where no
    program has one that is.
    """
    number = range_of(Expression(((1, (index,)),)))
    if number is None or not _stays_positive(number):
        return None
    return LaunchGuard(number, _DEMANDS[Demand.AT_LEAST], 0, text)


def _stays_positive(number: LaunchNumber) -> bool:
    """Whether the bounds of a number are positive where those of its arguments are."""
    return all(map(_is_positive_of_positive, parts_of([number])))


def _is_positive_of_positive(part: LaunchNumber) -> bool:
    kind, first = part[:2]
    if kind == "constant":
        return isinstance(first, int) and first >= 0
    return kind != "sub" and not (kind in ("div", "rem") and _is_varying(operands_of(part)[-1]))


def _is_varying(number: LaunchNumber) -> bool:
    """Whether a launch bounds a number and does not know it."""
    return any(part[0] in ("program", "count") for part in parts_of([number]))


def add_guards(kernel: FuncOp, guards: Sequence[LaunchGuard]) -> None:
    """Demand more of the launches of a kernel."""
    kept: dict[str, LaunchGuard] = {}
    for guard in (*guards_of(kernel), *guards):
        known = kept.setdefault(_key(guard), guard)
        if known.of_stores:
            kept[_key(guard)] = guard  # what loads demand, too, is not of the stores alone
    if kept:
        entry = guards_to_metadata(list(kept.values()))
        kernel.attributes[_ATTRIBUTE] = StringAttr(json.dumps(entry))


def _key(guard: LaunchGuard) -> str:
    return json.dumps([*to_table([guard.number]), guard.demand, guard.bound])


def guards_of(kernel: FuncOp) -> tuple[LaunchGuard, ...]:
    """What a kernel demands of its launches."""
    text = kernel.attributes.get(_ATTRIBUTE)
    entry = json.loads(text.data) if isinstance(text, StringAttr) else {}
    return tuple(guards_from_metadata(entry))
