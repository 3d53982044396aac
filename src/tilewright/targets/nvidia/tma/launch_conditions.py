"""What a launch computes and tests for boxes of plain pointers: sums as expressions over arguments.

A kernel carries the guards of all its boxes as one attribute, from the pass that makes them to the
metadata of the artifact.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import BlockArgument, Operation, SSAValue

from tilewright.analysis.affine.expression import Expression
from tilewright.analysis.affine.guards import Demand, Guard
from tilewright.ir.regions import counter_of
from tilewright.ir.types import width_bits
from tilewright.ops.function import FuncOp
from tilewright.ops.program.ir import GetNumProgramsOp, GetProgramIdOp
from tilewright.runtime.launch_numbers import LaunchGuard, LaunchNumber
from tilewright.targets.nvidia.tma.recipes import expression_of

_ATTRIBUTE = "ttng.launch_guards"
_Kinds = Mapping[type[object], str]
_OF_GRID: _Kinds = {GetProgramIdOp: "program", GetNumProgramsOp: "programs"}
_DEMANDS = {Demand.MULTIPLE: "multiple", Demand.AT_LEAST: "at_least", Demand.AT_MOST: "at_most"}
# By definition: a launch computes in as many bits as addresses have.
_BITS = 64
_MAX_NODES = 256
"""What a test of a launch may compute. Chosen, not measured: it is done once for each tensor."""


def number_of(expression: Expression) -> LaunchNumber | None:
    """A sum of products as a launch computes it; None where it depends on more than arguments."""
    return _sum(expression, expression_of)


def range_of(expression: Expression) -> LaunchNumber | None:
    """The same where it may depend on the grid, the program's number, and counters of loops."""
    found = _sum(expression, _varying)
    return None if found is None or _size(found) > _MAX_NODES else found


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


def _varying(value: SSAValue) -> LaunchNumber | None:
    """A scalar over arguments, the grid, the program's number, counters; None where it is none."""
    return expression_of(value, leaf=_leaf)


def _leaf(value: SSAValue) -> LaunchNumber | None:
    """The number of the program, how many there are, or the counter of a loop."""
    if not isinstance(value, BlockArgument):
        kind = _OF_GRID.get(type(value.owner))
        axis = value.owner.properties.get("axis") if isinstance(value.owner, Operation) else None
        return (kind, axis.value.data) if kind and isinstance(axis, IntegerAttr) else None
    counter = counter_of(value.owner.parent_op())
    if counter is None or counter.value is not value:
        return None
    numbers = [_varying(bound) for bound in (counter.start, counter.end, counter.step)]
    found = [number for number in numbers if number is not None]
    return ("count", width_bits(value.type), *found) if len(found) == len(numbers) else None


def _size(number: LaunchNumber) -> int:
    return 1 + sum(_size(part) for part in number if isinstance(part, tuple | list))


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
    number = _varying(index)
    if number is None or _size(number) > _MAX_NODES or not _stays_positive(number):
        return None
    return LaunchGuard(number, _DEMANDS[Demand.AT_LEAST], 0, text)


def _stays_positive(number: LaunchNumber) -> bool:
    """Whether the bounds of a number are positive where those of its arguments are."""
    kind, first, *rest = number
    if kind == "constant":
        return isinstance(first, int) and first >= 0
    if kind in ("div", "rem") and _is_varying(rest[-1]):
        return False
    parts = [part for part in rest if isinstance(part, tuple | list)]
    return kind != "sub" and all(map(_stays_positive, parts))


def _is_varying(number: object) -> bool:
    """Whether a launch bounds a number and does not know it."""
    if not isinstance(number, tuple | list):
        return False
    return number[0] in ("program", "programs", "count") or any(map(_is_varying, number))


def add_guards(kernel: FuncOp, guards: Sequence[LaunchGuard]) -> None:
    """Demand more of the launches of a kernel."""
    kept: dict[str, LaunchGuard] = {}
    for guard in (*guards_of(kernel), *guards):
        known = kept.setdefault(_key(guard), guard)
        if known.of_stores:
            kept[_key(guard)] = guard  # what loads demand, too, is not of the stores alone
    if kept:
        entries = [guard.to_metadata() for guard in kept.values()]
        kernel.attributes[_ATTRIBUTE] = StringAttr(json.dumps(entries))


def _key(guard: LaunchGuard) -> str:
    return json.dumps([guard.number, guard.demand, guard.bound])


def guards_of(kernel: FuncOp) -> tuple[LaunchGuard, ...]:
    """What a kernel demands of its launches."""
    text = kernel.attributes.get(_ATTRIBUTE)
    entries = json.loads(text.data) if isinstance(text, StringAttr) else []
    return tuple(map(LaunchGuard.from_metadata, entries))
