"""The T0 passes that the CPU's schedule wants, in order."""

from __future__ import annotations

from tilewright.ir.passes import Pass
from tilewright.passes.forward_invariants import ForwardInvariants
from tilewright.passes.lower_block_pointers import LowerBlockPointers
from tilewright.passes.lower_descriptors import LowerDescriptors
from tilewright.passes.merge_duplicates import MergeDuplicates
from tilewright.passes.refuse_ops import RefuseOps
from tilewright.passes.split_carried_pointers import SplitCarriedPointers

# What the CPU cannot run, why, and what would work.
UNSUPPORTED: dict[str, tuple[str, str]] = {
    "tt.elementwise_inline_asm": (
        "inline_asm_elementwise(): the assembly is a GPU's and cannot run on a CPU",
        "write the computation with functions of the language; they compile to as few "
        "instructions on every target",
    ),
}

CPU_TILE_PASSES: tuple[Pass, ...] = (
    RefuseOps(UNSUPPORTED),
    LowerBlockPointers(),
    LowerDescriptors(),
    ForwardInvariants(),
    SplitCarriedPointers(),
    MergeDuplicates(),
)
