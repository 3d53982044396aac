"""Checks a schedule against the kernel that it is for, on T0, before anything is rewritten by it.

An op of stage s runs iteration j in body j + s, and within a body by its cluster, then as written.
So what p makes for c, d iterations later, is there in time if s_c + d > s_p, or if the two are
equal and c comes later in the body. Ops that are not named run with what needs them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from tilewright.analysis.provenance import base_argument
from tilewright.ir.effects import global_access
from tilewright.ir.encoding import slot_step
from tilewright.ir.locations import describe, span_of
from tilewright.ir.schedule import REST, Anchor, Channel, LoopSchedule, Place, Schedule
from tilewright.ir.types import shape_of, storage_bytes
from tilewright.machine.model import MachineModel
from tilewright.ops.function import FuncOp
from tilewright.schedule.plan.anchors import kind_of
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import PlanRefused

# By definition: a register of 32 bits.
_REGISTER_BYTES = 4
_KEPT_REGISTERS = 30
"""What addresses, masks and counters take of a thread. Chosen, not measured: between the
24 and 40 seen in kernels of ours."""


@dataclass(frozen=True)
class Problem:
    """What is wrong with a schedule, at an op."""

    op: Operation
    reason: str


def require_legal(
    kernel: FuncOp,
    schedule: Schedule,
    anchors: Mapping[Anchor, Operation],
    machine: MachineModel,
    num_warps: int,
) -> None:
    """Check a schedule. *Raises*: PlanRefused that names the ops that clash, with their lines."""
    found = problems(schedule, anchors, machine, num_warps)
    if schedule.roles:
        found = role_problems(schedule, anchors, machine)
    _refuse(kernel, found)


def require_room(
    kernel: FuncOp, schedule: Schedule, anchors: Mapping[Anchor, Operation], machine: MachineModel
) -> None:
    """Check that the rings of roles alone fit shared memory. *Raises*: PlanRefused."""
    _refuse(kernel, _size_problems(schedule, anchors, machine))


def _refuse(kernel: FuncOp, found: Iterator[Problem]) -> None:
    for problem in found:
        span, chain = span_of(problem.op)
        raise PlanRefused(
            f"the schedule of `{kernel.sym_name.data}` is refused: {problem.reason}",
            hint="change the stages, clusters or slots, or leave the schedule to the compiler",
            span=span,
            chain=chain,
        )


def problems(
    schedule: Schedule, anchors: Mapping[Anchor, Operation], machine: MachineModel, num_warps: int
) -> Iterator[Problem]:
    """Everything that is wrong with a schedule in one role, the first in the text first."""
    for loop in schedule.loops:
        check = _LoopCheck(loop, schedule, anchors)
        yield from check.placement()
        yield from check.registers(machine, num_warps, machine.max_registers_per_thread)
    for channel in schedule.channels:
        yield from _channel_problems(channel, schedule, anchors)
    yield from _size_problems(schedule, anchors, machine)


def role_problems(
    schedule: Schedule, anchors: Mapping[Anchor, Operation], machine: MachineModel
) -> Iterator[Problem]:
    """Everything that is wrong with the rings and loops of a schedule of roles."""
    for channel in schedule.channels:
        first = anchors[channel.tiles[0]]
        is_copied = channel.medium == "cp_async" and "descriptor" not in first.name
        if channel.medium != "tma" and not is_copied:
            yield Problem(
                first,
                f"ring `{channel.name}` is {channel.medium}, and the copy engine fills the rings "
                "of roles: say tma, or nothing",
            )
    for loop in schedule.loops:
        check = _LoopCheck(loop, schedule, anchors)
        yield from check.placement()
        for role in schedule.roles:
            if role.kind == "math":
                limit = role.registers or machine.max_registers_per_thread
                yield from check.registers(machine, role.warps * role.replicas, limit)


def _tile_bytes(op: Operation) -> int:
    type_ = op.results[0].type
    return prod(shape_of(type_)) * storage_bytes(type_)


def _channel_problems(
    channel: Channel, schedule: Schedule, anchors: Mapping[Anchor, Operation]
) -> Iterator[Problem]:
    first = channel.tiles[0]
    if channel.shares:
        what = f"ring `{channel.name}` shares memory, which is said of rings between roles"
        yield Problem(anchors[first], what)
    homes = {
        tile: next((loop for loop in schedule.loops if tile in dict(loop.places)), None)
        for tile in channel.tiles
    }
    for tile, home in homes.items():
        op = anchors[tile]
        by_engine = "descriptor" in op.name
        if (channel.medium == "tma") != by_engine:
            what = "a load through a descriptor" if by_engine else "a load through pointers"
            yield Problem(op, f"{tile} is {what}, and ring `{channel.name}` is {channel.medium}")
        if home is None:
            yield Problem(op, f"{tile} fills ring `{channel.name}` and has a place in no loop")
        elif home is not homes[first]:
            yield Problem(op, f"{first} and {tile} share ring `{channel.name}` in two loops")
    home = homes[first]
    if home is None:
        return
    places = dict(home.places)
    stages = {places[tile].stage for tile in channel.tiles if tile in places}
    if len(stages) > 1:
        others = " and ".join(str(tile) for tile in channel.tiles)
        yield Problem(anchors[first], f"{others} fill one slot at the stages {sorted(stages)}")
        return
    needed = home.num_stages - 1 - min(stages) + 1 + (channel.release == "late")
    if channel.slots < needed:
        late = ", as they are released late" if channel.release == "late" else ""
        yield Problem(
            anchors[first],
            f"ring `{channel.name}` has {channel.slots} slots, and {needed} tiles of {first} "
            f"at {describe(anchors[first])} are under way{late}",
        )


def _size_problems(
    schedule: Schedule, anchors: Mapping[Anchor, Operation], machine: MachineModel
) -> Iterator[Problem]:
    memories: dict[str, int] = {}
    for channel in schedule.channels:
        size = channel.slots * _slot_bytes([anchors[tile] for tile in channel.tiles])
        memory = channel.shares or channel.name
        memories[memory] = max(size, memories.get(memory, 0))
        total = sum(memories.values())
        if total > machine.max_shared_bytes:
            yield Problem(
                anchors[channel.tiles[0]],
                f"the rings up to `{channel.name}` take {total} bytes, and {machine.arch} has "
                f"{machine.max_shared_bytes} of shared memory",
            )
            return


def _slot_bytes(loads: Sequence[Operation]) -> int:
    """The bytes of a slot: loads of one block fill it together, those of others in turn."""
    fills: dict[Block | None, int] = {}
    for load in loads:
        fills[load.parent] = fills.get(load.parent, 0) + slot_step(_tile_bytes(load))
    return max(fills.values())


class _LoopCheck:
    """The checks of one loop."""

    def __init__(
        self, loop: LoopSchedule, schedule: Schedule, anchors: Mapping[Anchor, Operation]
    ) -> None:
        self.planned, self.schedule, self.anchors = loop, schedule, anchors
        self.op = anchors[loop.loop]
        self.body: Block = self.op.regions[0].block
        self.last = loop.num_stages - 1
        named = {anchor: place for anchor, place in loop.places if anchor != REST}
        self.names = {anchors[anchor]: anchor for anchor in named}
        self.places: dict[Operation, Place] = {anchors[a]: place for a, place in named.items()}
        rest = dict(loop.places).get(REST)
        self.rest = Place(self.last, 0) if rest is None else rest
        self.index = {op: number for number, op in enumerate(self.body.ops)}

    def _called(self, op: Operation) -> str:
        name = self.names.get(op)
        what = op.name if name is None else str(name)
        return f"{what} at {describe(op)} (stage {self._place(op).stage})"

    def _place(self, op: Operation) -> Place:
        return self.places.get(op, self.rest)

    def placement(self) -> Iterator[Problem]:
        """What is wrong with where its ops run, whatever there is room for."""
        yield from self.places_are_in_the_loop()
        yield from self.dependences()
        yield from self.memory()
        yield from self.order()

    def places_are_in_the_loop(self) -> Iterator[Problem]:
        """Every op with a place stands directly in the loop."""
        for op, name in self.names.items():
            if op.parent is not self.body:
                home = self.planned.loop
                yield Problem(op, f"{name} at {describe(op)} does not stand directly in {home}")

    # --- values ---

    def dependences(self) -> Iterator[Problem]:
        """What an op takes was made before, by the ops that are named."""
        for consumer in self.places:
            if consumer.parent is not self.body:
                continue
            for producer, distance in self._producers(consumer):
                if not self._is_in_time(producer, consumer, distance):
                    yield Problem(consumer, self._late(producer, consumer, distance))

    def _producers(self, consumer: Operation) -> Iterator[tuple[Operation, int]]:
        """The named ops that an op takes something of, and from how many iterations before."""
        seen: set[tuple[SSAValue, int]] = set()
        pending = [(value, 0) for value in _taken(consumer, self.body)]
        while pending:
            value, distance = pending.pop()
            if (value, distance) in seen or distance > self.last + 1:
                continue
            seen.add((value, distance))
            if isinstance(value, BlockArgument) and value.block is self.body and value.index:
                end = self.body.last_op
                assert end is not None
                pending.append((end.operands[value.index - 1], distance + 1))
            elif isinstance(value, OpResult) and value.op.parent is self.body:
                if value.op in self.places:
                    yield value.op, distance
                else:
                    pending += [(v, distance) for v in _taken(value.op, self.body)]

    def _is_in_time(self, producer: Operation, consumer: Operation, distance: int) -> bool:
        made, taken = self._place(producer), self._place(consumer)
        if taken.stage + distance != made.stage:
            return taken.stage + distance > made.stage
        # In one body: a later cluster, or later in the same one.
        mine = (taken.cluster, self.index[consumer])
        return mine > (made.cluster, self.index[producer])

    def _late(self, producer: Operation, consumer: Operation, distance: int) -> str:
        which = "the same iteration" if distance == 0 else f"{distance} iterations before"
        return (
            f"{self._called(consumer)} takes what {self._called(producer)} makes in {which}, "
            "which is not there yet"
        )

    # --- memory ---

    def memory(self) -> Iterator[Problem]:
        """No load runs ahead of a store of an earlier iteration to the same argument."""
        for load in self.places:
            ahead = self.last - self._place(load).stage
            if kind_of(load) != "load" or ahead <= 0:
                continue
            for store in self.body.ops:
                access = global_access(store)
                if access is None or not access.writes or access.value is None:
                    continue
                bases = (base_argument(load.operands[0]), base_argument(access.value))
                is_before = self._place(store).stage > self._place(load).stage
                if is_before and (bases[0] is bases[1] or None in bases):
                    yield Problem(
                        load,
                        f"{self._called(load)} runs ahead of {self._called(store)}, which may "
                        "write what it reads",
                    )

    # --- order and registers ---

    def order(self) -> Iterator[Problem]:
        """Waits and releases are of the loop's own products and rings, behind what they end."""
        run: list[Anchor] = []
        waited: set[Anchor] = set()
        for step in self.planned.order:
            subject = step.subject
            if isinstance(subject, str):
                yield from self._release_problems(subject, waited)
            elif step.action == "run":
                run.append(subject)
                if subject != REST and self.anchors[subject].parent is not self.body:
                    yield Problem(self.op, f"the order runs {subject}, which is in another loop")
            else:
                waited.add(subject)
                if subject not in run:
                    yield Problem(
                        self.anchors[subject], f"the order waits for {subject} before it runs"
                    )

    def _release_problems(self, ring: str, waited: set[Anchor]) -> Iterator[Problem]:
        channel = next(c for c in self.schedule.channels if c.name == ring)
        tiles = {self.anchors[tile].results[0] for tile in channel.tiles}
        for op in self.places:
            taken = {_seen_of(operand) for operand in op.operands}
            if kind_of(op) == "dot" and tiles & taken and self.names[op] not in waited:
                yield Problem(
                    op,
                    f"the order releases ring `{ring}` before it waits for "
                    f"{self._called(op)}, which reads it",
                )

    def registers(self, machine: MachineModel, num_warps: int, limit: int) -> Iterator[Problem]:
        """Tiles that are carried in registers fit beside the products of the loop."""
        threads = num_warps * machine.lanes
        held = sum(_tile_bytes(op) for op in self.places if kind_of(op) == "dot")
        for op, place in self.places.items():
            name = self.names[op]
            if kind_of(op) == "load" and self.schedule.channel_of(name) is None:
                held += (self.last - place.stage) * _tile_bytes(op)
            if kind_of(op) == "dot":
                held += self._held_across(op)
        needed = held // (threads * _REGISTER_BYTES) + _KEPT_REGISTERS
        if needed > limit:
            yield Problem(
                self.op,
                f"{self.planned.loop} at {describe(self.op)} holds {needed} registers a thread, "
                f"and there are {limit}",
            )

    def _held_across(self, dot: Operation) -> int:
        """The bytes of what a product takes of an earlier stage, or leaves to a later one.

        Computed operands stay in registers; loaded ones lie in shared memory.
        """
        stage, rest = self._place(dot).stage, self.rest.stage
        made = dot.operands[0].owner
        is_computed = isinstance(made, Operation) and made.parent is self.body
        is_computed = is_computed and not _is_loaded(dot.operands[0])
        taken = stage - rest if is_computed and isinstance(made, Operation) else 0
        held = max(0, taken) * (_tile_bytes(made) if isinstance(made, Operation) else 0)
        users = [use.operation for use in dot.results[0].uses]
        is_used = any(u.parent is self.body and u is not self.body.last_op for u in users)
        return held + max(0, rest - stage) * is_used * _tile_bytes(dot)


def _is_loaded(value: SSAValue) -> bool:
    """Whether a tile is a loaded one, as it is or seen otherwise."""
    op = _seen_of(value).owner
    return isinstance(op, Operation) and kind_of(op) == "load"


def _seen_of(value: SSAValue) -> SSAValue:
    """What a tile is a view of, such as one that is transposed."""
    op = value.owner
    while isinstance(op, Operation) and len(op.operands) == 1 and kind_of(op) == "op":
        value = op.operands[0]
        op = value.owner
    return value


def _taken(op: Operation, body: Block) -> list[SSAValue]:
    """What an op and its regions take of the body."""
    values = [v for inner in op.walk() for v in inner.operands] if op.regions else op.operands
    mine: list[SSAValue] = []
    for value in values:
        block = value.block if isinstance(value, BlockArgument) else value.owner.parent_block()
        if block is body:
            mine.append(value)
    return mine
