"""T0 to T2 for an NVIDIA GPU: plan, layouts, copies, shared memory, barriers, in order."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tilewright.ir.passes import Pass
from tilewright.machine.gpus import SM_90A
from tilewright.machine.model import MachineModel
from tilewright.ops.function import find_kernel
from tilewright.passes.branch_masks import BranchMasks
from tilewright.schedule.annotations import set_shared_bytes
from tilewright.schedule.check_ordering import check_ordering
from tilewright.schedule.exchanges import VerifyExchanges
from tilewright.schedule.global_barriers import InsertGlobalBarriers
from tilewright.schedule.layout.assign import AssignLayouts, DecideLayouts, VerifyLayouts
from tilewright.schedule.partition.compute_late import ComputeLate
from tilewright.schedule.partition.meet_at_barriers import MeetAtBarriers
from tilewright.schedule.partition.release_late import ReleaseLate
from tilewright.schedule.partition.ring_counters import CountRings
from tilewright.schedule.partition.wait_late import WaitLate
from tilewright.schedule.partition.warps import warps_of_tiles
from tilewright.schedule.pipeline.overlap_products import OverlapProducts
from tilewright.schedule.pipeline.stage_operands import StageOperands
from tilewright.schedule.plan.accesses import DecideAccesses
from tilewright.schedule.plan.copies import DecideCopies
from tilewright.schedule.plan.given import AnnotatePlan
from tilewright.schedule.plan.products import DecideProducts
from tilewright.schedule.plan.read_schedule import ReadSchedule
from tilewright.schedule.plan.schedule import DecideSchedule
from tilewright.schedule.plan.verify import VerifyPlan
from tilewright.schedule.protocol.check import check_protocol
from tilewright.schedule.shared_barriers import OrderingReport, insert_shared_barriers
from tilewright.schedule.shared_memory import SharedPlan, place_shared
from tilewright.support.dataclass import dataclass
from tilewright.support.options import CompileOptions
from tilewright.targets.nvidia.bound_turns import BoundTurns
from tilewright.targets.nvidia.bound_waits import BoundWaits
from tilewright.targets.nvidia.fit_stages import PIPELINING, FitStages
from tilewright.targets.nvidia.guard_overlap import GuardOverlap
from tilewright.targets.nvidia.inject_jitter import InjectJitter
from tilewright.targets.nvidia.ops import FenceAsyncSharedOp
from tilewright.targets.nvidia.partition.check_maps import check_maps
from tilewright.targets.nvidia.partition.chunk_stores import ChunkStores
from tilewright.targets.nvidia.partition.decide import DecideRoles
from tilewright.targets.nvidia.partition.fit_rings import FitRings
from tilewright.targets.nvidia.partition.form import FormRoles
from tilewright.targets.nvidia.partition.form_clusters import FormClusters
from tilewright.targets.nvidia.partition.join_barriers import JoinBarriers
from tilewright.targets.nvidia.partition.persistence import DecidePersistence
from tilewright.targets.nvidia.partition.stage_channels import StageChannels
from tilewright.targets.nvidia.tma.barriers import CarryPhases, PlaceBarriers, barrier_bytes
from tilewright.targets.nvidia.tma.join_waits import JoinWaits
from tilewright.targets.nvidia.tma.stage import StageTensorMaps
from tilewright.targets.nvidia.tma.visibility import MarkVisible


def nvidia_schedule(machine: MachineModel, options: CompileOptions) -> tuple[Pass, ...]:
    """The passes from T0 to T2."""
    given = () if options.plan is None else (AnnotatePlan(options.plan),)
    # Slots that the author's schedule names are the author's.
    fitting = () if options.schedule else (FitStages(machine, options.num_warps),)
    return (
        *given,
        DecidePersistence.of_options(machine, options),
        ReadSchedule(options.schedule or "", options.num_consumer_groups or 0),
        DecideRoles.of_options(machine, options),
        FormRoles(machine, options.may_overlap),
        FormClusters(machine, options.cluster_dims),
        BranchMasks(),
        DecideProducts(machine, options.num_warps),
        DecideAccesses(machine, options.num_warps),
        DecideSchedule(machine, options.num_stages or 0, options.num_warps),
        GuardOverlap(options.may_overlap),
        VerifyPlan(machine, options.num_warps),
        DecideLayouts(machine, options.num_warps),
        VerifyLayouts(machine, options.num_warps),
        AssignLayouts(machine, options.num_warps),
        StageChannels(),
        OverlapProducts(),
        WaitLate(),
        ComputeLate(),
        ChunkStores(),
        StageTensorMaps(),
        JoinWaits(),
        MarkVisible(options.may_overlap),
        StageOperands(),
        DecideCopies(),
        *fitting,
        *PIPELINING,
        VerifyExchanges(),
        InsertGlobalBarriers(options.may_overlap),
        FitRings(machine),
        PlaceShared(machine, options.num_warps),
        PlaceBarriers(),
        CarryPhases(),
        CountRings(),
        ReleaseLate(),
        # A barrier waits without a bound, and a wait with one says what it is for.
        *(() if options.deadlock_seconds else (MeetAtBarriers(machine),)),
        InsertSharedBarriers(),
        JoinBarriers(),
        CheckProtocol(machine),
        *_for_debugging(options),
    )


def _for_debugging(options: CompileOptions) -> tuple[Pass, ...]:
    """Pauses that find what is right by luck, and bounds of what roles wait for."""
    seconds = options.deadlock_seconds
    jitter = (InjectJitter(options.jitter),) if options.jitter else ()
    return (*jitter, *((BoundTurns(), BoundWaits(seconds)) if seconds else ()))


@dataclass(frozen=True)
class PlaceShared(Pass):
    """Give every shared tile and every scratch its place, and leave room for the mbarriers."""

    machine: MachineModel = SM_90A
    num_warps: int = 4
    name = "place-shared"
    requires = "T1"
    produces = "T2"
    after = ("stage-tensor-maps", "join-waits", "verify-exchanges", "insert-global-barriers")

    def apply(self, module: ModuleOp) -> SharedPlan:
        """Place them; where everything lies."""
        kernel = find_kernel(module)
        num_warps = warps_of_tiles(kernel, self.num_warps)
        plan = place_shared(kernel, self.machine, num_warps, barrier_bytes(kernel))
        set_shared_bytes(kernel, plan.total_bytes)
        return plan


@dataclass(frozen=True)
class InsertSharedBarriers(Pass):
    """Put barriers between warps, and fences before what the asynchronous units read."""

    name = "insert-shared-barriers"
    requires = "T2"
    produces = "T2"
    after = ("insert-global-barriers", "place-barriers", "carry-phases", "count-rings")

    def apply(self, module: ModuleOp) -> OrderingReport:
        """Order the accesses; why each barrier stands."""
        return insert_shared_barriers(find_kernel(module), FenceAsyncSharedOp)


@dataclass(frozen=True)
class CheckOrdering(Pass):
    """Prove that barriers and fences order every two accesses; the module stays as it is.

    *Raises* InternalError that names the two that are not ordered.
    """

    name = "check-ordering"
    requires = "T2"
    produces = "T2"
    after = ("insert-shared-barriers",)

    def apply(self, module: ModuleOp) -> None:
        """Check the kernel."""
        check_ordering(find_kernel(module))


@dataclass(frozen=True)
class CheckProtocol(Pass):
    """Check that roles keep to what rings, turns, places and registers ask of them.

    The module stays as it is. *Raises*: ProtocolBroken that names role, ring and line.
    """

    machine: MachineModel = SM_90A
    name = "check-protocol"
    requires = "T2"
    produces = "T2"
    after = ("place-shared", "insert-shared-barriers")

    def apply(self, module: ModuleOp) -> None:
        """Check the kernel."""
        check_protocol(find_kernel(module), self.machine)
        check_maps(find_kernel(module))
