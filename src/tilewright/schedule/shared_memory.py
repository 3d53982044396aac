"""Gives every shared tile and every scratch its place in the program's shared memory.

Two that are never in use at once may share bytes, but then warps wait for each other between
them. So everything lies apart where as many programs run on a multiprocessor nevertheless, else
what is small does, else nothing. Live ranges are coloured in one sweep over
their starts, each taking the lowest hole that fits; where the largest ones first leave less, they
go first. The result is a table for people, too:

    line          what                bytes   offset   in use
    kernel.py:41  [128, 64] f16 x 2   32768        0   12-80
    kernel.py:52  scratch of reduce     512    32768   60-60
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Block, Operation

from tilewright.analysis.alias import SharedAliases, tile_bytes
from tilewright.analysis.facts import MAX_ACCESS_BYTES
from tilewright.analysis.liveness import LiveRange, Numbering, live_ranges
from tilewright.ir.attributes import integer_array
from tilewright.ir.encoding import SharedType, layout_of
from tilewright.ir.locations import describe, span_of
from tilewright.ir.types import storage_bytes
from tilewright.layout.linear import LinearLayout
from tilewright.machine.model import MachineModel
from tilewright.ops.function import FuncOp
from tilewright.ops.ring_queries import rings_of
from tilewright.ops.rings import RingOp
from tilewright.ops.roles import RolesOp, find_roles, role_around
from tilewright.ops.staging import LaidOutDotOp
from tilewright.schedule.product_registers import OTHER_REGISTERS, programs_per_sm
from tilewright.schedule.scratch import place_scratch, scratch_bytes
from tilewright.schedule.shared_buffers import (
    SharedBuffer,
    aligned,
    fitted,
    largest_first,
    sweep,
    total,
)
from tilewright.schedule.shared_effects import touched_tiles
from tilewright.support.dataclass import dataclass, replace
from tilewright.support.errors import SharedMemoryExceeded

SCRATCH_ALIGNMENT_BYTES = MAX_ACCESS_BYTES
TILE_ALIGNMENT_BYTES = 128
"""What copy engines ask of a tile without swizzle. Source: PTX ISA 8.8, 5.5.3."""


SMALL_BYTES = 2048
"""What is too small for sharing to matter: the scratch of most reductions.

Chosen, not measured: it decides only where buffers lie apart, and only where as many programs run
nevertheless."""


@dataclass(frozen=True)
class SharedPlan:
    """Where everything lies, in the order of the text, and how much memory that takes."""

    buffers: tuple[SharedBuffer, ...]
    total_bytes: int

    def __str__(self) -> str:
        rows = [("line", "what", "bytes", "offset", "in use")]
        for buffer in self.buffers:
            in_use = f"{buffer.live.start}-{buffer.live.end}"
            numbers = (str(buffer.size_bytes), str(buffer.offset_bytes))
            rows.append((describe(buffer.op), buffer.what, *numbers, in_use))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def place_shared(
    kernel: FuncOp, machine: MachineModel, num_warps: int, taken_bytes: int = 0
) -> SharedPlan:
    """Give shared tiles their `offset_bytes` and ops their scratch.

    `taken_bytes` are those that something else of the program has.

    *Raises* SharedMemoryExceeded where they do not fit the machine, which names them by line
    and what would make them fit.
    """
    roles = find_roles(kernel)
    if roles is not None:
        return place_role_memory(kernel, roles, machine, taken_bytes)
    plan = plan_shared(kernel, machine, num_warps, taken_bytes)
    limit_bytes = machine.max_shared_bytes - taken_bytes
    if plan.total_bytes > limit_bytes:
        raise _too_much(plan, limit_bytes, machine.arch)
    for buffer in plan.buffers:
        _give_place(buffer)
    return plan


def _give_place(buffer: SharedBuffer) -> None:
    if buffer.shape:
        buffer.op.properties["offset_bytes"] = IntegerAttr(buffer.offset_bytes, i32)
    else:
        place_scratch(buffer.op, buffer.offset_bytes)


def plan_shared(
    kernel: FuncOp, machine: MachineModel, num_warps: int, taken_bytes: int = 0
) -> SharedPlan:
    """Where the shared memory of a kernel would lie; the kernel stays as it is."""
    limit_bytes = machine.max_shared_bytes - taken_bytes
    reserved_bytes = machine.reserved_shared_bytes
    buffers = _buffers(kernel)
    placed = sweep(buffers)
    if total(placed) > limit_bytes:
        placed = min(placed, largest_first(buffers), key=total)
    most = _most_programs(kernel, machine, num_warps)
    wanted = _programs(placed, limit_bytes, reserved_bytes, most)
    for apart_bytes in (limit_bytes, SMALL_BYTES):
        apart = sweep(buffers, apart_bytes)
        if wanted and _programs(apart, limit_bytes, reserved_bytes, most) == wanted:
            placed = apart
            break
    placed = sorted(placed, key=lambda buffer: buffer.live.start)
    return SharedPlan(tuple(placed), total(placed))


def _programs(
    placed: Sequence[SharedBuffer], limit_bytes: int, reserved_bytes: int, most: int
) -> int:
    """How many programs a multiprocessor runs at once, as far as shared memory goes."""
    each = total(placed) + reserved_bytes
    return min(max(1, most), (limit_bytes + reserved_bytes) // each)


def _most_programs(kernel: FuncOp, machine: MachineModel, num_warps: int) -> int:
    """How many programs fill a multiprocessor: with products, registers of their results do.

    Measured on an H200, 2026-11-22: attention of 64 x 64 x 64 with 4 warps takes 96 registers; two
    programs, as 80 KiB apart let run, had 323 TFLOP/s, four of 48 KiB without a mask 456.
    """
    most = machine.max_warps_per_sm // num_warps
    products: dict[Block | None, list[Operation]] = {}
    for op in kernel.walk():
        if type(op) is LaidOutDotOp:
            products.setdefault(op.parent, []).append(op)
    fewest, _ = OTHER_REGISTERS
    by_block = [programs_per_sm(ops, num_warps, machine, fewest) for ops in products.values()]
    return min([most, *by_block])


def place_role_memory(
    kernel: FuncOp, roles: RolesOp, machine: MachineModel, taken_bytes: int
) -> SharedPlan:
    """Places in a program with roles: what all reach first, then what each replica has alone.

    Roles run at once, so nothing of one shares bytes with anything of another. Places inside of
    a role count from where its first replica's memory starts. *Raises*: SharedMemoryExceeded.
    """
    layout = _lay_out_roles(kernel, roles)
    limit_bytes = machine.max_shared_bytes - taken_bytes
    if layout.plan.total_bytes > limit_bytes:
        raise _too_much(layout.plan, limit_bytes, machine.arch)
    for ring, offset in layout.rings:
        ring.properties["offset_bytes"] = IntegerAttr(offset, i32)
    for buffers in layout.placed:
        for buffer in buffers:
            _give_place(buffer)
    starts, sizes = zip(*layout.roles, strict=True)
    roles.properties["shared_start"] = integer_array(starts)
    roles.properties["shared_bytes"] = integer_array(sizes)
    return layout.plan


def plan_role_memory(kernel: FuncOp) -> SharedPlan:
    """Where the shared memory of a kernel with roles would lie; the kernel stays as it is."""
    roles = find_roles(kernel)
    assert roles is not None
    return _lay_out_roles(kernel, roles).plan


@dataclass(frozen=True)
class _RoleMemory:
    """What lies where: the buffers of all roles, then of each; (start, size) of each role."""

    placed: tuple[Sequence[SharedBuffer], ...]
    roles: tuple[tuple[int, int], ...]
    rings: tuple[tuple[RingOp, int], ...]
    plan: SharedPlan


def _lay_out_roles(kernel: FuncOp, roles: RolesOp) -> _RoleMemory:
    common, own = _by_role(kernel, roles)
    plans = [(0, 0, _lay_out_common(common, rings_of(kernel)))]
    end = total(plans[0][2])
    for role, buffers in zip(roles.described(), own, strict=True):
        placed = min((sweep(buffers), largest_first(buffers)), key=total)
        start = aligned(end, ROLE_ALIGNMENT_BYTES) if placed else end
        size = aligned(total(placed), ROLE_ALIGNMENT_BYTES)
        plans.append((start, size, placed))
        end = start + role.replicas * size
    rings: list[tuple[RingOp, int]] = []
    for ring in rings_of(kernel):
        end = aligned(end, RING_SLOT_BYTES)
        rings.append((ring, end))
        end += ring.num_slots * RING_SLOT_BYTES
    moved = [replace(b, offset_bytes=start + b.offset_bytes) for start, _, bs in plans for b in bs]
    plan = SharedPlan(tuple(sorted(moved, key=lambda b: b.live.start)), end)
    places = tuple((start, size) for start, size, _ in plans[1:])
    return _RoleMemory(tuple(placed for *_, placed in plans), places, tuple(rings), plan)


def _lay_out_common(common: Sequence[SharedBuffer], rings: Sequence[RingOp]) -> list[SharedBuffer]:
    """Places of what all roles reach, who run at once: apart, but for rings with one memory."""
    memories = dict.fromkeys(ring.memory for ring in rings if ring.shares)
    members = [ring for ring in rings if ring.memory in memories]
    of_members = {tile.owner for ring in members for tile in ring.tiles}
    alone = [buffer for buffer in common if buffer.op not in of_members]
    placed = sweep(alone, sum(buffer.size_bytes for buffer in alone))
    for memory in memories:
        own = [ring for ring in members if ring.memory == memory]
        owners = [{tile.owner for tile in ring.tiles} for ring in own]
        tiles = [[b for b in common if b.op in ops] for ops in owners]
        start = aligned(total(placed), max(b.alignment_bytes for bs in tiles for b in bs))
        for buffers in tiles:
            end = start
            for buffer in buffers:
                placed.append(fitted(buffer, (), end))
                end = placed[-1].end_bytes
    return placed


ROLE_ALIGNMENT_BYTES = 1024
"""Where the memory of a replica starts: at the pattern of every swizzle.

Source: PTX ISA 8.8, wgmma, layout in shared memory: the pattern of 128 bytes repeats each 1,024."""
RING_SLOT_BYTES = 16
"""What says whether one slot of a ring is full and whether it is empty.

By definition: two mbarriers of 8 bytes."""


def _by_role(kernel: FuncOp, roles: RolesOp) -> tuple[list[SharedBuffer], list[list[SharedBuffer]]]:
    """The buffers that stand outside of all roles, and those inside of each."""
    common: list[SharedBuffer] = []
    own: list[list[SharedBuffer]] = [[] for _ in roles.bodies]
    for buffer in _buffers(kernel):
        around = role_around(buffer.op)
        if around is None:
            common.append(buffer)
        else:
            own[around[1]].append(buffer)
    return common, own


def _buffers(kernel: FuncOp) -> list[SharedBuffer]:
    block = kernel.body.block
    tiles = live_ranges(block, SharedAliases(), touched_tiles)
    buffers = [_tile_buffer(op, live) for op, live in tiles.items()]
    numbering = Numbering(block)
    for op in numbering.ops():
        size = scratch_bytes(op)
        if size:
            live = numbering.spans[op]
            buffers.append(SharedBuffer(op, size, SCRATCH_ALIGNMENT_BYTES, live))
    return buffers


def _tile_buffer(op: Operation, live: LiveRange) -> SharedBuffer:
    type_ = op.results[0].type
    assert isinstance(type_, SharedType)
    alignment = tile_alignment(layout_of(type_), storage_bytes(type_.element))
    size = tile_bytes(type_)
    return SharedBuffer(op, size, alignment, live, type_.extents(), type_.slots.data)


def tile_alignment(layout: LinearLayout, element_bytes: int) -> int:
    """The alignment in bytes at which a shared layout means the same at any place.

    The pattern of a swizzle repeats behind its highest bit that moves in two ways; hardware
    takes it from the address.
    """
    bases = layout.basis_images("offset")
    mixed = [bit for bit, basis in enumerate(bases) if sum(s.bit_count() for s in basis) > 1]
    pattern = (2 << mixed[-1]) * element_bytes if mixed else 1
    return max(TILE_ALIGNMENT_BYTES, pattern)


def _too_much(plan: SharedPlan, limit_bytes: int, machine: str) -> SharedMemoryExceeded:
    """The error that names the pieces in use where most is, largest first."""
    peak = max(plan.buffers, key=lambda b: b.end_bytes)
    alive = sorted(
        (b for b in plan.buffers if b.live.overlaps(peak.live)), key=lambda b: -b.size_bytes
    )
    pieces: dict[str, str] = {}
    for number, buffer in enumerate(alive, 1):
        line = describe(buffer.op).rpartition("/")[2]
        pieces[f"{number}. {buffer.what} at {line}"] = f"{buffer.size_bytes} bytes"
    span, chain = span_of(alive[0].op)
    error = SharedMemoryExceeded(
        f"the kernel needs {plan.total_bytes} bytes of shared memory, {machine} has {limit_bytes}",
        types=pieces,
        hint=_advice(plan, alive[0], limit_bytes),
        span=span,
        chain=chain,
    )
    error.required_bytes, error.limit_bytes = plan.total_bytes, limit_bytes
    return error


def _advice(plan: SharedPlan, largest: SharedBuffer, limit_bytes: int) -> str:
    """What would make a kernel fit: shorter rings, else a smaller block, else fewer warps.

    Who has no ring is not told to lower `num_stages`: nothing would change.
    """
    stages = max(buffer.slots for buffer in plan.buffers)
    for fewer in range(stages - 1, 0, -1):
        sizes = [b.size_bytes // b.slots * min(b.slots, fewer) for b in plan.buffers]
        if _needed(plan, sizes) <= limit_bytes:
            return (
                f"{fewer} slots a ring fit instead of {stages}: lower `num_stages`, or say "
                f"`slots {fewer}` in the schedule"
            )
    for divisor in (2, 4, 8, 16):
        if _needed(plan, [b.size_bytes // divisor for b in plan.buffers]) <= limit_bytes:
            extent = max(largest.shape, default=0)
            example = f", such as {extent // divisor} for {extent}" if extent else ""
            return f"blocks of {_FRACTIONS[divisor]} the size fit{example}"
    return "use smaller blocks or fewer warps"


_FRACTIONS = {2: "half", 4: "a quarter of", 8: "an eighth of", 16: "a sixteenth of"}


def _needed(plan: SharedPlan, sizes: Sequence[int]) -> int:
    pairs = zip(plan.buffers, sizes, strict=True)
    resized = [replace(buffer, size_bytes=size) for buffer, size in pairs]
    return min(total(sweep(resized)), total(largest_first(resized)))
