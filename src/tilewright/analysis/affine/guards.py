"""What has to hold at a launch for an answer to be right, and what is known without asking.

A guard speaks of numbers that a launch knows: arguments, and what is computed from them alone. One
that also speaks of the program's number, of how many there are, or of a loop's counter has to hold
in every program and iteration; a launch can bound those.
"""

from __future__ import annotations

from enum import Enum

from tilewright.analysis.affine.expression import Expression
from tilewright.analysis.affine.text import text_of
from tilewright.analysis.affine.tile import EVERY, power_of_two
from tilewright.analysis.facts import AxisFacts
from tilewright.analysis.launch_scalars import is_bounded, is_known_at_launch
from tilewright.support.dataclass import dataclass


class Demand(Enum):
    """What a guard demands of a number."""

    MULTIPLE = "is a multiple of"
    AT_LEAST = "is at least"
    AT_MOST = "is at most"


@dataclass(frozen=True)
class Guard:
    """A test of a number; `is_pointer`: the number is the address in bytes."""

    number: Expression
    demand: Demand
    bound: int
    is_pointer: bool = False

    def __str__(self) -> str:
        return f"{text_of(self.number)} {self.demand.value} {self.bound}"


def is_of_launch(expression: Expression) -> bool:
    """Whether a launch knows a number: it depends on the kernel's arguments alone."""
    return all(is_known_at_launch(value) for value in expression.symbols())


def is_bounded_at_launch(expression: Expression) -> bool:
    """Whether a launch can bound a number: arguments, the grid, programs' numbers, counters."""
    return all(is_bounded(value) for value in expression.symbols())


def divisor(expression: Expression, facts: AxisFacts) -> int:
    """A power of two that divides a number, by what is known of its scalars."""
    least = EVERY
    for coefficient, factors in expression.terms:
        product = power_of_two(coefficient)
        for factor in factors:
            product = min(EVERY, product * facts.of(factor).divisor)
        least = min(least, product)
    return least


def is_nonnegative(expression: Expression, facts: AxisFacts) -> bool:
    """Whether a number is known not to be negative, by what is known of its scalars."""
    return all(
        coefficient > 0 and all(facts.of(factor).is_nonnegative for factor in factors)
        for coefficient, factors in expression.terms
    )
