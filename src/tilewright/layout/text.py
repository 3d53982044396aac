"""The text form of layouts: `register(0:1 8:0) lane(0:2 …) atom(16x8) repeats(1x11)`.

Each in-dim lists the coordinates of its bits, lowest bit first. `repeats` is left out where
nothing repeats, and `order` where the repeats are row-major.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tilewright.support.errors import LayoutError

Coordinates = tuple[int, ...]
Bases = tuple[tuple[str, tuple[Coordinates, ...]], ...]
Parsed = tuple[Bases, tuple[int, ...], tuple[int, ...], tuple[int, ...]]

_GROUP = re.compile(r"([a-z][a-z0-9]*)\(([0-9:x. ]*)\)(?: |$)")


def print_layout(
    bases: Bases, atom: Sequence[int], repeats: Sequence[int], order: Sequence[int]
) -> str:
    """The text of a layout."""
    groups = [(name, " ".join(map(_vector, vectors))) for name, vectors in bases]
    groups.append(("atom", _numbers(atom)))
    if order:
        groups.append(("repeats", _numbers(repeats)))
    if tuple(order) != tuple(sorted(order)):
        groups.append(("order", _numbers(order)))
    return " ".join(f"{name}({content})" for name, content in groups)


def parse_layout(line: str) -> Parsed:
    """The bases, atom, repeats and order that a text names.

    *Raises*: `LayoutError` where the line is not the text of a layout.
    """
    bases: list[tuple[str, tuple[Coordinates, ...]]] = []
    fields: dict[str, tuple[int, ...]] = {}
    end = 0
    for match in _GROUP.finditer(line):
        if match.start() != end:
            break
        end = match.end()
        name, content = match.groups()
        if name in ("atom", "repeats", "order"):
            fields[name] = _parse_numbers(content, "x", line)
        else:
            words = content.split()
            bases.append((name, tuple(_parse_numbers(word, ":", line) for word in words)))
    if end != len(line) or "atom" not in fields or not bases:
        raise _not_a_layout(line)
    return tuple(bases), fields["atom"], fields.get("repeats", ()), fields.get("order", ())


def _vector(coordinates: Coordinates) -> str:
    return ":".join(map(str, coordinates)) or "."


def _numbers(numbers: Sequence[int]) -> str:
    return "x".join(map(str, numbers))


def _parse_numbers(word: str, separator: str, line: str) -> tuple[int, ...]:
    if word in ("", "."):
        return ()
    numbers = word.split(separator)
    if not all(number.isdigit() for number in numbers):
        raise _not_a_layout(line)
    return tuple(map(int, numbers))


def _not_a_layout(line: str) -> LayoutError:
    return LayoutError(
        f"this is not the text of a layout: {line!r}",
        hint="write register(0:1 0:2) lane(…) warp(…) atom(8x32), optionally repeats(3x1)",
    )
