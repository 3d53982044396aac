"""When the slots of rings are in use, and whether rings can take turns with one memory.

    %k = load K; for … { %q = load Q; … dot %k, %q }; %x = load X; for … { … dot %x, … }

The slot of `%k` is in use from its load on to the last op of its block that reads it, or has what
reads it inside: here to the end of the first loop, so that `%x` may have its memory. A role that
loads waits there until the slot is free, and others free it with the fills before it. Where a
product stands beside the loops it may run on, and its slot is given back later than the text says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from xdsl.ir import Attribute, Block, Operation

from tilewright.ir.regions import ancestor_in
from tilewright.ir.schedule import Channel, Schedule
from tilewright.ops.matmul.ir import ProductOp
from tilewright.schedule.partition.refusal import Refused
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class Site:
    """Where a channel is filled: loads of one block, in the order of its tiles."""

    channel: Channel
    loads: tuple[Operation, ...]

    def first(self) -> Operation:
        """The load that stands first in the text."""
        return next(op for op in block_of(self.loads[0]).ops if op in self.loads)

    def last(self) -> Operation:
        """The load that stands last in the text."""
        return [op for op in block_of(self.loads[0]).ops if op in self.loads][-1]

    def types(self) -> list[Attribute]:
        """The types of a fill."""
        return [load.results[0].type for load in self.loads]


def block_of(op: Operation) -> Block:
    """The block that an op stands in."""
    assert op.parent is not None
    return op.parent


@dataclass(frozen=True)
class Life:
    """A stretch of a block in which slots of a ring are in use: its first op and its last one."""

    ring: str
    first: Operation
    last: Operation


def require_one_at_a_time(schedule: Schedule, sites: Sequence[Site]) -> None:
    """Hold rings with one memory to lives that do not overlap. *Raises*: Refused."""
    for owner in schedule.channels:
        members = [c for c in schedule.channels if owner.name in (c.name, c.shares)]
        if len(members) == 1:
            continue
        own = [site for site in sites if site.channel in members]
        reason = clash(own, members)
        if reason is None and schedule.cluster > 1:
            reason = f"programs of a cluster share ring `{owner.name}`"
        if reason is not None:
            names = " and ".join(f"`{channel.name}`" for channel in members)
            raise Refused(own[-1].loads[0], f"rings {names} cannot have one memory: {reason}")


def clash(sites: Sequence[Site], channels: Sequence[Channel]) -> str | None:
    """Why rings that are filled at some sites cannot have one memory; None where they can."""
    if any(channel.release == "late" for channel in channels):
        return "slots that are released late are in use behind their loop"
    block = _common_block([site.loads[0] for site in sites])
    lives = sorted(_lives(sites, block), key=lambda life: _place(life.first))
    for before, after in combinations(lives, 2):
        if before.ring != after.ring and _place(after.first) <= _place(before.last):
            return f"`{after.ring}` is filled while slots of `{before.ring}` are in use"
    if any(isinstance(op, ProductOp) for op in block.ops):
        return "a product stands beside their loops"
    return None


def are_exclusive(sites: Sequence[Site]) -> bool:
    """Whether sites stand in blocks of which none is around another one, each in its own."""
    blocks = [block_of(site.loads[0]) for site in sites]
    if len(set(blocks)) < len(blocks):
        return False
    around = [set(_blocks_around(block)) for block in blocks]
    return not any(one in outer for one in blocks for outer in around)


def _lives(sites: Sequence[Site], block: Block) -> Iterator[Life]:
    for site in sites:
        if block_of(site.loads[0]) is not block:
            child = ancestor_in(block, site.loads[0])
            yield Life(site.channel.name, child, child)
            continue
        readers = [ancestor_in(block, op) for load in site.loads for op in _readers(load)]
        yield Life(site.channel.name, site.first(), max((site.last(), *readers), key=_place))


def _readers(load: Operation) -> Iterator[Operation]:
    """The ops that may read a slot: those that take the tile, or what one op makes of it alone."""
    pending = [load]
    while pending:
        for result in pending.pop().results:
            for use in result.uses:
                yield use.operation
                if len(use.operation.operands) == 1 and not use.operation.regions:
                    pending.append(use.operation)


def _common_block(ops: Sequence[Operation]) -> Block:
    """The innermost block around all of some ops."""
    chains = [[*reversed(list(_blocks_around(block_of(op)))), block_of(op)] for op in ops]
    common = chains[0][0]
    for level in zip(*chains, strict=False):
        if len(set(level)) > 1:
            break
        common = level[0]
    return common


def _blocks_around(block: Block) -> Iterator[Block]:
    """The blocks around a block, inner ones first."""
    parent = block.parent_op()
    while parent is not None and parent.parent is not None:
        yield parent.parent
        parent = parent.parent_op()


def _place(op: Operation) -> int:
    """Where an op stands in its block."""
    return block_of(op).get_operation_index(op)
