"""Powers of two: which numbers are one, and the one that a number holds.

What the package loads at its start says it by itself: each module costs every start 0.3 ms.
"""

from __future__ import annotations


def is_power_of_two(number: int) -> bool:
    """Whether a number is 1, 2, 4 and so on."""
    return number > 0 and number & (number - 1) == 0


def power_of_two_part(number: int) -> int:
    """The largest power of two that divides a number."""
    return number & -number
