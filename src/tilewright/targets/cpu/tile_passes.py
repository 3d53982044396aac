"""The T0 passes that the CPU's schedule wants, in order."""

from __future__ import annotations

from tilewright.passes.split_carried_pointers import SplitCarriedPointers
from tilewright.targets.target import PassLike

CPU_TILE_PASSES: tuple[PassLike, ...] = (SplitCarriedPointers(),)
