"""The grid of a launch: what the user may write, and the three extents that run."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import SupportsIndex

from tilewright.runtime.driver import Grid
from tilewright.support.errors import InvalidGrid

GridLike = object
MAX_PROGRAMS = 1 << 63
"""By definition: the programs of a grid are counted in 64 bits with a sign."""
MAX_TILES = 1 << 30
"""By definition: a persistent kernel counts tiles in i32, up to two rounds past the last one."""


def persistent_grid(grid: Grid, most_programs: int, cluster: int = 1) -> Grid:
    """The programs that run a grid of a persistent kernel: at most so many, along one axis.

    They come in clusters of `cluster`; as many clusters start as there are tiles, at most.

    *Raises*: InvalidGrid for more than `MAX_TILES` programs.
    """
    x, y, z = grid
    if x * y * z > MAX_TILES:
        raise InvalidGrid(
            f"a grid of {x} x {y} x {z} programs is too large for a kernel that stays on its SMs",
            hint="launch at most 2^30 programs, or compile with `schedule` without `persist`",
        )
    return min(x * y * z, most_programs // cluster) * cluster, 1, 1


def check_grid(kernel: str, grid: GridLike, arguments: Mapping[str, object]) -> Grid:
    """The grid as three extents. Raises: InvalidGrid."""
    if callable(grid):
        grid = grid(dict(arguments))
    extents = tuple(grid) if isinstance(grid, tuple | list) else (grid,)
    if not 1 <= len(extents) <= 3:
        raise InvalidGrid(f"{kernel}[grid]: a grid has 1 to 3 axes, got {len(extents)}")
    sizes = [_extent(kernel, axis, extent) for axis, extent in enumerate(extents)]
    x, y, z = (*sizes, 1, 1)[:3]
    if x * y * z >= MAX_PROGRAMS:
        raise InvalidGrid(f"{kernel}[grid]: a grid of {x} x {y} x {z} is more than 2^63 programs")
    return x, y, z


def _extent(kernel: str, axis: int, extent: object) -> int:
    size = _as_integer(extent)
    if size is None:
        raise InvalidGrid(
            f"{kernel}[grid]: axis {axis} of the grid is {extent!r}, not an integer",
            hint="use tilewright.cdiv(n, BLOCK), which rounds up, rather than n / BLOCK",
        )
    if not 0 <= size < 1 << 31:
        raise InvalidGrid(f"{kernel}[grid]: axis {axis} of the grid is {size}")
    return size


def _as_integer(extent: object) -> int | None:
    """An extent that is an integer of some class; an array that is none has `__index__` too."""
    if not isinstance(extent, SupportsIndex) or isinstance(extent, bool):
        return None
    try:
        return operator.index(extent)
    except TypeError:
        return None
