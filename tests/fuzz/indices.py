"""Texts of indices: numbers that count and wrap, and some that only look consecutive."""

from __future__ import annotations

from random import Random

# The index of an element within its tile, by the letter of the tile's shape.
PLACE = {"V": "i", "R": "r", "C": "c", "T": "rc", "U": "cr"}
_FACTORS = (1, 1, -1, 2, 3, 7, 37, 255, 256, 1000, -1000, 65537)


def counting(rng: Random, place: str, dtype: str, start: str) -> str:
    """Numbers of a dtype that count along `place` from a scalar on, and wrap."""
    factor, sign = rng.choice(_FACTORS), rng.choice("+-")
    return rng.choice((
        f"(({place} * {factor}).to(tl.{dtype}) {sign} {start})",
        f"({start} {sign} {place}.to(tl.{dtype}) * {abs(factor) % 100})",
        f"({place} * {factor}).to(tl.{dtype})",
    ))  # fmt: skip


def irregular(rng: Random, place: str) -> str:
    """An index from 0 to 1023 that is consecutive at both ends of many runs, or nearly so."""
    a, b = rng.randint(0, 9), rng.choice((3, 8, 16, 32))
    compare = rng.choice(("!=", "==", "<", ">=", "<=", ">"))
    other = rng.choice((0, a, b, f"{place} // 2"))
    return rng.choice((
        f"tl.where({place} {compare} {a + b}, {place}, {other})",
        f"tl.where(({place} - {a}).to(tl.uint32) {rng.choice(('<', '>='))} {b}, {place}, {a})",
        f"tl.where(({place} + {a}) % 8 {compare} 7, {place}, {a})",
        f"({place} - {place} % {b})",
        f"((({place} + {a}) % {b} * 2 - {place} % {2 * b} + 64) & 1023)",
        f"((({place} + {a}) % {b} * 2 - {place} % {2 * b}) + 64)",
        f"((2 * {place} - {place} % 16 + {2 * a}) % 64)",
        f"tl.minimum(tl.maximum({place} - {a}, 0), {b})",
        f"tl.where({place} < {b}, tl.where({place} < {a}, {place}, {b - 2}), {b - 1})",
    ))  # fmt: skip
