"""Repeats as digits: how a register index is read when its high part is not a power of two.

A register index is a number in mixed radix. Its low digits are the bits of the atom; above them
stands one digit for each dimension that is repeated, the first of `order` the slowest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd, prod


def positions(order: Sequence[int], repeats: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Which repeat along each dimension the 0th, 1st, … copy of the atom is."""
    current = [0] * len(repeats)
    for _ in range(prod(repeats)):
        yield tuple(current)
        for dim in reversed(order):
            current[dim] += 1
            if current[dim] < repeats[dim]:
                break
            current[dim] = 0


def position(order: Sequence[int], repeats: Sequence[int], copy: int) -> tuple[int, ...]:
    """Which repeat along each dimension one copy of the atom is."""
    found = [0] * len(repeats)
    for dim in reversed(order):
        copy, found[dim] = divmod(copy, repeats[dim])
    return tuple(found)


class Regrouping:
    """The digits of a shape, taken apart from the fast end to be grouped into another shape.

    The flat index of an element is itself a number in mixed radix: dimension by dimension, the
    repeat and below it the bits of the atom. A reshape cuts this one sequence at other places.
    """

    def __init__(self, atom: Sequence[int], repeats: Sequence[int]) -> None:
        self._left = list(zip(repeats, atom, strict=True))  # slowest dimension first
        self._dims = list(range(len(atom)))

    def take(self, extent: int) -> tuple[int, list[tuple[int, int]]] | None:
        """The digits of the next dimension, or None where no cut gives this extent.

        *Semantics*: the extent of the atom, and the repeats `(source dim, count)`, fastest first.
        """
        atom, parts = 1, list[tuple[int, int]]()
        while extent > 1:
            while self._left and self._left[-1] == (1, 1):
                self._left.pop()
                self._dims.pop()
            if not self._left:
                return None
            repeat, bits = self._left[-1]
            if bits > 1:
                taken = gcd(bits, extent)
                if taken == 1 or parts:  # an atom cannot stand above a repeat
                    return None
                self._left[-1] = (repeat, bits // taken)
                atom *= taken
            else:
                taken = gcd(repeat, extent)
                if taken == 1:
                    return None
                self._left[-1] = (repeat // taken, 1)
                parts.append((self._dims[-1], taken))
            extent //= taken
        return atom, parts
