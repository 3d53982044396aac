"""The fixed list of modules that declare user functions; importing it fills the registry."""

from __future__ import annotations

from tilewright.ops import (
    access,
    atomic_access,
    block_pointers,
    casting,
    descriptors,
    folds,
    hints,
    inline,
    libdevice,
    linear_algebra,
    math,
    ordering,
    program,
    random,
    scaled_dot,
    target_info,
    tiles,
    views,
)
from tilewright.ops.surface import MEMBERS, SURFACE

MODULES = (
    access,
    atomic_access,
    block_pointers,
    casting,
    descriptors,
    folds,
    hints,
    inline,
    libdevice,
    linear_algebra,
    math,
    ordering,
    program,
    random,
    scaled_dot,
    target_info,
    tiles,
    views,
)

__all__ = ["MEMBERS", "MODULES", "SURFACE"]
