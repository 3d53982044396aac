"""Which extents tiles have."""

from __future__ import annotations

_THREE = 3
_LEAST_ROWS = 16
"""Of a part. Source: PTX ISA 8.8, 9.7.14.5: the rows of a warp in a matrix product."""


def is_power_of_two(extent: int) -> bool:
    """Whether an extent is 1, 2, 4 and so on."""
    return extent > 0 and extent & (extent - 1) == 0


def is_shared_by_three(extent: int) -> bool:
    """Whether an extent is three times a power of two that a product has as rows."""
    return extent % (_THREE * _LEAST_ROWS) == 0 and is_power_of_two(extent // _THREE)


def is_tile_extent(extent: int, groups: int = 0) -> bool:
    """Whether tiles have an extent, where so many `groups` of warps share their rows."""
    return is_power_of_two(extent) or (groups == _THREE and is_shared_by_three(extent))
