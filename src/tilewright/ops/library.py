"""The fixed list of modules that declare user functions; importing it fills the registry."""

from __future__ import annotations

from tilewright.ops import (
    access,
    casting,
    folds,
    linear_algebra,
    math,
    program,
    tiles,
    views,
)
from tilewright.ops.surface import MEMBERS, SURFACE

MODULES = (access, casting, folds, linear_algebra, math, program, tiles, views)

__all__ = ["MEMBERS", "MODULES", "SURFACE"]
