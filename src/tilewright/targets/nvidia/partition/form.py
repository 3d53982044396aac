"""Makes the roles that a kernel's schedule asks for (T0 to T0r); see `form_roles.py`.

A kernel without a schedule of roles stays as it is, and so does one that cannot be partitioned:
a remark says which line is in the way, and why.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilewright.analysis.alias import tile_bytes
from tilewright.ir.encoding import SharedType, layout_of
from tilewright.ir.locations import describe
from tilewright.ir.op import build
from tilewright.ir.passes import Pass
from tilewright.ir.schedule import Epilogue, Role, Schedule
from tilewright.ir.schedule_attributes import ANCHOR, SCHEDULE, annotate_schedule, schedule_of
from tilewright.ir.types import shape_of
from tilewright.layout.parts import part_step
from tilewright.machine.gpus import SM_90A
from tilewright.machine.mma import WGMMA
from tilewright.machine.model import MachineModel
from tilewright.ops.channels import GetOp, SliceOp
from tilewright.ops.descriptors.ir import DescriptorLoadOp
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.ops.matmul.ir import ProductOp
from tilewright.ops.program.persistence import most_programs
from tilewright.passes.persist import tile_loops, undo
from tilewright.schedule.partition.form_roles import (
    form_roles,
    hidden_reads,
    loaded_ahead,
    sites_of,
)
from tilewright.schedule.partition.lifted_reads import lift_reads
from tilewright.schedule.partition.lives import Site
from tilewright.schedule.partition.refusal import NoRoom, Refused
from tilewright.schedule.partition.split_tiles import Smaller
from tilewright.schedule.partition.tasks import has_tasks, refused_tasks
from tilewright.schedule.plan.anchors import name_anchors, require_anchors
from tilewright.schedule.plan.verify_schedule import require_legal
from tilewright.support.dataclass import dataclass, replace
from tilewright.support.errors import UnsupportedLayout
from tilewright.targets.nvidia.partition.copied_loads import first_problem, why_not_copied
from tilewright.targets.nvidia.partition.extents import require_extents
from tilewright.targets.nvidia.partition.keep_order import keep_order, makes_maps
from tilewright.targets.nvidia.partition.landed import part_landed, swizzled_rows
from tilewright.targets.nvidia.partition.overlap_guards import overlap_guards
from tilewright.targets.nvidia.partition.room import stored_bytes
from tilewright.targets.nvidia.partition.smaller_maps import SmallerMaps, drop_unused_maps, maps_of
from tilewright.targets.nvidia.tma.launch_conditions import add_guards
from tilewright.targets.nvidia.tma.select_tensor_maps import remarks_of
from tilewright.targets.nvidia.tma.stage import tile_type
from tilewright.targets.nvidia.tma_ops import LeaveMapSlotOp, TakeMapSlotOp

REMARKS_ATTRIBUTE = "tw.partition_remarks"
"""Left on the kernel: why it has no roles."""
_MEETS = (
    "descriptors follow from memory: roles meet where a load may find what was stored before it"
)
# Mbarriers, and what alignment of tiles takes at most. Chosen, not measured: too little is refused
# where memory is placed.
_RESERVED_BYTES = 2048


@dataclass(frozen=True)
class FormRoles(Pass):
    """The pass; see the module. `may_overlap`: no load runs ahead of a store."""

    machine: MachineModel = SM_90A
    may_overlap: bool = False
    name = "form-roles"
    produces = "T0r"
    after = ("select-tensor-maps", "merge-duplicates", "decide-roles")

    def apply(self, module: ModuleOp) -> None:
        """Rewrite the kernel."""
        kernel = find_kernel(module)
        refused = self._form(kernel)
        require_extents(kernel, (*partition_remarks(kernel), *_of_copies(kernel, refused)), refused)

    def _form(self, kernel: FuncOp) -> Refused | None:
        """Make the roles of a kernel; why not, where it asks for some."""
        schedule = schedule_of(kernel)
        if schedule is None or not any(role.kind == "load" for role in schedule.roles):
            return None
        require_legal(kernel, schedule, require_anchors(schedule, kernel), self.machine, 0)
        name_anchors(kernel)
        refused = self._try(kernel, schedule)
        if refused is not None and any(role.split == "tiles" for role in schedule.roles):
            schedule = sharing_rows(schedule, refused)
            annotate_schedule(kernel, schedule)
            refused = self._try(kernel, schedule)
        if refused is not None:
            kernel.attributes[REMARKS_ATTRIBUTE] = ArrayAttr([StringAttr(refused.remark())])
            del kernel.attributes[SCHEDULE]
            for op in kernel.walk():
                op.attributes.pop(ANCHOR, None)
            if most_programs(kernel):
                undo(kernel)
        drop_unused_maps(kernel)
        return refused

    def _try(self, kernel: FuncOp, schedule: Schedule) -> Refused | None:
        """Make the roles of a schedule; why not, with the kernel as it was."""
        gpu = _Gpu(kernel, self.machine, schedule.epilogue)
        before: Region | None = None
        try:
            _require_rings(kernel, schedule)
            sites = sites_of(kernel, schedule)
            hidden = hidden_reads(kernel, sites)
            before = kernel.body.clone() if hidden or makes_maps(kernel) else None
            lift_reads(kernel.body.block, hidden)
            known = keep_order(kernel) if makes_maps(kernel) else frozenset[Operation]()
            loads = loaded_ahead(kernel, sites, known)
            guards = overlap_guards(kernel, loads, may_overlap=self.may_overlap, known=known)
            form_roles(kernel, schedule, gpu, known)
            add_guards(kernel, guards)
            lifted = (op for op in hidden if op.parent is kernel.body.block)
            reasons = (*((_MEETS,) if known else ()), *map(_lifted, lifted))
            annotate_schedule(kernel, replace(schedule, reasons=(*schedule.reasons, *reasons)))
        except Refused as refused:
            if has_tasks(kernel):
                raise refused_tasks(refused) from refused
            gpu.maps.undo()
            if before is not None:
                _restore(kernel, before)
            return refused
        return None


def _lifted(read: Operation) -> str:
    """That a number is read before the branch in which it stands."""
    return f"the number loaded at {describe(read)} is read in front of its branch, for all roles"


def _require_rings(kernel: FuncOp, schedule: Schedule) -> None:
    """Say of a kernel without rings which load is in the way. *Raises*: Refused."""
    found = None if schedule.channels else first_problem(kernel)
    if found is not None:
        load, problem = found
        raise Refused(load, f"no load goes through a ring, and threads do not copy it: {problem}")


def _restore(kernel: FuncOp, body: Region) -> None:
    """Give a kernel the body that it had."""
    old = kernel.body
    kernel.detach_region(old)
    kernel.add_region(body)
    old.drop_all_references()


def sharing_rows(schedule: Schedule, refused: Refused) -> Schedule:
    """A schedule whose replicas share the rows of each tile, as they cannot take whole ones."""
    roles = tuple(
        replace(role, split="m") if role.split == "tiles" else role for role in schedule.roles
    )
    channels = tuple(replace(channel, release="wait") for channel in schedule.channels)
    reason = f"replicas share rows of tiles: {refused.reason}"
    reasons = (*schedule.reasons, reason)
    return replace(schedule, roles=roles, channels=channels, reasons=reasons)


def partition_remarks(kernel: FuncOp) -> tuple[str, ...]:
    """Why a kernel has no roles that were asked for."""
    texts = kernel.attributes.get(REMARKS_ATTRIBUTE)
    return tuple(text.data for text in texts) if isinstance(texts, ArrayAttr) else ()


def _of_copies(kernel: FuncOp, refused: Refused | None) -> tuple[str, ...]:
    """Why the copy engine does not make the access that stood in the way of roles."""
    place = "" if refused is None else f"{describe(refused.op)}: "
    return tuple(text for text in remarks_of(kernel) if place and text.startswith(place))


class _Gpu:
    """What a GPU makes of roles: channels by the copy engine, products by warp groups."""

    def __init__(self, kernel: FuncOp, machine: MachineModel, epilogue: Epilogue) -> None:
        self.maps = SmallerMaps(kernel)
        self._epilogue = epilogue
        self._kernel = kernel
        self._machine = machine

    def stays(self) -> Sequence[Operation]:
        """The tensor maps, which the launch makes."""
        return maps_of(self._kernel)

    def unordered(self) -> Sequence[Operation]:
        """The loop over tiles of a program that was made persistent."""
        return tile_loops(self._kernel)

    def shrink(self, desc: SSAValue, tile: Attribute) -> Smaller | None:
        """A tensor map of smaller blocks."""
        return self.maps.shrink(desc, tile)

    def end(self, body: Block) -> None:
        """Give the slot of maps back that a role has taken."""
        for op in tuple(body.walk()):
            if isinstance(op, TakeMapSlotOp):
                last = body.last_op
                assert last is not None
                leave = build(LeaveMapSlotOp, [op.result], location=last.location)
                body.insert_op_before(leave, last)

    def check(self, sites: Sequence[Site], math: Role, body: Block) -> None:
        """The copy engine fills each ring, views of its slots can be, and all of it has room."""
        if not self._machine.has_wgmma:
            raise Refused(self._kernel, f"{self._machine.arch} has no products of warp groups")
        for site in sites:
            self._require_medium(site)
        rings = {site.channel.name: _slot_tiles(site) for site in sites}
        for op in body.walk():
            if isinstance(op, ProductOp) and shape_of(op.result.type)[-2] % WGMMA.rows:
                rows = shape_of(op.result.type)[-2]
                raise Refused(op, f"{rows} rows of a product are no multiple of {WGMMA.rows}")
            if isinstance(op, SliceOp):
                _require_view(op, rings)
            if isinstance(op, DescriptorLoadOp):
                # Its mbarrier would be one for all replicas.
                raise Refused(op, "a load by the copy engine goes through no ring")
        self._require_room(sites, rings, math, body)

    def _require_medium(self, site: Site) -> None:
        """The copy engine fills a ring, or the threads of the role that loads do, one tile."""
        ring, own = site.channel, [o for o in site.loads if not isinstance(o, DescriptorLoadOp)]
        if ring.medium == "tma":
            if own:
                what = "the copy engine does not make a load: say `cp_async`, and threads fill"
                raise Refused(own[0], f"{what} ring {ring.name}")
            return
        if ring.medium != "cp_async" or not own:
            raise Refused(site.loads[0], f"ring {ring.name} is not filled by `{ring.medium}`")
        problem = why_not_copied(self._kernel, own[0])
        if problem:
            raise Refused(own[0], f"threads cannot copy a load: {problem}")
        if len(site.loads) > 1 or ring.shares:
            raise Refused(own[0], f"threads fill ring {ring.name}, which has other tiles")

    def _require_room(
        self,
        sites: Sequence[Site],
        rings: dict[str, list[SharedType]],
        math: Role,
        body: Block,
    ) -> None:
        """A slot of each ring fits beside what is stored; `fit-rings` sees to the others."""
        shown = {op.channel_of(): op.values for op in body.walk() if isinstance(op, GetOp)}
        parts = [
            swizzled_rows(value.type)
            for channel, values in shown.items()
            for value in values
            if channel.channel_name.data not in rings
        ]
        sizes: dict[str, int] = {}
        for site in sites:
            memory = site.channel.shares or site.channel.name
            size = sum(map(tile_bytes, rings[site.channel.name]))
            sizes[memory] = max(size, sizes.get(memory, 0))
        slots = sum(sizes.values()) + sum(map(tile_bytes, parts))
        total = slots + math.replicas * stored_bytes(body, self._epilogue) + _RESERVED_BYTES
        most = self._machine.max_shared_bytes
        if total > most:
            raise NoRoom(
                sites[0].loads[0],
                f"one slot of {slots} bytes and what is stored take {total} bytes of shared "
                f"memory, of {most}",
                *(total, most),
            )


def _slot_tiles(site: Site) -> list[SharedType]:
    tiles: list[SharedType] = []
    for load in site.loads:
        if isinstance(load, DescriptorLoadOp):
            tiles.append(tile_type(load, load.desc))
        else:
            tiles.append(swizzled_rows(load.results[0].type))
    return tiles


def _require_view(op: SliceOp, rings: dict[str, list[SharedType]]) -> None:
    """Hold a part of what a role gets to parts of a slot that lie alike. *Raises*: Refused."""
    get = op.src.owner
    assert isinstance(get, GetOp)
    tiles = rings.get(get.channel_of().channel_name.data)
    if tiles is None:  # replicas fill it by parts
        tiles = [swizzled_rows(value.type) for value in get.values]
    whole = next(t for t, value in zip(tiles, get.values, strict=True) if value is op.src)
    extents = shape_of(op.result.type)
    try:
        part_landed(whole, extents)
        part_step(layout_of(whole), op.dim.value.data, extents)
    except UnsupportedLayout as error:
        raise Refused(op, f"a part of a slot is no view of it: {error.summary}") from error
