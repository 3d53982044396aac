"""Channels at T0r: each replica of a role runs until it gets what nobody has put yet.

Roles run ahead as far as the slots of their channels let them, the first role first: what one
reads from memory before another has written it comes out here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np
from xdsl.ir import Operation

from tilewright.interp.access import require_defined
from tilewright.interp.code import (
    Code,
    ControlFunction,
    Pause,
    PlainFunction,
    Preparation,
    Running,
    execute,
)
from tilewright.interp.program import Program
from tilewright.interp.rules.pure import by_reference
from tilewright.interp.rules.tables import TILE_RULES
from tilewright.interp.values import EVERYWHERE
from tilewright.ir.locations import span_of
from tilewright.ir.op import Array
from tilewright.ir.types import shape_of
from tilewright.ops.channels import ChannelOp, GetOp, MeetOp, PutOp, PutPartOp, SkipOp, SliceOp
from tilewright.ops.roles import RolesOp
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import Deadlock, InternalError, KernelFault

Fill = tuple[tuple[object, "Array | None"], ...]
"""The values of a fill, each with the mask of its undefined elements."""

TILE_RULES.plain.register(SliceOp)(by_reference)


@TILE_RULES.taint.register(SliceOp)
def _sliced(operation: Operation, values: Sequence[Array], masks: Sequence[Array | None]) -> Array:
    """An element is undefined where that of the source is."""
    assert isinstance(operation, SliceOp)
    mask, part_mask = masks
    if mask is None or part_mask is not None:
        return EVERYWHERE
    return operation.reference(mask, values[1])


@dataclass
class Channel:
    """The fills that are on their way, from number `first` on, and how many each reader got.

    `parts` are those of the next fill that replicas have put, `num_given` counts those of all.
    `met` counts how often each replica has come to where all meet.
    """

    name: str
    slots: int
    fills: list[Fill] = field(default_factory=lambda: [])
    first: int = 0
    taken: dict[str, int] = field(default_factory=lambda: {})
    parts: dict[int, tuple[Array, Array | None]] = field(default_factory=lambda: {})
    num_given: int = 0
    met: dict[str, int] = field(default_factory=lambda: {})

    @property
    def count(self) -> int:
        """How many fills were put."""
        return self.first + len(self.fills)

    @property
    def moves(self) -> int:
        """A number that grows with everything that is put or got, and with who comes to meet."""
        return self.count + sum(self.taken.values()) + self.num_given + sum(self.met.values())

    def has_room(self) -> bool:
        """Whether the next fill has a slot."""
        return not self.slots or len(self.fills) < self.slots

    def put(self, fill: Fill) -> None:
        """Add a fill."""
        self.fills.append(fill)

    def put_part(
        self, number: int, value: Array, mask: Array | None, dim: int, num_parts: int
    ) -> None:
        """Add a part of the next fill, which is put with its last one."""
        self.parts[number] = value, mask
        self.num_given += 1
        if len(self.parts) < num_parts:
            return
        parts = [self.parts[index] for index in range(num_parts)]
        whole = np.concatenate([part for part, _ in parts], axis=dim)
        undefined: Array | None = None
        if any(mask is not None for _, mask in parts):
            masks = [
                np.broadcast_to(False if mask is None else mask, part.shape) for part, mask in parts
            ]
            undefined = np.concatenate(masks, axis=dim)
        self.parts = {}
        self.put(((whole, undefined),))

    def take(self, reader: str) -> Fill:
        """The next fill of a reader; those that all have got go away."""
        fill = self.fills[self.taken[reader] - self.first]
        self.skip(reader, 1)
        return fill

    def skip(self, reader: str, count: int) -> None:
        """Let a reader go on; what all have gone past goes away."""
        self.taken[reader] += count
        while self.fills and min(self.taken.values()) > self.first:
            del self.fills[0]
            self.first += 1


@TILE_RULES.plain.register(ChannelOp)
def _channel(operation: Operation, _: Preparation) -> PlainFunction:
    assert isinstance(operation, ChannelOp)
    name, slots = operation.channel_name.data, operation.slots.value.data
    return lambda program: Channel(name, slots)


@TILE_RULES.control.register(PutOp)
def _put(operation: Operation, preparation: Preparation) -> ControlFunction:
    assert isinstance(operation, PutOp)
    channel_slot, *values = preparation.slots([operation.channel, *operation.values])

    def run(program: Program) -> Running:
        channel = program.values[channel_slot]
        assert isinstance(channel, Channel)
        while not channel.has_room():
            yield from _wait(program, operation, f"room on channel {channel.name}")
        program.awaits = ""
        channel.put(tuple((program.values[slot], program.poison[slot]) for slot in values))

    return run


@TILE_RULES.control.register(PutPartOp)
def _put_part(operation: Operation, preparation: Preparation) -> ControlFunction:
    assert isinstance(operation, PutPartOp)
    channel_slot, value_slot, part_slot = preparation.slots(operation.operands)
    dim = operation.dim.value.data
    (whole,) = operation.channel_of().tiles.data
    num_parts = shape_of(whole)[dim] // shape_of(operation.value.type)[dim]

    def run(program: Program) -> Running:
        channel = program.values[channel_slot]
        assert isinstance(channel, Channel)
        require_defined(program, "the number of a part", program.poison[part_slot])
        number = int(np.asarray(program.values[part_slot]))
        if not 0 <= number < num_parts:
            raise program.fault(KernelFault, f"channel {channel.name} has no part {number}")
        while number in channel.parts or not channel.has_room():
            yield from _wait(program, operation, f"room on channel {channel.name}")
        program.awaits = ""
        value = program.values[value_slot]
        assert isinstance(value, np.ndarray)
        channel.put_part(number, value, program.poison[value_slot], dim, num_parts)

    return run


@TILE_RULES.control.register(GetOp)
def _get(operation: Operation, preparation: Preparation) -> ControlFunction:
    (channel_slot,) = preparation.slots(operation.operands)
    results = preparation.slots(operation.results)

    def run(program: Program) -> Running:
        channel = program.values[channel_slot]
        assert isinstance(channel, Channel)
        number = channel.taken.get(program.role, 0)
        while channel.count <= number:
            yield from _wait(program, operation, f"fill {number} of channel {channel.name}")
        program.awaits = ""
        for slot, (value, mask) in zip(results, channel.take(program.role), strict=True):
            program.values[slot], program.poison[slot] = value, mask
            program.has_poison = program.has_poison or mask is not None

    return run


@TILE_RULES.control.register(SkipOp)
def _skip(operation: Operation, preparation: Preparation) -> ControlFunction:
    channel_slot, count_slot = preparation.slots(operation.operands)

    def run(program: Program) -> Running:
        program.operation = operation
        channel = program.values[channel_slot]
        assert isinstance(channel, Channel)
        require_defined(program, "how many fills a role skips", program.poison[count_slot])
        count = int(np.asarray(program.values[count_slot]))
        if count < 0:
            raise program.fault(KernelFault, f"{count} fills of {channel.name} are skipped")
        channel.skip(program.role, count)
        return
        yield

    return run


@TILE_RULES.control.register(MeetOp)
def _meet(operation: Operation, preparation: Preparation) -> ControlFunction:
    assert isinstance(operation, MeetOp)
    slots = preparation.slots(operation.channel)
    count = 0 if operation.count is None else operation.count.value.data

    def run(program: Program) -> Running:
        for slot in slots:  # one program alone has none
            channel = program.values[slot]
            assert isinstance(channel, Channel)
            number = channel.met[program.role] = channel.met.get(program.role, 0) + 1
            while len(channel.met) < count or min(channel.met.values()) < number:
                yield from _wait(program, operation, f"all roles at {channel.name}")
            program.awaits = ""

    return run


def _wait(program: Program, operation: Operation, what: str) -> Running:
    program.operation, program.awaits = operation, what
    if not program.role:
        raise program.fault(Deadlock, f"nobody else gives {what}")
    yield Pause.RING


# --- roles --------------------------------------------------------------------------------------


def has_channels(operation: RolesOp) -> bool:
    """Whether roles still pass values, as at T0r."""
    return any(isinstance(op, PutOp | PutPartOp | GetOp | MeetOp) for op in operation.walk())


@dataclass(frozen=True)
class _Part:
    """A replica of a role: its name, number and code, and the slots of the channels it reads."""

    name: str
    index: int
    num_replicas: int
    code: Code
    reads: tuple[int, ...]


@TILE_RULES.control.register(RolesOp)
def run_roles(operation: Operation, preparation: Preparation) -> ControlFunction:
    """tw.roles with channels: the replicas take turns, each until it waits."""
    assert isinstance(operation, RolesOp)
    parts: list[_Part] = []
    for role, body in zip(operation.described(), operation.bodies, strict=True):
        code = preparation.region(body)
        gets = dict.fromkeys(op.channel for op in body.walk() if isinstance(op, GetOp))
        reads = preparation.slots(gets)
        names = role.replica_names()
        parts += [_Part(n, index, len(names), code, reads) for index, n in enumerate(names)]
    ends = dict.fromkeys(
        op.operands[0]
        for op in operation.walk()
        if isinstance(op, PutOp | PutPartOp | GetOp | MeetOp)
    )
    slots = preparation.slots(ends)

    def run(program: Program) -> Running:
        channels = [_channel_in(program, slot) for slot in slots]
        for part in parts:
            for slot in part.reads:
                _channel_in(program, slot).taken[part.name] = 0
        roles = [(p, program.as_role(p.name, p.index, p.num_replicas, 0)) for p in parts]
        live = [(role, _body(role, part)) for part, role in roles]
        while live:
            before = [channel.moves for channel in channels]
            for role, running in tuple(live):
                yield from _advance(role, running, live)
            if live and [channel.moves for channel in channels] == before:
                waits = "; ".join(f"{role.role} waits for {role.awaits}" for role, _ in live)
                raise live[0][0].fault(Deadlock, f"every role that is left waits: {waits}")
        program.operation = operation
        for channel in channels:
            _require_empty(channel, operation)

    return run


def _channel_in(program: Program, slot: int) -> Channel:
    channel = program.values[slot]
    assert isinstance(channel, Channel)
    return channel


def _body(role: Program, part: _Part) -> Running:
    (replica,) = part.code.arguments
    role.values[replica] = np.array(part.index, np.int32)
    yield from execute(part.code, role)


def _advance(role: Program, running: Running, live: list[tuple[Program, Running]]) -> Running:
    """Run a replica to its end or until it waits for a channel."""
    for pause in running:
        if pause is Pause.RING:
            return
        yield pause
    live.remove((role, running))


def _require_empty(channel: Channel, operation: RolesOp) -> None:
    """Hold every reader to the end of a channel. *Raises*: InternalError."""
    if channel.parts:
        span, chain = span_of(operation)
        what = f"channel {channel.name} has parts {sorted(channel.parts)} of a fill, and no others"
        raise InternalError(what, span=span, chain=chain)
    for reader, taken in channel.taken.items():
        if taken < channel.count:
            span, chain = span_of(operation)
            left = channel.count - taken
            what = f"{reader} leaves {left} fills of channel {channel.name}"
            raise InternalError(what, span=span, chain=chain)
