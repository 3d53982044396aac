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


def nvidia_tile_passes(
    machine: MachineFeatures, options: Mapping[str, object]
) -> tuple[PassLike, ...]:
    """The passes for a machine, with a copy engine where it has one and the options allow it."""
    has_engine = bool(machine.get("has_tma", True)) and options.get("descriptors") != "pointers"
    return (
        LowerBlockPointers(),
        SelectTensorMaps() if has_engine else LowerDescriptors(),
        ForwardInvariants(),
        SplitCarriedPointers(),
        SplitProducts(),
        MergeDuplicates(),
    )
