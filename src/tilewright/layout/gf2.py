"""Linear algebra over GF(2): vectors are Python integers, addition is XOR.

A matrix is the sequence of its columns. A combination of columns is an integer too: bit `k` says
that column `k` takes part.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class Span:
    """The span of vectors, and for each of its members a combination that makes it.

    Vectors are taken in the order in which they come: one that depends on those before it is
    `free` and appears in no combination.
    """

    def __init__(self, vectors: Iterable[int] = ()) -> None:
        # By highest bit: (vector, combination of the vectors given that makes it).
        self._rows: dict[int, tuple[int, int]] = {}
        self.free: list[bool] = []
        self.kernel: list[int] = []
        for vector in vectors:
            self.add(vector)

    def add(self, vector: int) -> bool:
        """Take one more vector; whether it was independent of those before."""
        combination = 1 << len(self.free)
        while vector:
            row = self._rows.get(vector.bit_length())
            if row is None:
                self._rows[vector.bit_length()] = (vector, combination)
                self.free.append(False)
                return True
            vector ^= row[0]
            combination ^= row[1]
        self.free.append(True)
        self.kernel.append(combination)
        return False

    def reduce(self, vector: int) -> tuple[int, int]:
        """What is left of a vector when the span is taken out, and the combination taken out.

        Linear in the vector; what is left is 0 exactly for members of the span.
        """
        remainder, combination = 0, 0
        while vector:
            row = self._rows.get(vector.bit_length())
            if row is None:
                top = 1 << (vector.bit_length() - 1)
                remainder |= top
                vector ^= top
            else:
                vector ^= row[0]
                combination ^= row[1]
        return remainder, combination

    def __contains__(self, vector: int) -> bool:
        return self.reduce(vector)[0] == 0

    @property
    def rank(self) -> int:
        """The number of independent vectors."""
        return len(self._rows)

    def basis(self) -> tuple[int, ...]:
        """The reduced basis, highest bit first: equal for equal spans."""
        rows: list[int] = []
        for height in sorted(self._rows):
            vector = self._rows[height][0]
            # Clear from each row the leading bits of the lower ones.
            for lower in rows:
                if vector >> (lower.bit_length() - 1) & 1:
                    vector ^= lower
            rows.append(vector)
        return tuple(reversed(rows))


def combine(columns: Sequence[int], combination: int) -> int:
    """The XOR of the columns that a combination names: the matrix times a vector."""
    total = 0
    while combination:
        low = combination & -combination
        total ^= columns[low.bit_length() - 1]
        combination ^= low
    return total


def intersection(left: Sequence[int], right: Sequence[int]) -> tuple[int, ...]:
    """A reduced basis of the vectors in both spans."""
    span = Span((*left, *right))
    mask = (1 << len(left)) - 1
    return Span(combine(left, kernel & mask) for kernel in span.kernel).basis()
