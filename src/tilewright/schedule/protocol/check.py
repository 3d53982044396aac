"""Checks what roles share before a program is emitted: registers, memory, rings and turns.

All of it is read off T2 and nothing is run: who runs it is `run`. Each rule says what it
refuses, and every message names the role, the ring or what else is shared, and the line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from xdsl.ir import Operation

from tilewright.analysis.alias import tile_bytes
from tilewright.ir.encoding import SharedType
from tilewright.machine.model import MachineModel
from tilewright.ops.function import FuncOp
from tilewright.ops.program.persistence import cluster_of
from tilewright.ops.ring_queries import barriers_of, meetings_in, rings_of
from tilewright.ops.rings import RingOp, RingWaitOp
from tilewright.ops.roles import ClusterWaitOp, RolesOp, find_roles
from tilewright.ops.staging import LocalAllocOp
from tilewright.schedule.partition.meet_at_barriers import meeting_problem
from tilewright.schedule.protocol.broken import broken, ring_name
from tilewright.schedule.protocol.check_memory import check_shared_memory
from tilewright.schedule.protocol.check_slots import check_slots
from tilewright.schedule.role_registers import most_granted
from tilewright.schedule.scratch import has_place, scratch_bytes, scratch_offset
from tilewright.schedule.shared_memory import RING_SLOT_BYTES
from tilewright.support.dataclass import dataclass, replace

# Source: PTX ISA 8.8, setmaxnreg: a multiple of 8, at least 24, for a group of four warps.
_REGISTER_STEP, _FEWEST_REGISTERS = 8, 24
_WARP_GROUP = 4


def check_protocol(kernel: FuncOp, machine: MachineModel) -> None:
    """Check the roles of a kernel, if it has any.

    *Raises*: ProtocolBroken for the first rule that does not hold.
    """
    roles = find_roles(kernel)
    if roles is None:
        return
    rings = rings_of(kernel)
    _check_registers(roles, machine)
    _check_barriers(roles, machine)
    _check_meetings(roles)
    _check_places(kernel, roles, rings)
    check_slots(roles, rings)
    check_shared_memory(roles, rings)
    _check_clusters(kernel, roles, rings)


# --- what programs share ------------------------------------------------------------------------


def _check_clusters(kernel: FuncOp, roles: RolesOp, rings: Sequence[RingOp]) -> None:
    """A launch starts the programs that share a ring, and none ends before the others."""
    started = cluster_of(kernel)
    if started == 1 and all(ring.programs == 1 for ring in rings):
        return
    for ring in rings:
        if ring.programs not in (1, started):
            what = f"ring {ring_name(ring)}: {ring.programs} programs share it"
            raise broken("", f"{what}, and a launch starts clusters of {started}", ring)
    for role, region in zip(roles.described(), roles.bodies, strict=True):
        reading = [op for op in region.block.ops if _reads_shared_ring(op)]
        behind = reading[-1].next_op if reading else None
        while behind is not None and not isinstance(behind, ClusterWaitOp):
            behind = behind.next_op
        if reading and behind is None:
            what = "ends while another program may still write to its slots"
            raise broken(role.name, what, roles, "let it wait for its cluster at the end")


def _reads_shared_ring(op: Operation) -> bool:
    """Whether an op, or what it runs, waits for slots that programs share."""
    waits = (inner for inner in op.walk() if isinstance(inner, RingWaitOp))
    return any(wait.ring_of().programs > 1 for wait in waits)


# --- what a cta has -----------------------------------------------------------------------------


def _check_registers(roles: RolesOp, machine: MachineModel) -> None:
    """Grants are what `setmaxnreg` takes, and all together what the program starts with."""
    described = roles.described()
    warps = sum(role.warps * role.replicas for role in described)
    total, most = 0, most_granted(machine, warps)
    if not any(role.registers for role in described):
        return
    for role in described:
        count = role.registers
        if not count:
            what = "says no number of registers, and another role does"
            raise broken(role.name, what, roles, "say `regs N` behind every role, or behind none")
        is_grant = _FEWEST_REGISTERS <= count <= machine.max_registers_per_thread + 1
        if not is_grant or count % _REGISTER_STEP or role.warps % _WARP_GROUP:
            what = f"{count} registers for {role.warps} warps are no grant"
            raise broken(role.name, what, roles, "grant 24 to 256, in steps of 8, to warp groups")
        total += machine.lanes * role.warps * role.replicas * count
        if total > most:
            what = f"its registers make {total} of the program, and {warps} warps have {most}"
            raise broken(role.name, what, roles, "roles that wait for registers wait forever")


def _check_barriers(roles: RolesOp, machine: MachineModel) -> None:
    """Each replica meets at a barrier of its own, and so does each of its turns."""
    count = 1  # where the whole cta meets
    for role, number in zip(roles.described(), barriers_of(roles), strict=True):
        count += number
        if count > machine.num_barriers:
            what = f"its turns and replicas make {count} barriers of {machine.num_barriers}"
            raise broken(role.name, what, roles)


def _check_meetings(roles: RolesOp) -> None:
    """Replicas that meet to wait for a fill have all come to it, and filled it before."""
    for role, region in zip(roles.described(), roles.bodies, strict=True):
        for wait in meetings_in(region.block):
            problem = meeting_problem(wait.ring_of())
            if problem:
                what = f"ring {ring_name(wait.ring_of())}: waits at a barrier, and {problem}"
                raise broken(role.name, what, wait)


@dataclass(frozen=True)
class _Piece:
    """Bytes of shared memory, whose they are (a replica, or '' for all), and what for."""

    start: int
    end: int
    owner: str
    what: str
    op: Operation
    ring: RingOp | None = None


def _check_places(kernel: FuncOp, roles: RolesOp, rings: Sequence[RingOp]) -> None:
    """Nothing that two roles or replicas use, or a ring and anything else, shares a byte."""
    pieces: list[_Piece] = []
    for tile in _tiles(kernel.body.block.ops):
        ring = next((ring for ring in rings if tile.result in ring.tiles), None)
        what = "a tile of all roles" if ring is None else f"a tile of ring {ring_name(ring)}"
        pieces.append(replace(_piece(tile, 0, "", what), ring=ring))
    for ring in rings:
        if ring.offset_bytes is None:
            raise broken("", f"ring {ring_name(ring)} has no place", ring)
        start = ring.offset_bytes.value.data
        end = start + ring.num_slots * RING_SLOT_BYTES
        pieces.append(
            _Piece(start, end, f"ring {ring_name(ring)}", f"ring {ring_name(ring)}", ring)
        )
    for role, region in zip(roles.described(), roles.bodies, strict=True):
        for index, name in enumerate(role.replica_names()):
            base = role.shared_start + index * role.shared_bytes
            for tile in _tiles(region.block.walk()):
                pieces.append(_piece(tile, base, name, f"a tile of role {name}"))
            for op in region.block.walk():
                if has_place(op):
                    start = base + scratch_offset(op)
                    what = f"the scratch of role {name}"
                    pieces.append(_Piece(start, start + scratch_bytes(op), name, what, op))
    for one, other in combinations(pieces, 2):
        is_shared_by_two = one.owner != other.owner or one.owner == ""
        is_shared_by_two = is_shared_by_two and not _take_turns(one.ring, other.ring)
        if is_shared_by_two and max(one.start, other.start) < min(one.end, other.end):
            places = f"bytes {one.start} to {one.end} and {other.start} to {other.end}"
            what = f"{other.what} lies in {one.what}: {places}"
            raise broken("", what, other.op)


def _tiles(ops: Iterable[Operation]) -> Iterator[LocalAllocOp]:
    """The tiles of shared memory that ops make."""
    return (op for op in ops if isinstance(op, LocalAllocOp))


def _take_turns(one: RingOp | None, other: RingOp | None) -> bool:
    """Whether two rings have one memory, of which `check_memory` proves that one uses it."""
    if one is None or other is None or one is other:
        return False
    return one.memory == other.memory


def _piece(op: LocalAllocOp, base: int, owner: str, what: str) -> _Piece:
    if op.offset_bytes is None:
        raise broken("", f"{what} has no place", op)
    start = base + op.offset_bytes.value.data
    assert isinstance(op.result.type, SharedType)
    return _Piece(start, start + tile_bytes(op.result.type), owner, what, op)
