"""The T0 passes that the CPU's schedule wants, in order."""

from __future__ import annotations

from tilewright.passes.forward_invariants import ForwardInvariants
from tilewright.passes.lower_block_pointers import LowerBlockPointers
from tilewright.passes.lower_descriptors import LowerDescriptors
from tilewright.passes.merge_duplicates import MergeDuplicates
from tilewright.passes.split_carried_pointers import SplitCarriedPointers
from tilewright.targets.target import PassLike

CPU_TILE_PASSES: tuple[PassLike, ...] = (
    LowerBlockPointers(),
    LowerDescriptors(),
    ForwardInvariants(),
    SplitCarriedPointers(),
    MergeDuplicates(),
)
