"""The T0 passes that the NVIDIA target's schedule wants, in order."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.passes.forward_invariants import ForwardInvariants
from tilewright.passes.lower_block_pointers import LowerBlockPointers
from tilewright.passes.lower_descriptors import LowerDescriptors
from tilewright.passes.merge_duplicates import MergeDuplicates
from tilewright.passes.split_carried_pointers import SplitCarriedPointers
from tilewright.passes.split_products import SplitProducts
from tilewright.targets.nvidia.tma.select_tensor_maps import SelectTensorMaps
from tilewright.targets.target import MachineFeatures, PassLike

# Hopper's. Source: CUDA programming guide, compute capability 9.0; H100 SXM and H200.
_MAX_PROGRAMS, _MAX_WARPS, _NUM_MULTIPROCESSORS = 32, 64, 132


def nvidia_tile_passes(
    machine: MachineFeatures, options: Mapping[str, object]
) -> tuple[PassLike, ...]:
    """The passes for a machine, with a copy engine where it has one and the options allow it."""
    has_engine = bool(machine.get("has_tma", True)) and options.get("descriptors") != "pointers"
    return (
        LowerBlockPointers(),
        SelectTensorMaps(_num_programs(machine, options)) if has_engine else LowerDescriptors(),
        ForwardInvariants(),
        SplitCarriedPointers(),
        SplitProducts(),
        MergeDuplicates(),
    )


def _num_programs(machine: MachineFeatures, options: Mapping[str, object]) -> int:
    """How many programs run at once, at most."""
    num_warps = int(str(options.get("num_warps", 4)))
    per_multiprocessor = min(_MAX_PROGRAMS, max(1, _MAX_WARPS // num_warps))
    return int(machine.get("num_sms") or _NUM_MULTIPROCESSORS) * per_multiprocessor
