"""Which extents tiles have."""

from __future__ import annotations

from tilewright.support.powers_of_two import is_power_of_two

_STEP = 16
"""Rows, columns and depths of a product of warp groups. Source: PTX ISA 8.8, 9.7.15.5: 64 rows are
16 for each warp; columns count by 8, depths of 16-bit elements by 16."""


def is_extent_of_groups(extent: int) -> bool:
    """Whether groups of warps multiply tiles of an extent."""
    return is_power_of_two(extent) or (extent > 0 and extent % _STEP == 0)


def is_tile_extent(extent: int, groups: int = 0) -> bool:
    """Whether tiles have an extent, where so many `groups` of warps share their products."""
    return is_extent_of_groups(extent) if groups > 0 else is_power_of_two(extent)
