"""Takes slots from rings until all shared memory of a program with roles has room (T1 to T1).

    ring ab, 4 slots of 48 KiB, beside 40 KiB of exchanges ⇒ 3 slots, and a reason in the schedule

How many slots fit is decided before layouts are, and only these say what exchanges between
threads take. A slot less is slower and computes the same. One slot stays: what does not fit then
is an error of whoever gives places.

*Why here*: behind `decide-exchanges`, which knows all scratch, and in front of `place-shared`.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tilewright.analysis.alias import tile_bytes
from tilewright.ir.edits import erase
from tilewright.ir.encoding import SharedType, layout_of, shared_tile
from tilewright.ir.op import build
from tilewright.ir.passes import Pass
from tilewright.ir.schedule_attributes import annotate_schedule, schedule_of
from tilewright.machine.gpus import SM_90A
from tilewright.machine.model import MachineModel
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.ops.ring_queries import rings_of
from tilewright.ops.rings import RingOp
from tilewright.ops.roles import find_roles
from tilewright.ops.staging import LocalAllocOp
from tilewright.schedule.shared_memory import plan_role_memory
from tilewright.support.dataclass import dataclass, replace
from tilewright.targets.nvidia.tma.barriers import barrier_bytes


@dataclass(frozen=True)
class FitRings(Pass):
    """The pass; see the module."""

    machine: MachineModel = SM_90A
    name = "fit-rings"
    requires = "T1"
    produces = "T1"
    after = ("stage-channels", "decide-exchanges")

    def apply(self, module: ModuleOp) -> None:
        """Shorten the rings of the kernel."""
        kernel = find_kernel(module)
        fit_rings(kernel, self.machine.max_shared_bytes - barrier_bytes(kernel))


def fit_rings(kernel: FuncOp, limit_bytes: int) -> None:
    """Shorten rings until a kernel takes at most so many bytes, the largest ones first."""
    if find_roles(kernel) is None:
        return
    rings = rings_of(kernel)
    asked = {ring: ring.num_slots for ring in rings}
    while plan_role_memory(kernel).total_bytes > limit_bytes:
        longest = max(rings, key=_gives_up, default=None)
        if longest is None or longest.num_slots == 1:
            break
        _shorten(longest)
    _note(kernel, asked)


def _gives_up(ring: RingOp) -> tuple[int, int]:
    """Which ring gives up a slot first: one of more than two, as two let roles overlap."""
    return min(ring.num_slots, 3), _bytes_of(ring)


def _bytes_of(ring: RingOp) -> int:
    types = [tile.type for tile in ring.tiles]
    return sum(tile_bytes(type_) for type_ in types if isinstance(type_, SharedType))


def _shorten(ring: RingOp) -> None:
    """Give a ring a slot less."""
    slots = ring.num_slots - 1
    for tile in tuple(ring.tiles):
        alloc, type_ = tile.owner, tile.type
        assert isinstance(alloc, LocalAllocOp) and isinstance(type_, SharedType)
        assert alloc.parent is not None
        shorter = shared_tile(type_.element, layout_of(type_), slots)
        new = build(LocalAllocOp, (), [shorter], location=alloc.location)
        alloc.parent.insert_op_before(new, alloc)
        tile.replace_all_uses_with(new.results[0])
        erase(alloc)


def _note(kernel: FuncOp, asked: dict[RingOp, int]) -> None:
    schedule = schedule_of(kernel)
    short = [ring for ring, slots in asked.items() if ring.num_slots < slots]
    if schedule is None or not short:
        return
    reasons = [
        f"ring {ring.ring_name.data} has {ring.num_slots} slots instead of {asked[ring]}: shared "
        "memory has no room for more beside what else lies there"
        for ring in short
    ]
    slots = {ring.ring_name.data: ring.num_slots for ring in short}
    channels = tuple(
        replace(channel, slots=slots.get(channel.name, channel.slots))
        for channel in schedule.channels
    )
    reasons = (*schedule.reasons, *reasons)
    annotate_schedule(kernel, replace(schedule, channels=channels, reasons=reasons))
