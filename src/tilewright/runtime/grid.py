"""The grid of a launch: what the user may write, and the three extents that run."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import SupportsIndex

from tilewright.runtime.driver import Grid
from tilewright.support.errors import InvalidGrid

GridLike = object


def check_grid(kernel: str, grid: GridLike, arguments: Mapping[str, object]) -> Grid:
    """The grid as three extents. Raises: InvalidGrid."""
    if callable(grid):
        grid = grid(dict(arguments))
    extents = tuple(grid) if isinstance(grid, tuple | list) else (grid,)
    if not 1 <= len(extents) <= 3:
        raise InvalidGrid(f"{kernel}[grid]: a grid has 1 to 3 axes, got {len(extents)}")
    sizes = [_extent(kernel, axis, extent) for axis, extent in enumerate(extents)]
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def _extent(kernel: str, axis: int, extent: object) -> int:
    if not isinstance(extent, SupportsIndex) or isinstance(extent, bool):
        raise InvalidGrid(
            f"{kernel}[grid]: axis {axis} of the grid is {extent!r}, not an integer",
            hint="use tilewright.cdiv(n, BLOCK), which rounds up, rather than n / BLOCK",
        )
    size = operator.index(extent)
    if not 0 <= size < 1 << 31:
        raise InvalidGrid(f"{kernel}[grid]: axis {axis} of the grid is {size}")
    return size
