"""Decides the schedule of a kernel, on T0: which loads run ahead of their loop, and over what.

    for … { %a = load …; %b = load …; %d = dot %a, %b, %c }
    ⇒ tt.func … {tw.schedule = #tw.schedule<"ring loads tiles load#0 load#1 slots 4 cp_async
      release late; loop for#0 load#0 @0.1 load#1 @0.1 dot#0 @2.0">}

`num_stages`, of a loop or of the kernel, is the number of slots, of which as many are used as fit;
where neither says it, `default_stages` does.
A schedule that is annotated already is kept; either way what it names is marked, to be found at
the levels below.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.ir import Operation, SSAValue

from tilewright.ir.annotations import annotated, decided
from tilewright.ir.effects import global_access
from tilewright.ir.encoding import slot_step
from tilewright.ir.locations import describe
from tilewright.ir.passes import Pass
from tilewright.ir.plans import SHARED, ProductAttr
from tilewright.ir.schedule import REST, Anchor, Channel, LoopSchedule, Place, Schedule
from tilewright.ir.schedule_attributes import (
    PARTIAL,
    SCHEDULE,
    annotate_schedule,
    name_anchor,
    schedule_of,
)
from tilewright.ir.types import shape_of, storage_bytes
from tilewright.machine.gpus import SM_90A
from tilewright.machine.model import MachineModel
from tilewright.ops.control_flow import ForOp
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.ops.roles import find_roles
from tilewright.ops.shape.ir import PermutingOp
from tilewright.schedule.partition.warps import warps_of_program
from tilewright.schedule.plan.anchors import anchors_of, by_engine, kind_of, require_anchors
from tilewright.schedule.plan.computed_operands import computed_operands
from tilewright.schedule.plan.default_stages import LoopOfProducts
from tilewright.schedule.plan.products import is_half_matrix
from tilewright.schedule.plan.read_schedule import together
from tilewright.schedule.plan.verify_schedule import problems, require_legal
from tilewright.support.dataclass import dataclass, replace

_HINT = "tt.num_stages"
_LATE_SLOTS = 4
"""From here on products run on. With 3 slots loads are then a single iteration ahead.

Measured on an H200, 2026-11-22: 529 against 592 TFLOP/s (fp16 8192³, 128 x 256 x 64, by
descriptors)."""
_MOST_SLOTS = 16
"""Of a loop. Chosen, not measured: what is fastest has 2 to 5. Each has copies of its own in front
of the loop, and a compile takes longer with their square (54 slots 30 s, 16 slots one)."""
_SPARE_BYTES = 4096
"""Left for reductions and mbarriers. Chosen, not measured: a reduction of 8 warps takes 2 KiB."""


@dataclass(frozen=True)
class DecideSchedule(Pass):
    """Annotate the kernel with its schedule; see the module. `num_stages` 0 is unsaid.

    *Raises*: MalformedSchedule for an annotated one that names what is not there, PlanRefused for
    one that the kernel's dependences or the machine do not allow.
    """

    machine: MachineModel = SM_90A
    num_stages: int = 0
    num_warps: int = 4
    name = "decide-schedule"
    requires = "T0r"
    produces = "T0r"
    after = ("decide-products",)

    def apply(self, module: ModuleOp) -> None:
        """Decide the schedule of the kernel."""
        kernel = find_kernel(module)
        if find_roles(kernel) is not None:
            return  # the roles are the schedule
        schedule = schedule_of(kernel)
        if schedule is None or schedule.roles:
            # Roles that could not be formed leave a program of one role.
            schedule = self._completed(kernel, Schedule())
            if not schedule.loops and not schedule.reasons:
                kernel.attributes.pop(SCHEDULE, None)
                return
        else:
            anchors = require_anchors(schedule, kernel)
            num_warps = warps_of_program(kernel, self.num_warps)
            require_legal(kernel, schedule, anchors, self.machine, num_warps)
        if kernel.attributes.pop(PARTIAL, None) is not None:
            schedule = self._completed(kernel, schedule)
        annotate_schedule(kernel, schedule)
        for anchor, op in require_anchors(schedule, kernel).items():
            if anchor.index >= 0:
                name_anchor(op, anchor)

    def _completed(self, kernel: FuncOp, given: Schedule) -> Schedule:
        """A schedule with that of all loops which it says nothing of."""
        num_warps = warps_of_program(kernel, self.num_warps)
        decided = decide_schedule(kernel, self.machine, self.num_stages, num_warps)
        return _legal_part(decided, given, kernel, self.machine, num_warps)


def _legal_part(
    decided: Schedule, given: Schedule, kernel: FuncOp, machine: MachineModel, num_warps: int
) -> Schedule:
    """What is given, with the loops that are decided and may run so, and why the others do not."""
    named = [loop.loop for loop in given.loops]
    loops = tuple(loop for loop in decided.loops if loop.loop not in named)
    both = together([given, replace(decided, loops=loops)])
    anchors = require_anchors(both, kernel)
    kept = replace(given, reasons=decided.reasons)
    for loop in both.loops[len(named) :]:
        mine = [c for c in both.channels if c.tiles[0] in dict(loop.places)]
        more = replace(kept, loops=(*kept.loops, loop), channels=(*kept.channels, *mine))
        problem = next(problems(more, anchors, machine, num_warps), None)
        if problem is not None:
            reason = f"{describe(problem.op)}: {problem.reason}"
            more = replace(kept, reasons=(*kept.reasons, reason))
        kept = more
    return kept


def decide_schedule(
    kernel: FuncOp, machine: MachineModel, num_stages: int, num_warps: int = 4
) -> Schedule:
    """The schedule of a kernel in one role, from what its author said."""
    names = {op: anchor for anchor, op in anchors_of(kernel).items() if anchor.index >= 0}
    held_bytes = _held_bytes(kernel)
    free_bytes = machine.max_shared_bytes - _SPARE_BYTES - held_bytes
    loops: list[LoopSchedule] = []
    channels: list[Channel] = []
    reasons: list[str] = []
    for op in kernel.walk():
        if kind_of(op) != "for":
            continue
        candidate = _Loop(op, names)
        asked = candidate.asked(num_stages)
        candidate.take_computed(kernel, asked, free_bytes)
        if not candidate.loads:
            continue
        unsaid = candidate.unsaid(held_bytes, num_warps)
        wanted = asked or unsaid.default_stages(machine)
        if wanted < 2:
            continue
        fitting = min(_MOST_SLOTS, free_bytes // candidate.slot_bytes)
        if fitting < asked:
            size = candidate.slot_bytes
            most = f"a loop has {fitting} slots at most"
            limit = most if fitting == _MOST_SLOTS else f"{fitting} slots of {size} bytes fit"
            reasons.append(f"{describe(op)}: {limit}, not {wanted}")
        slots = candidate.filled(min(wanted, fitting))
        if slots > 1:
            channels += candidate.channels(slots, len(channels))
            loops.append(candidate.schedule(slots))
    return Schedule(channels=tuple(channels), loops=tuple(loops), reasons=tuple(reasons))


def loops_in_order(
    kernel: FuncOp, machine: MachineModel, num_warps: int = 4
) -> Iterator[tuple[Operation, str]]:
    """The loops of products whose loads do not run ahead where nobody asks for it, and why."""
    names = {op: anchor for anchor, op in anchors_of(kernel).items() if anchor.index >= 0}
    held_bytes = _held_bytes(kernel)
    for op in kernel.walk():
        candidate = _Loop(op, names) if kind_of(op) == "for" else None
        if candidate is None or not (candidate.loads and candidate.products):
            continue
        reason = candidate.unsaid(held_bytes, num_warps).why_one(machine)
        if reason and not candidate.asked(0):
            yield op, reason


def _held_bytes(kernel: FuncOp) -> int:
    """The bytes of the shared operands of products that come from outside of their loops."""
    held: set[SSAValue] = set()
    for op in kernel.walk():
        plan = annotated(op, ProductAttr)
        places = () if plan is None else (plan.a, plan.b)
        for value, place in zip(op.operands, places, strict=False):
            owner = value.owner
            is_outside = not isinstance(owner, Operation) or owner.parent is not op.parent
            held |= {value} if place == SHARED and is_outside else set()
    return sum(map(_tile_bytes, held))


def _tile_bytes(value: SSAValue) -> int:
    return prod(shape_of(value.type)) * storage_bytes(value.type)


class _Loop:
    """A loop with what of it may run ahead.

    Those are the loads of its products, and where it has none and its author asks for it, all of
    its tiles. A loop around another one is left alone. `computed` are loads that products take
    something computed of.
    """

    def __init__(self, loop: Operation, names: Mapping[Operation, Anchor]) -> None:
        assert isinstance(loop, ForOp)
        self.loop, self.names = loop, names
        self.ops = list(loop.body.block.ops)
        self.products = [op for op in self.ops if kind_of(op) == "dot"]
        self.hint = loop.attributes.get(_HINT)
        self.loads = self._loads()
        self.computed: list[Operation] = []

    def take_computed(self, kernel: FuncOp, asked: int, free_bytes: int) -> None:
        """Let loads that operands are computed from run ahead, too, as far as their slots fit.

        Where nobody asks for slots only a loop that adds products up takes them: what else a loop
        computes between its products overlaps its loads as well.
        """
        if self._is_left_alone() or not (asked > 1 or (not asked and self._is_accumulating)):
            return
        slots = min(asked or _LATE_SLOTS, _MOST_SLOTS)
        for load in computed_operands(kernel, self.loop.body.block, self.products):
            step_bytes = self.slot_bytes + slot_step(_tile_bytes(load.results[0]))
            if load not in self.loads and slots * step_bytes <= free_bytes:
                self.computed.append(load)
                self.loads.append(load)
        self.loads.sort(key=self.ops.index)

    def _is_left_alone(self) -> bool:
        inner = any(op is not self.loop and kind_of(op) == "for" for op in self.loop.walk())
        return inner or isinstance(self.loop.lb.type, IndexType)

    def _loads(self) -> list[Operation]:
        if self._is_left_alone():
            return []
        loads = [op for op in self.ops if kind_of(op) == "load"]
        if not self.products:
            return loads if self.hint is not None else []
        return [load for load in loads if by_engine(load) or _feeds_products(load)]

    def asked(self, num_stages: int) -> int:
        """How many slots the author asks for; 0 where nothing is said."""
        return self.hint.value.data if isinstance(self.hint, IntegerAttr) else num_stages

    def filled(self, slots: int) -> int:
        """How many of the slots there are iterations for; the others would only take room."""
        most = self.loop.trips().most
        return slots if most is None else min(slots, most)

    @property
    def slot_bytes(self) -> int:
        """The bytes of the tiles of one iteration."""
        return sum(slot_step(_tile_bytes(load.results[0])) for load in self.loads)

    def unsaid(self, held_bytes: int, num_warps: int) -> LoopOfProducts:
        """What the number of slots depends on where nobody says it."""
        return LoopOfProducts(
            self.loop,
            self.products,
            self._is_accumulating,
            self.slot_bytes,
            all(map(by_engine, self.loads)),
            any(map(self._is_looked_up, self.loads)),
            held_bytes,
            num_warps,
            self._are_of_warps,
        )

    def _is_looked_up(self, load: Operation) -> bool:
        """Whether what the loop loads says where a tile of it is."""
        seen, pending = set[Operation](), list(load.operands)
        while pending:
            op = pending.pop().owner
            if not isinstance(op, Operation) or op in seen or op.parent is not load.parent:
                continue
            if global_access(op) is not None:
                return True
            seen.add(op)
            pending += op.operands
        return False

    @property
    def _is_accumulating(self) -> bool:
        """Whether it only adds up products, each to what it was an iteration before."""
        end, carried = self.ops[-1], self.loop.body.block.args
        return bool(self.products) and all(
            op.operands[2] in carried and [use.operation for use in op.results[0].uses] == [end]
            for op in self.products
        )

    def _is_late(self, slots: int) -> bool:
        """Whether products run on into the next iteration: then what they read stays one longer."""
        is_open = self._is_accumulating and not self._are_of_warps and not self.computed
        return slots >= _LATE_SLOTS and is_open

    @property
    def _are_of_warps(self) -> bool:
        """Whether the products are instructions of single warps, which wait for each."""
        return any(decided(op, ProductAttr).instruction == "mma" for op in self.products)

    def channels(self, slots: int, number: int) -> list[Channel]:
        """The rings that the loads fill: one of the copy engine, one of the threads."""
        release = "late" if self._is_late(slots) else "wait"
        found: list[Channel] = []
        for medium in ("tma", "cp_async"):
            loads = [op for op in self.loads if by_engine(op) == (medium == "tma")]
            if loads:
                anchors = tuple(self.names[load] for load in loads)
                name = f"ring{number + len(found)}"
                found.append(Channel(name, anchors, slots, medium, release))
        return found

    def schedule(self, slots: int) -> LoopSchedule:
        """The places of the loop's ops: loads are stages ahead of all others."""
        is_late = self._is_late(slots)
        lead = slots - (2 if is_late else 1)
        loaded, others = (1, 0) if is_late else (0, 1)
        places = [(self.names[load], Place(0, loaded)) for load in self.loads]
        rest = [self.names[op] for op in self.products] or [REST]
        places += [(anchor, Place(lead, others)) for anchor in rest]
        return LoopSchedule(self.names[self.loop], tuple(places))


def _feeds_products(op: Operation) -> bool:
    """Whether products take a tile, or a view of it, from shared memory, and nothing else does."""
    users = [use.operation for use in op.results[0].uses]
    return bool(users) and all(_takes(user, op.results[0]) for user in users)


def _takes(user: Operation, tile: SSAValue) -> bool:
    if isinstance(user, PermutingOp):
        return _feeds_products(user)
    plan = annotated(user, ProductAttr)
    if plan is None:
        return False
    if plan.instruction == "mma" and not isinstance(tile.owner, PermutingOp):
        # It takes registers, into which matrix loads read a slot.
        return tile in user.operands[:2] and is_half_matrix(tile)
    places = zip(user.operands, (plan.a, plan.b), strict=False)
    mine = [place for value, place in places if value is tile]
    return bool(mine) and all(place == SHARED for place in mine)
