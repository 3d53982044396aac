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
from tilewright.ops.rings import RingOp, rings_of
from tilewright.ops.roles import RolesOp, find_roles, role_around
from tilewright.ops.staging import LaidOutDotOp
from tilewright.schedule.product_registers import OTHER_REGISTERS, programs_per_sm
from tilewright.schedule.scratch import place_scratch, scratch_bytes
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
class SharedBuffer:
    """A piece of shared memory that an op allocates or needs while it runs.

    `slots` and `shape` are those of a shared tile; scratch has no shape.
    """

    op: Operation
    size_bytes: int
    alignment_bytes: int
    live: LiveRange
    shape: tuple[int, ...] = ()
    slots: int = 1
    offset_bytes: int = 0

    @property
    def what(self) -> str:
        """What it holds; the name of an element takes xDSL's printer, so no compile asks."""
        if not self.shape:
            return f"scratch of {self.op.name.partition('.')[2]}"
        type_ = self.op.results[0].type
        assert isinstance(type_, SharedType)
        copies = f" x {self.slots}" if self.slots > 1 else ""
        return f"{list(self.shape)} {type_.element}{copies}"

    @property
    def end_bytes(self) -> int:
        """Where it ends."""
        return self.offset_bytes + self.size_bytes


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
    placed = _sweep(buffers)
    if _total(placed) > limit_bytes:
        placed = min(placed, _largest_first(buffers), key=_total)
    most = _most_programs(kernel, machine, num_warps)
    wanted = _programs(placed, limit_bytes, reserved_bytes, most)
    for apart_bytes in (limit_bytes, SMALL_BYTES):
        apart = _sweep(buffers, apart_bytes)
        if wanted and _programs(apart, limit_bytes, reserved_bytes, most) == wanted:
            placed = apart
            break
    placed = sorted(placed, key=lambda buffer: buffer.live.start)
    return SharedPlan(tuple(placed), _total(placed))


def _programs(
    placed: Sequence[SharedBuffer], limit_bytes: int, reserved_bytes: int, most: int
) -> int:
    """How many programs a multiprocessor runs at once, as far as shared memory goes."""
    each = _total(placed) + reserved_bytes
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
    # All roles run as long as the program: what they have in common lies apart.
    plans = [(0, 0, _sweep(common, sum(buffer.size_bytes for buffer in common)))]
    end = _total(plans[0][2])
    for role, buffers in zip(roles.described(), own, strict=True):
        placed = min((_sweep(buffers), _largest_first(buffers)), key=_total)
        start = _aligned(end, ROLE_ALIGNMENT_BYTES) if placed else end
        size = _aligned(_total(placed), ROLE_ALIGNMENT_BYTES)
        plans.append((start, size, placed))
        end = start + role.replicas * size
    rings: list[tuple[RingOp, int]] = []
    for ring in rings_of(kernel):
        end = _aligned(end, RING_SLOT_BYTES)
        rings.append((ring, end))
        end += ring.num_slots * RING_SLOT_BYTES
    moved = [replace(b, offset_bytes=start + b.offset_bytes) for start, _, bs in plans for b in bs]
    plan = SharedPlan(tuple(sorted(moved, key=lambda b: b.live.start)), end)
    places = tuple((start, size) for start, size, _ in plans[1:])
    return _RoleMemory(tuple(placed for *_, placed in plans), places, tuple(rings), plan)


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


def _total(buffers: Sequence[SharedBuffer]) -> int:
    return max((buffer.end_bytes for buffer in buffers), default=0)


def _sweep(buffers: Sequence[SharedBuffer], apart_bytes: int = 0) -> list[SharedBuffer]:
    """First fit in the order of the starts, among those that are still in use.

    What has at most `apart_bytes` shares with nothing.
    """
    placed: list[SharedBuffer] = []
    floor = 0
    for buffer in (b for b in buffers if b.size_bytes <= apart_bytes):
        placed.append(_fitted(buffer, (), floor))
        floor = placed[-1].end_bytes
    active: list[SharedBuffer] = []
    shared = [b for b in buffers if b.size_bytes > apart_bytes]
    for buffer in sorted(shared, key=lambda b: (b.live.start, -b.size_bytes)):
        active = [other for other in active if other.live.end >= buffer.live.start]
        active.append(_fitted(buffer, active, floor))
        placed.append(active[-1])
    return placed


def _largest_first(buffers: Sequence[SharedBuffer]) -> list[SharedBuffer]:
    """First fit in the order of the sizes; it compares every two."""
    placed: list[SharedBuffer] = []
    for buffer in sorted(buffers, key=lambda b: (-b.size_bytes, b.live.start)):
        beside = [other for other in placed if other.live.overlaps(buffer.live)]
        placed.append(_fitted(buffer, beside))
    return placed


def _fitted(buffer: SharedBuffer, beside: Sequence[SharedBuffer], floor: int = 0) -> SharedBuffer:
    """The buffer at the lowest place from `floor` on between those that are in use with it."""
    offset = _aligned(floor, buffer.alignment_bytes)
    for start, end in sorted((other.offset_bytes, other.end_bytes) for other in beside):
        if start - offset >= buffer.size_bytes:
            break
        offset = max(offset, _aligned(end, buffer.alignment_bytes))
    return replace(buffer, offset_bytes=offset)


def _aligned(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment


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
    return SharedMemoryExceeded(
        f"the kernel needs {plan.total_bytes} bytes of shared memory, {machine} has {limit_bytes}",
        types=pieces,
        hint=_advice(plan, alive[0], limit_bytes),
        span=span,
        chain=chain,
    )


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
    return min(_total(_sweep(resized)), _total(_largest_first(resized)))
