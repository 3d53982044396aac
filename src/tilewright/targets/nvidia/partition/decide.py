"""Decides the roles of a kernel whose author asks for them (T0 to T0).

    num_consumer_groups=2, or tl.range(…, warp_specialize=True)
    ⇒ tt.func … {tw.schedule = #tw.schedule<"roles load regs 40 | math x2 regs 232 split m;
      ring ab tiles load#0 load#1 slots 4">}

Loads by the copy engine go through rings, those that one product takes from one block through one;
loads of the same tensor in several loops take turns with it. A schedule that is
annotated already is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from tilewright.ir.passes import Pass
from tilewright.ir.regions import is_control_flow, loops_around
from tilewright.ir.schedule import Epilogue, Role, Schedule
from tilewright.ir.schedule_attributes import annotate_schedule, schedule_of
from tilewright.ir.types import shape_of, storage_bytes
from tilewright.machine.gpus import SM_90A
from tilewright.machine.mma import WGMMA
from tilewright.machine.model import MachineModel
from tilewright.ops.descriptors.ir import DescriptorLoadOp
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.ops.matmul.ir import ProductOp
from tilewright.ops.memory.ir import LoadOp
from tilewright.ops.program.persistence import most_programs
from tilewright.ops.shape.ir import PermutingOp
from tilewright.passes.branch_masks import find_masks
from tilewright.schedule.partition.tasks import ask_for_roles, groups_of_tasks
from tilewright.schedule.plan.anchors import anchors_of, require_anchors
from tilewright.schedule.plan.verify_schedule import require_room
from tilewright.schedule.role_registers import most_granted
from tilewright.support.dataclass import dataclass, replace
from tilewright.support.errors import InvalidOption
from tilewright.support.options import CompileOptions
from tilewright.targets.nvidia.partition import copied_loads, two_programs
from tilewright.targets.nvidia.partition.default_roles import (
    GROUPS,
    large_product,
    leaves_open,
    may_cluster,
    runs_by_default,
)
from tilewright.targets.nvidia.partition.epilogues import (
    ALL_BUFFERS,
    TWO_BUFFERS,
    epilogue_of,
    gains_whole,
)
from tilewright.targets.nvidia.partition.gradients import REGISTERS, gradient_groups
from tilewright.targets.nvidia.partition.keep_order import makes_maps
from tilewright.targets.nvidia.partition.lines import crosses_lines
from tilewright.targets.nvidia.partition.order import decide_order, pairs_of
from tilewright.targets.nvidia.partition.room import stored_bytes
from tilewright.targets.nvidia.partition.share_blocks import PROGRAMS, goes_by_programs
from tilewright.targets.nvidia.partition.share_rings import Ring, memory_bytes, share_rings
from tilewright.targets.nvidia.partition.smaller_maps import made_maps_of, maps_of
from tilewright.targets.nvidia.partition.two_programs import runs_twice

ROLES_HINT = "tt.warp_specialize"
# The registers of a thread that loads and of one that multiplies, by the number of groups.
# Source: hand-written programs of products and of attention ran so without spills (H200).
_REGISTERS = {1: (40, 240), 2: (40, 232), 3: (32, 160)}
# Of kernels whose program makes tensor maps: what it knows of its group are scalars of both roles.
# Source: ptxas 13.0; a grouped product spills 280 bytes with 40 and 232, 84 with 56 and 224, as the
# role that loads comes where roles meet, too, 12 with 64 and 216, 8 with 72 and 216 where maps that
# are made in a row wait once, and none with these.
_REGISTERS_OF_MAKERS = {1: (80, 240), 2: (80, 208), 3: (80, 136)}
_GROUP_THREADS = 128
_RESERVED_BYTES = 2048
"""Left for mbarriers and alignment. Chosen, not measured: what else takes room costs a slot."""
_MAX_SLOTS = 8
_FEWEST_SLOTS = 2
"""With fewer a role that loads waits for each read. By definition."""
_BESIDE_BYTES = 1024
"""A tile of at most so many bytes comes with the load before it, and not through a ring of its own.
Source: numbers of the rows beside the blocks of attention's backward, written by hand (H200)."""
_TILE_IN_TURN = 128 * 128
"""The elements of a tile that one group takes whole. Source: 128 registers of each thread, which
beside 64 that are stored and 30 more fit in 232 without spills (H200)."""


@dataclass(frozen=True)
class DecideRoles(Pass):
    """The pass; see the module. `groups` 0 asks for roles only where a loop does.

    With `is_open` large products get them though nobody asks; see `default_roles.py`. With
    `is_clustered` a launch starts pairs of programs as clusters, with `loads_alone` threads store.
    What is stored in chunks goes through so many `buffers`, or as many as are best. Programs of the
    author's that go from tile to tile load for each other only if they `may_cluster`.
    """

    machine: MachineModel = SM_90A
    num_warps: int = 4
    groups: int = 0
    slots: int = 0
    load_registers: int = 0
    math_registers: int = 0
    loop_schedule: str = ""
    is_open: bool = False
    is_clustered: bool = False
    loads_alone: bool = False
    buffers: int = 0
    may_cluster: bool = True
    name = "decide-roles"
    after = ("select-tensor-maps", "merge-duplicates")

    @classmethod
    def of_options(cls, machine: MachineModel, options: CompileOptions) -> DecideRoles:
        """The pass as the options of a launch ask for it."""
        return cls(
            machine,
            options.num_warps,
            options.num_consumer_groups or 0,
            options.num_buffers_warp_spec,
            options.reg_dec_producer,
            options.reg_inc_consumer,
            options.loop_schedule or "",
            leaves_open(options),
            options.cluster_dims == (PROGRAMS, 1, 1),
            options.bulk_access == "loads",
            may_cluster=may_cluster(options),
        )

    def apply(self, module: ModuleOp) -> None:
        """Annotate the kernel.

        *Raises*: InvalidOption for more registers than there are, PlanRefused for tasks of the
        author's that are no roles, and for rings of the author's that do not fit.
        """
        kernel = find_kernel(module)
        given = schedule_of(kernel)
        if given is not None and given.roles:
            require_room(kernel, given, require_anchors(given, kernel), self.machine)
        is_hinted = any(ROLES_HINT in op.attributes for op in kernel.walk())
        is_hinted = is_hinted or ask_for_roles(kernel)
        asked = groups_of_tasks(kernel, self.groups)
        if not (asked or is_hinted) and self._runs_by_default(kernel):
            asked = GROUPS
        if schedule_of(kernel) is not None or not (asked or is_hinted):
            return
        annotate_schedule(kernel, self.schedule(kernel, asked))

    def _runs_by_default(self, kernel: FuncOp) -> bool:
        return self.is_open and runs_by_default(kernel, self.machine, self.loads_alone)

    def schedule(self, kernel: FuncOp, asked: int = 0) -> Schedule:
        """The roles of a kernel and the rings between them; `asked` groups if it is not 0."""
        if not (self.buffers or self.slots):
            whole = replace(self, buffers=ALL_BUFFERS).schedule(kernel, asked)
            if gains_whole(kernel, whole):
                return whole
        groups = asked or self.groups or self._unsaid_groups(kernel)
        is_twice = not (asked or self.groups) and groups == 2 and runs_twice(kernel)
        copied = copied_loads.copied_loads(kernel)
        load, math = two_programs.REGISTERS if is_twice else _registers(kernel, groups, copied)
        split = _split(kernel, groups)
        roles = (
            Role("load", "load", registers=self.load_registers or load),
            Role("math", "math", 4, groups, self.math_registers or math, split),
        )
        self._check_registers(roles)
        rings = _rings(kernel, copied)
        epilogue = epilogue_of(kernel, self.buffers or TWO_BUFFERS)
        programs = two_programs.PROGRAMS if is_twice else 1
        free, taken = self._free_bytes(kernel, roles[1], epilogue, programs)
        own, rings = rings, self._shared(rings, split, free)
        slots, reason = self._slots(rings, free, taken)
        shared = () if rings is own else (_sharing(rings, self._fitting(own, free)),)
        release = "late" if split == "tiles" and slots > 1 else "wait"
        channels = tuple(ring.channel(slots, release) for ring in rings)
        order = decide_order(kernel, roles, slots, self.loop_schedule, self.machine)
        reasons = (reason, *shared, *order.reasons)
        mask = "branch" if any(True for _ in find_masks(kernel)) else "always"
        persist = "static" if most_programs(kernel) else ""
        cluster = self._cluster(kernel, roles[1])
        return Schedule(
            roles, channels, order.loops, order.turns, epilogue, persist, mask, cluster, reasons
        )

    def _cluster(self, kernel: FuncOp, math: Role) -> int:
        """How many programs load for each other: two where lines of L2 are what limits them."""
        if self.is_clustered:
            return PROGRAMS
        is_walk = most_programs(kernel) or (self.may_cluster and goes_by_programs(kernel))
        may_be = math.replicas == PROGRAMS and math.split == "m" and is_walk
        is_able = self.machine.max_cluster_size >= PROGRAMS
        return PROGRAMS if may_be and is_able and crosses_lines(kernel) else 1

    def _unsaid_groups(self, kernel: FuncOp) -> int:
        """As many groups as warps; as products of large tiles need, or the rows of attention."""
        if large_product(kernel, self.machine) is not None:
            return GROUPS
        rows = [shape_of(pair.first.result.type)[-2] for pair in pairs_of(kernel)]
        of_attention = min(rows) // WGMMA.rows if rows else gradient_groups(kernel)
        return min(3, max(1, of_attention or self.num_warps // 4))

    def _check_registers(self, roles: tuple[Role, Role]) -> None:
        warps = sum(role.replicas * role.warps for role in roles)
        most = most_granted(self.machine, warps)
        asked = _GROUP_THREADS * sum(role.replicas * role.registers for role in roles)
        if asked > most:
            load, math = roles
            raise InvalidOption(
                f"{math.replicas} groups of {math.registers} registers a thread and one of "
                f"{load.registers} are {asked} registers, and a program has at most {most}",
                argument="reg_inc_consumer",
                hint=f"{math.replicas} groups run with {_REGISTERS[math.replicas][1]}",
            )

    def _free_bytes(
        self, kernel: FuncOp, math: Role, epilogue: Epilogue, programs: int
    ) -> tuple[int, int]:
        """What rings have of a program's memory, where so many run at once, and what is stored."""
        stored = math.replicas * stored_bytes(kernel.body.block, epilogue, _parts(math))
        return self.machine.max_shared_bytes // programs - _RESERVED_BYTES - stored, stored

    def _fitting(self, rings: Sequence[Ring], free: int) -> int:
        """How many slots of all rings in loops fit so many bytes; negative where none does."""
        step = memory_bytes(rings, is_in_loop=True)
        left = free - memory_bytes(rings, is_in_loop=False)
        return left // step if step else (1 if left >= 0 else -1)

    def _shared(self, rings: Sequence[Ring], split: str, free: int) -> Sequence[Ring]:
        """The rings, with one memory where they have fewer slots than asked for, or than two."""
        if split == "tiles" or any(ring.is_copied() for ring in rings):
            return rings
        wanted = self.slots or _FEWEST_SLOTS
        if not any(ring.is_in_loop for ring in rings):
            wanted = 1
        return share_rings(rings, wanted, lambda some: self._fitting(some, free))

    def _slots(self, rings: Sequence[Ring], free: int, stored: int) -> tuple[int, str]:
        """The slots of rings that loops fill, and why."""
        if self.slots:
            return self.slots, f"{self.slots} slots, as num_buffers_warp_spec says"
        step = memory_bytes(rings, is_in_loop=True)
        held = memory_bytes(rings, is_in_loop=False)
        fitting = min(_MAX_SLOTS, max(1, self._fitting(rings, free))) if step else 1
        return fitting, f"{fitting} slots of {step} bytes fit beside {held + stored} bytes"


def _registers(kernel: FuncOp, groups: int, copied: Sequence[LoadOp]) -> tuple[int, int]:
    """Those of a thread that loads and of one that multiplies, of a program alone."""
    if copied:
        return copied_loads.REGISTERS[groups]
    is_of_gradients = groups == 2 and gradient_groups(kernel) > 0
    usual = _REGISTERS_OF_MAKERS if makes_maps(kernel) else _REGISTERS
    return REGISTERS if is_of_gradients else usual[groups]


def _split(kernel: FuncOp, groups: int) -> str:
    """What groups share: the rows of each tile, or small tiles in turn, one multiplying at a time.

    Source: products of 8192 x 8192 x 1024 by hand, 1.15 times the speed of cuBLAS with tiles of
    128 x 128 in turn, 1.07 with rows of 128 x 256; 1.03 of both at a depth of 8192 (H200).
    """
    products = [op for op in kernel.walk() if isinstance(op, ProductOp)]
    if groups == 1 or not products:
        return "" if groups == 1 else "m"
    (product, *others) = products
    shape = shape_of(product.result.type)
    is_small = len(shape) == 2 and prod(shape) <= _TILE_IN_TURN and shape[0] % WGMMA.rows == 0
    is_nested = len(list(loops_around(product))) > 1
    return "tiles" if groups == 2 and is_small and is_nested and not others else "m"


def _sharing(rings: Sequence[Ring], own: int) -> str:
    """Why rings share memory."""
    short = f"{max(0, own)} slots" if own != 1 else "one slot"
    shared = [f"{ring.name} lies in the memory of {ring.shares}" for ring in rings if ring.shares]
    joined = [f"{ring.name} is filled by loops in turn" for ring in rings if len(ring.fills) > 1]
    return f"{'; '.join((*joined, *shared))}: {short} of each alone would fit"


def _rings(kernel: FuncOp, copied: Sequence[LoadOp]) -> list[Ring]:
    """The rings of a kernel: those that the copy engine fills in the order of the text.

    Each of the loads `copied` by threads has one of its own behind them.
    """
    maps = {op.result for op in (*maps_of(kernel), *made_maps_of(kernel))}
    anchors = {op: anchor for anchor, op in anchors_of(kernel).items() if anchor.index >= 0}
    sites: dict[tuple[Block, Operation, int], list[DescriptorLoadOp]] = {}
    before: dict[tuple[Block, int], tuple[Block, Operation, int]] = {}
    for op in kernel.walk():
        if isinstance(op, DescriptorLoadOp) and op.desc in maps:
            assert op.parent is not None
            product, stretch = _product_of(op.result), _stretch_of(op)
            key = op.parent, product or op, stretch
            if product is None and _tile_bytes(op.result) <= _BESIDE_BYTES:
                key = before.get((op.parent, stretch), key)
            before[op.parent, stretch] = key
            sites.setdefault(key, []).append(op)
    rings: dict[tuple[object, ...], list[DescriptorLoadOp]] = {}
    for (block, *_), loads in sites.items():
        is_in_loop = next(loops_around(loads[0]), None) is not None
        key: tuple[object, ...] = (is_in_loop, *(load.desc for load in loads))
        # What one block loads twice are two fills of one iteration: rings of their own.
        beside = sum(other.parent is block for other in rings.get(key, ())) // len(loads)
        key = (*key, beside) if beside else key
        rings.setdefault(key, []).extend(loads)
    found: list[Ring] = []
    for key, loads in rings.items():
        size = sum(_tile_bytes(load.result) for load in loads if load.parent is loads[0].parent)
        name, named = f"ring{len(found)}", tuple(anchors[load] for load in loads)
        blocks = dict.fromkeys(load.parent for load in loads)
        fills = tuple(tuple(load for load in loads if load.parent is block) for block in blocks)
        found.append(Ring(name, named, fills, size, bool(key[0])))
    for load in copied:
        is_in_loop = next(loops_around(load), None) is not None
        size = _tile_bytes(load.result)
        found.append(Ring(f"ring{len(found)}", (anchors[load],), ((load,),), size, is_in_loop))
    return found


def _stretch_of(op: Operation) -> int:
    """The straight line of its block that an op stands in, by the loops and branches before it."""
    count = 0
    before = op.prev_op
    while before is not None:
        count += is_control_flow(before)
        before = before.prev_op
    return count


def _product_of(value: SSAValue) -> Operation | None:
    """The first product that takes a tile as it is, or transposed."""
    for use in value.uses:
        user = use.operation
        if isinstance(user, ProductOp):
            return user
        if isinstance(user, PermutingOp):
            return _product_of(user.result)
    return None


def _parts(math: Role) -> int:
    """Among how many replicas a block is divided."""
    return math.replicas if math.split in ("m", "n") else 1


def _tile_bytes(value: SSAValue) -> int:
    return prod(shape_of(value.type)) * storage_bytes(value.type)
