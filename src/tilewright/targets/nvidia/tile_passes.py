"""The T0 passes that the NVIDIA target's schedule wants, in order."""

from __future__ import annotations

from tilewright.ir.passes import Pass
from tilewright.machine.model import MachineModel
from tilewright.passes.fold_additions import FoldAdditions
from tilewright.passes.forward_invariants import ForwardInvariants
from tilewright.passes.lower_block_pointers import LowerBlockPointers
from tilewright.passes.lower_descriptors import LowerDescriptors
from tilewright.passes.merge_counters import MergeCounters
from tilewright.passes.merge_duplicates import MergeDuplicates
from tilewright.passes.narrow_repeats import NarrowRepeats
from tilewright.passes.refuse_ops import RefuseOps
from tilewright.passes.require_rules import RequireRules
from tilewright.passes.split_carried_pointers import SplitCarriedPointers
from tilewright.passes.split_products import SplitProducts
from tilewright.support.options import CompileOptions
from tilewright.targets.nvidia.count_walks import CountWalks
from tilewright.targets.nvidia.count_whiles import CountWhiles
from tilewright.targets.nvidia.coverage import NVIDIA_COVERAGE
from tilewright.targets.nvidia.nest_loops import NestLoops
from tilewright.targets.nvidia.partition.ask_roles import asked_roles
from tilewright.targets.nvidia.partition.default_roles import leaves_open
from tilewright.targets.nvidia.partition.turn_copies import TurnCopies
from tilewright.targets.nvidia.tma.bulk_access import BulkAccess
from tilewright.targets.nvidia.tma.narrow_blocks import NarrowBlocks
from tilewright.targets.nvidia.tma.select_tensor_maps import SelectTensorMaps


def nvidia_tile_passes(machine: MachineModel, options: CompileOptions) -> tuple[Pass, ...]:
    """The passes for a machine, with a copy engine where it has one and the options allow it."""
    has_engine = machine.has_tma and options.descriptors != "pointers"
    return (
        RefuseOps(NVIDIA_COVERAGE.target),
        LowerBlockPointers(),
        *_counted_loops(options),
        MergeCounters(),
        _descriptors(machine, options) if has_engine else LowerDescriptors(),
        ForwardInvariants(),
        SplitCarriedPointers(),
        FoldAdditions(),
        SplitProducts(),
        MergeDuplicates(),
        NarrowRepeats(),
        NarrowBlocks(),
        *asked_roles(machine, options),
        *_bulk_access(machine, options),
        *_turned_copies(machine, options),
        RequireRules(NVIDIA_COVERAGE.target),
    )


def _counted_loops(options: CompileOptions) -> tuple[Pass, ...]:
    """Loops that count what they walk over, where launches may be asked to keep to something."""
    return () if options.bulk_access == "never" else (NestLoops(), CountWhiles(), CountWalks())


def _descriptors(machine: MachineModel, options: CompileOptions) -> Pass:
    return SelectTensorMaps(_num_programs(machine, options), options.bulk_access != "never")


def _bulk_access(machine: MachineModel, options: CompileOptions) -> tuple[Pass, ...]:
    """Plain loads by the copy engine, where the options leave it to the compiler."""
    has_engine = machine.has_tma and options.descriptors != "pointers"
    is_planned = options.plan is not None and options.bulk_access == "auto"
    if not has_engine or options.bulk_access == "never" or is_planned:
        return ()
    schedule = options.schedule or ""
    if schedule:
        asks = int("tma" in schedule)
        stages, groups = asks * 2, asks * int("roles" in schedule)
    else:
        stages, groups = options.num_stages or 0, options.num_consumer_groups or 0
    is_eager = options.bulk_access == "always"
    loads_alone = options.bulk_access == "loads"
    return (
        BulkAccess(
            machine,
            stages,
            groups,
            is_eager,
            leaves_open(options),
            loads_alone,
            options.num_warps,
            not schedule or "epilogue tma" in schedule,
        ),
    )


def _turned_copies(machine: MachineModel, options: CompileOptions) -> tuple[Pass, ...]:
    """What threads copy in roles, where the compiler makes them."""
    is_able = machine.has_setmaxnreg and options.schedule is None and options.plan is None
    return (TurnCopies(options.num_consumer_groups or 0),) if is_able else ()


def _num_programs(machine: MachineModel, options: CompileOptions) -> int:
    """How many programs run at once, at most."""
    per_sm = min(machine.max_ctas_per_sm, max(1, machine.max_warps_per_sm // options.num_warps))
    return machine.num_sms * per_sm
