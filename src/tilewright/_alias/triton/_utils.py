"""`triton._utils`: values at paths in nested tuples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

IndexPath = tuple[int, ...]


def get_iterable_path(iterable: Sequence[object], path: IndexPath) -> object:
    """The value at a path of indices."""
    for index in path[:-1]:
        iterable = cast("Sequence[Sequence[object]]", iterable)[index]
    return iterable[path[-1]] if path else iterable


def find_paths_if(
    iterable: Sequence[object] | object, pred: Callable[[IndexPath, object], bool]
) -> list[IndexPath]:
    """The paths of all values in nested tuples and lists for which `pred(path, value)` holds."""
    found: dict[IndexPath, None] = {}

    def visit(path: IndexPath, value: object) -> None:
        if isinstance(value, tuple | list):
            for index, item in enumerate(cast("Sequence[object]", value)):
                visit((*path, index), item)
        elif pred(path, value):
            found[path] = None

    visit((), iterable)
    return list(found)


def is_power_of_two(x: int) -> bool:
    """Whether `x` is a power of two (1 included)."""
    return x > 0 and x & (x - 1) == 0


def validate_block_shape(shape: Sequence[int]) -> int:
    """The number of elements of a tile. Raises: `TypeError`, `ValueError`."""
    numel = 1
    for index, extent in enumerate(shape):
        if type(extent) is not int:
            raise TypeError(f"Shape element {index} is {extent!r}, not a constexpr int")
        if not is_power_of_two(extent):
            raise ValueError(f"Shape element {index} must be a power of 2")
        numel *= extent
    return numel
