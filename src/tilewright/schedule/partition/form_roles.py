"""Makes roles of a program (T0 to T0r): one that loads, and one that does the rest.

    for %i (%acc) { %a = load A; %b = load B; %d = dot %a, %b, %acc; yield %d }; store %d
    ⇒ roles { load: for %i { %a = load A; %b = load B; put %ab, %a, %b } }
            { math: for %i (%acc) { %a, %b = get %ab; %d = dot …; yield %d }; store %d }

Each role is a slice of the program: its ops with what they need, in the order of the program. So
both go through the same iterations and branches, and each fill that is put is got. What a load
role needs is computed in both; `conditions.py` has what must hold.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilewright.ir.edits import erase
from tilewright.ir.effects import is_free
from tilewright.ir.op import build
from tilewright.ir.regions import is_control_flow
from tilewright.ir.schedule import Anchor, Role, Schedule
from tilewright.ir.schedule_attributes import COMMON
from tilewright.ir.types import i32
from tilewright.ops.channels import CHANNEL, ChannelOp, GetOp, MeetOp, PutOp
from tilewright.ops.control_flow import YieldOp
from tilewright.ops.function import FuncOp
from tilewright.ops.memory.ir import LoadOp
from tilewright.ops.roles import RolesOp
from tilewright.schedule.partition.conditions import (
    is_assumption,
    reads_in_front,
    reads_of_addresses,
    require_known_effects,
    require_memory_order,
    require_scalars,
    steering_reads,
)
from tilewright.schedule.partition.cuts import is_root
from tilewright.schedule.partition.lives import Site, block_of, require_one_at_a_time
from tilewright.schedule.partition.refusal import Refused
from tilewright.schedule.partition.share_tiles import share_tiles
from tilewright.schedule.partition.slices import Replace, Slice, Values
from tilewright.schedule.partition.split_tiles import Smaller, split_tiles
from tilewright.schedule.plan.anchors import require_anchors

MEETING = "meet"
"""What messages call the channel at which all roles meet."""
TURNS = "tw.turns"
"""The attribute of a channel for whose first product replicas take turns."""


class Target(Protocol):
    """What forming roles asks of who goes on with them."""

    def stays(self) -> Sequence[Operation]:
        """The ops that are left in front of the roles, for all of them."""
        ...

    def unordered(self) -> Sequence[Operation]:
        """The loops whose iterations are programs of the author's, which keep no order."""
        ...

    def shrink(self, desc: SSAValue, tile: Attribute) -> Smaller | None:
        """A descriptor of smaller blocks; see `split_tiles`."""
        ...

    def check(self, sites: Sequence[Site], math: Role, body: Block) -> None:
        """Hold channels and the body of the math role to what can be made of them.

        *Raises*: Refused.
        """
        ...

    def end(self, body: Block) -> None:
        """Add what a role does at its end, for what it has taken of the launch."""
        ...


def form_roles(
    kernel: FuncOp, schedule: Schedule, target: Target, known: Collection[Operation] = ()
) -> None:
    """Rewrite the kernel as its schedule has it, which has a role that loads.

    The reads `known` are kept in the order of the program by roles that meet.
    *Raises*: Refused, with the kernel as it was.
    """
    load_role, math_role = _pair_of(kernel, schedule)
    sites = sites_of(kernel, schedule)
    require_one_at_a_time(schedule, sites)
    loads = [load for site in sites for load in site.loads]
    require_known_effects(kernel)
    body = kernel.body.block
    needed = _load_slice(body, loads)
    reads = reads_of_addresses(needed, loads, known)
    front = reads_in_front(needed, loads, known)
    require_scalars(needed, loads, (*known, *reads, *front))
    ahead = (*loads, *reads)
    require_memory_order(kernel, ahead, math_role.replicas, target.unordered(), known)
    locked = _locked_ring(kernel, schedule, sites)
    forming = _Forming(body, sites, (*target.stays(), *front))
    if locked:
        forming.channels[locked].attributes[TURNS] = UnitAttr()
    bodies = {
        load_role: forming.load_body(needed),
        math_role: forming.math_body(),
    }
    try:
        if math_role.split == "tiles":
            share_tiles(bodies[math_role], math_role.replicas)
        elif math_role.replicas > 1:
            whole = bodies[math_role]
            replicas, split = math_role.replicas, math_role.split
            bodies[math_role], between = split_tiles(whole, replicas, split, target.shrink)
            forming.between = between
            _discard(whole)
        target.check(sites, math_role, bodies[math_role])
        for block in bodies.values():
            target.end(block)
        _replace_body(kernel, schedule, forming, bodies)
    except Refused:
        for block in bodies.values():
            _discard(block)
        raise
    for op in front:
        op.attributes[COMMON] = UnitAttr()


def _pair_of(kernel: FuncOp, schedule: Schedule) -> tuple[Role, Role]:
    """The role that loads and the other one. *Raises*: Refused for other sets of roles."""
    loads = [role for role in schedule.roles if role.kind == "load"]
    others = [role for role in schedule.roles if role.kind == "math"]
    if len(loads) != 1 or len(others) != 1 or loads[0].replicas != 1:
        raise Refused(kernel, "roles are one that loads and one that computes so far")
    if others[0].replicas > 1 and not others[0].split:
        raise Refused(kernel, "replicas share rows, columns or tiles")
    if others[0].split == "tiles" and schedule.turns is not None:
        raise Refused(kernel, "replicas that take whole tiles take turns for those already")
    return loads[0], others[0]


def hidden_reads(kernel: FuncOp, sites: Sequence[Site]) -> list[LoadOp]:
    """The reads of numbers that steer the loads of rings and do not stand in front of it all.

    `lift_reads` may bring them there.
    """
    body = kernel.body.block
    loads = [load for site in sites for load in site.loads]
    needed = _load_slice(body, loads)
    front = reads_in_front(needed, loads)
    return [op for op in steering_reads(needed, loads) if op not in front]


def loaded_ahead(
    kernel: FuncOp, sites: Sequence[Site], known: Collection[Operation] = ()
) -> list[Operation]:
    """All that a role reads ahead of the others: what rings bring, and where that lies."""
    loads = [load for site in sites for load in site.loads]
    return [*loads, *reads_of_addresses(_load_slice(kernel.body.block, loads), loads, known)]


def sites_of(kernel: FuncOp, schedule: Schedule) -> list[Site]:
    """The places where channels are filled: loads of a ring in one block fill it together.

    Loads of a ring in other blocks fill it in turn. *Raises*: Refused where they bring other
    tiles.
    """
    anchors = require_anchors(schedule, kernel)
    sites: list[Site] = []
    for channel in schedule.channels:
        groups = _by_block(channel.tiles, anchors)
        own = [Site(channel, tuple(group)) for group in groups]
        for site in own:
            if site.types() != own[0].types():
                reason = f"ring {channel.name} is filled with other tiles elsewhere"
                raise Refused(site.loads[0], reason)
        sites += own
    _require_straight(sites)
    if not sites:
        raise Refused(kernel, "no load goes through a ring")
    return sites


def _require_straight(sites: Sequence[Site]) -> None:
    """Hold the loads of a fill to a straight line, with no other ring's loop in between.

    A role would wait for the whole fill, and not take what another ring brings until then.
    """
    loads = {load for site in sites for load in site.loads}
    for site in sites:
        op: Operation | None = site.first()
        while op is not None and op is not site.last():
            if is_control_flow(op) and any(inner in loads for inner in op.walk()):
                name = site.channel.name
                raise Refused(op, f"ring {name} is filled around what fills other rings")
            op = op.next_op


def _locked_ring(kernel: FuncOp, schedule: Schedule, sites: Sequence[Site]) -> str:
    """The ring that feeds the product for which replicas take turns; '' where they take none.

    It is the one that is filled where the product stands. *Raises*: Refused without one.
    """
    if schedule.turns is None:
        return ""
    product = require_anchors(schedule, kernel)[schedule.turns.lock]
    if schedule.turns.pass_at != "done":
        raise Refused(product, "a turn is passed when its product is done, so far")
    for site in sites:
        beside = [load for load in site.loads if load.parent is product.parent]
        if any(_reaches(load, product) for load in beside):
            return site.channel.name
    raise Refused(product, "replicas take turns for a product whose operands no ring brings")


def _reaches(load: Operation, product: Operation) -> bool:
    """Whether a product takes a loaded tile, as it is or seen otherwise."""
    users = [use.operation for use in load.results[0].uses]
    return product in users or any(
        len(user.operands) == 1 and user.results and _reaches(user, product) for user in users
    )


def _by_block(
    tiles: Sequence[Anchor], anchors: Mapping[Anchor, Operation]
) -> list[list[Operation]]:
    groups: dict[Block, list[Operation]] = {}
    for tile in tiles:
        load = anchors[tile]
        groups.setdefault(block_of(load), []).append(load)
    return list(groups.values())


def _load_slice(body: Block, loads: Sequence[Operation]) -> Slice:
    """What a role needs that does the loads, with what the author promises of it."""
    needed = Slice(body, (*loads, *(op for op in body.walk() if isinstance(op, MeetOp))))
    for op in body.walk():
        if is_assumption(op) and _is_known(op, needed, body):
            needed.add(op)
    return needed


def _is_known(assumption: Operation, needed: Slice, body: Block) -> bool:
    """Whether a role computes all of an assumption anyway, but for free scalars."""
    own = Slice(body, [assumption])
    return all(
        op in needed.ops or op is assumption or (not is_control_flow(op) and is_free(op))
        for op in own.ops
    )


class _Forming:
    """Copies of a program's slices, with the ends of channels in the place of loads."""

    def __init__(self, body: Block, sites: Sequence[Site], stays: Sequence[Operation]) -> None:
        self._body = body
        self._stays = frozenset(stays)
        self._before = Slice(body, stays).ops
        self.old = tuple(body.ops)[:-1]
        self._firsts = {site.first(): site for site in sites}
        self._lasts = {site.last(): site for site in sites}
        self._loads = {load for site in sites for load in site.loads}
        self.channels: dict[str, Operation] = {}
        self.between: Sequence[Operation] = ()
        for site in sites:
            if site.channel.name not in self.channels:
                self.channels[site.channel.name] = _channel(site)

    def is_kept(self, op: Operation) -> bool:
        """Whether an op stays in front of the roles, for itself or for what does.

        Roles compute again what is free.
        """
        return op in self._before

    def load_body(self, needed: Slice) -> Block:
        """The body of the role that loads."""
        return self._copied(needed, self._put)

    def math_body(self) -> Block:
        """The body of the role that does the rest."""
        roots = [op for op in self._body.walk() if self._is_of_math(op)]
        return self._copied(Slice(self._body, roots, tuple(self._loads)), self._get)

    def _is_of_math(self, op: Operation) -> bool:
        return op in self._loads or is_root(op) or isinstance(op, MeetOp)

    def _copied(self, needed: Slice, replace: Replace) -> Block:
        block = Block(arg_types=[i32])
        needed.copy_into(block, {}, replace)
        end = self._body.last_op
        assert end is not None
        block.add_op(build(YieldOp, location=end.location))
        return block

    def _put(self, op: Operation, target: Block, values: Values) -> bool:
        if op in self._loads:
            target.add_op(op.clone(values))
        site = self._lasts.get(op)
        if site is not None:
            channel = self.channels[site.channel.name].results[0]
            operands = [channel, *(values[load.results[0]] for load in site.loads)]
            target.add_op(build(PutOp, operands, location=op.location))
        return op in self._loads or op in self._stays

    def _get(self, op: Operation, target: Block, values: Values) -> bool:
        site = self._firsts.get(op)
        if site is not None:
            channel = self.channels[site.channel.name].results[0]
            get = build(GetOp, [channel], site.types(), location=op.location)
            target.add_op(get)
            for load, value in zip(site.loads, get.results, strict=True):
                values[load.results[0]] = value
                value.name_hint = load.results[0].name_hint
        return op in self._loads or op in self._stays


def _channel(site: Site) -> Operation:
    properties: dict[str, Attribute] = {
        "channel_name": StringAttr(site.channel.name),
        "tiles": ArrayAttr(site.types()),
        "slots": IntegerAttr(site.channel.slots, i32),
    }
    if site.channel.shares:
        properties["shares"] = StringAttr(site.channel.shares)
    return build(ChannelOp, (), [CHANNEL], properties, location=site.loads[0].location)


def _replace_body(
    kernel: FuncOp, schedule: Schedule, forming: _Forming, bodies: Mapping[Role, Block]
) -> None:
    """Put the roles in the place of all that the kernel does."""
    body = kernel.body.block
    end = body.last_op
    assert end is not None
    roles = schedule.roles
    numbers = {
        name: DenseArrayBase.from_list(i32, [getattr(role, name) for role in roles])
        for name in ("warps", "replicas", "registers")
    }
    names = ArrayAttr([StringAttr(role.name) for role in roles])
    regions = [Region(bodies[role]) for role in roles]
    made = build(RolesOp, (), (), {"roles": names, **numbers}, regions, kernel.location)
    for op in (*forming.channels.values(), *forming.between, *_meeting(roles, bodies), made):
        body.insert_op_before(op, end)
    for op in reversed(forming.old):
        if not forming.is_kept(op):
            erase(op)


def _meeting(roles: Sequence[Role], bodies: Mapping[Role, Block]) -> list[Operation]:
    """The channel at which roles meet, for those that do."""
    meets = [op for body in bodies.values() for op in body.walk() if isinstance(op, MeetOp)]
    if not meets:
        return []
    properties: dict[str, Attribute] = {
        "channel_name": StringAttr(MEETING),
        "tiles": ArrayAttr([]),
        "slots": IntegerAttr(1, i32),
    }
    channel = build(ChannelOp, (), [CHANNEL], properties, location=meets[0].location)
    for op in meets:
        op.operands = [channel.results[0]]
        op.properties["count"] = IntegerAttr(sum(role.replicas for role in roles), i32)
    return [channel]


def _discard(block: Block) -> None:
    """Drop a body that nobody takes."""
    block.drop_all_references()
