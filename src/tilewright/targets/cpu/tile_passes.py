"""The T0 passes that the CPU's schedule wants, in order."""

from __future__ import annotations

from tilewright.ir.passes import Pass
from tilewright.passes.conjoin_masks import ConjoinMasks
from tilewright.passes.forward_invariants import ForwardInvariants
from tilewright.passes.lower_block_pointers import LowerBlockPointers
from tilewright.passes.lower_descriptors import LowerDescriptors
from tilewright.passes.merge_duplicates import MergeDuplicates
from tilewright.passes.refuse_ops import RefuseOps
from tilewright.passes.require_rules import RequireRules
from tilewright.passes.split_carried_pointers import SplitCarriedPointers
from tilewright.targets.cpu.coverage import CPU_COVERAGE

CPU_TILE_PASSES: tuple[Pass, ...] = (
    RefuseOps(CPU_COVERAGE.target),
    LowerBlockPointers(),
    LowerDescriptors(),
    ForwardInvariants(),
    SplitCarriedPointers(),
    ConjoinMasks(),
    MergeDuplicates(),
    RequireRules(CPU_COVERAGE.target),
)
