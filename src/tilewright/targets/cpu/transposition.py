"""Squares of vectors, transposed: which lanes of which two vectors each shuffle takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

_V = TypeVar("_V")

PART_BITS = 128
"""By definition: the parts of AVX's vectors inside which lanes are unpacked; NEON's vectors."""


def transposed(
    lanes: int, part: int, rows: Sequence[_V], shuffle: Callable[[_V, _V, list[int]], _V]
) -> list[_V]:
    """The columns of a square of `lanes` vectors of `lanes` lanes each.

    Two steps, as the hardware likes it: unpack inside each part of `part` lanes, which are 128
    bits, then move whole parts between vectors, so no shuffle needs an index register.
    `shuffle` picks lanes of two vectors by their numbers, those of the second from `lanes` on.
    *Constraints* `lanes` is a power of two, at most 16 parts.
    """
    unpacked: list[_V] = []
    for first in range(0, lanes, part):
        unpacked += _transposed_parts(lanes, rows[first : first + part], shuffle)
    columns = list(rows)
    for element in range(part):
        moved = _transposed_blocks(lanes, part, unpacked[element::part], shuffle)
        for block, value in enumerate(moved):
            columns[block * part + element] = value
    return columns


def _transposed_parts(
    lanes: int, rows: Sequence[_V], shuffle: Callable[[_V, _V, list[int]], _V]
) -> list[_V]:
    """Transpose the square that `rows` have in each part.

    Unpacking row i with row i + n/2 and recursing on both halves is a perfect shuffle.
    """
    part = len(rows)
    current = list(rows)
    for _ in range(part.bit_length() - 1):
        paired = zip(current[: part // 2], current[part // 2 :], strict=True)
        current = [
            shuffle(low, high, _unpack(lanes, part, upper))
            for low, high in paired
            for upper in (False, True)
        ]
    return current


def _unpack(lanes: int, part: int, upper: bool) -> list[int]:
    start = part // 2 if upper else 0
    return [
        source * lanes + base + start + lane
        for base in range(0, lanes, part)
        for lane in range(part // 2)
        for source in (0, 1)
    ]


def _transposed_blocks(
    lanes: int, part: int, rows: Sequence[_V], shuffle: Callable[[_V, _V, list[int]], _V]
) -> list[_V]:
    """Transpose the square of parts of `rows` (as many rows as parts)."""
    current = list(rows)
    for _ in range(len(rows).bit_length() - 1):
        pairs = list(zip(current[0::2], current[1::2], strict=True))
        current = [
            shuffle(first, second, _every_other(lanes, part, odd))
            for odd in (False, True)
            for first, second in pairs
        ]
    return current


def _every_other(lanes: int, part: int, odd: bool) -> list[int]:
    start = part if odd else 0
    return [base + lane for base in range(start, 2 * lanes, 2 * part) for lane in range(part)]
