"""Numbers of a launch as a table, in which what several have in common stands once.

A tile's number is in the guards of every load and store, and several times in each; written out,
what programs that walk over tiles demand is ten times as long as what there is to compute.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from tilewright.runtime.launch_numbers import LaunchNumber

LEAVES = frozenset({"slot", "constant", "program", "programs"})
"""The kinds of numbers that are made of no others."""


def operands_of(number: LaunchNumber) -> Sequence[LaunchNumber]:
    """The numbers that a number is computed from."""
    return () if number[0] in LEAVES else cast("Sequence[LaunchNumber]", number[2:])


def parts_of(numbers: Sequence[LaunchNumber]) -> Iterator[LaunchNumber]:
    """The numbers and all that they are computed from, each object once, operands first."""
    seen = set[int]()
    pending = [(number, False) for number in reversed(numbers)]
    while pending:
        number, is_ready = pending.pop()
        if is_ready:
            yield number
        elif id(number) not in seen:
            seen.add(id(number))
            pending.append((number, True))
            pending += [(operand, False) for operand in reversed(operands_of(number))]


def to_table(numbers: Sequence[LaunchNumber]) -> tuple[list[list[object]], list[int]]:
    """The rows of a table, and in which of them the numbers stand; equal ones share a row."""
    rows: dict[tuple[object, ...], int] = {}
    places: dict[int, int] = {}
    for number in parts_of(numbers):
        operands = operands_of(number)
        own = number[:2] if operands else number
        row = (*own, *(places[id(operand)] for operand in operands))
        places[id(number)] = rows.setdefault(row, len(rows))
    return [list(row) for row in rows], [places[id(number)] for number in numbers]


def from_table(rows: Sequence[Sequence[object]]) -> list[LaunchNumber]:
    """The numbers of the rows that `to_table` wrote; what shares a row is one object."""
    numbers: list[LaunchNumber] = []
    for kind, first, *rest in rows:
        own = rest if kind in LEAVES else [numbers[cast("int", place)] for place in rest]
        numbers.append(cast("LaunchNumber", (kind, first, *own)))
    return numbers
