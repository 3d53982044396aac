"""Runs what roles do to rings and turns, with scalars alone: tiles are never computed.

Every replica of every role is a coroutine that stops where it has to wait. Their events have no
choice in them, so that one order tells whether some order goes wrong: a wait is for a phase by
its number, not by its parity, and a slot is read, filled and given back by who holds it.

    load  acquire ab[0] fill 0 · fill · commit          math  wait ab[0] fill 0 · dot · release …
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilewright.ir.effects import Access, Resource, own_effects
from tilewright.ir.encoding import SharedType
from tilewright.ir.locations import span_of
from tilewright.ir.op import Array, ElementwiseOp
from tilewright.ops.control_flow import ForOp, IfOp, WhileOp
from tilewright.ops.creation.ir import ConstantOp
from tilewright.ops.function import FuncOp
from tilewright.ops.program.ir import GetGridExtentOp, GetNumProgramsOp, GetProgramIdOp
from tilewright.ops.roles import (
    RingAcquireOp,
    RingCommitOp,
    RingFill,
    RingOp,
    RingReleaseOp,
    RingSeekOp,
    RingWaitOp,
    RolesOp,
    TurnPassOp,
    TurnWaitOp,
    find_roles,
    shared_by_roles,
)
from tilewright.ops.staging import DotWaitOp, LaidOutDotOp
from tilewright.schedule.protocol.state import Broken, Ring, Turns
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import ProtocolBroken

STEP_LIMIT = 1_000_000
"""Ops after which a role is taken to run without end. Chosen, not measured:
it only tells a role that does not end by itself from one that does."""


@dataclass(frozen=True)
class Launch:
    """What the scalars of a run follow from: integer arguments by number, and the program.

    `programs` run, and `grid` is what the launch asks for: () where they are the same.
    """

    arguments: Mapping[int, int]
    program: tuple[int, int, int] = (0, 0, 0)
    programs: tuple[int, int, int] = (1, 1, 1)
    grid: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class _Slot:
    """A slot that a replica has acquired or waited for, or a view of its tiles."""

    ring: RingOp
    number: int
    is_filled: bool


@dataclass
class _Product:
    """A product that was started, with the slots that it reads."""

    slots: tuple[_Slot, ...]
    is_done: bool = False


_Value: TypeAlias = "int | _Slot | _Product | None"
_Running: TypeAlias = Generator[None, None, None]


def run_protocol(kernel: FuncOp, launch: Launch, num_steps: int | None = None) -> int:
    """Run the roles of a kernel to their ends; how many ring ops and turns they went through.

    With `num_steps` a role that is not at its end after so many ops proves nothing, and the run
    ends there. *Raises*: ProtocolBroken that names the role, the ring, the slot and the line.
    """
    roles = find_roles(kernel)
    if roles is None:
        return 0
    run = _Run(kernel, roles, launch, num_steps)
    try:
        return run.run()
    except _GivenUp:
        return run.events


class _GivenUp(Exception):
    """A role has gone on for as many ops as the run was to take."""


class _Run:
    """One run: what the roles share, and the replicas that have not ended."""

    def __init__(
        self, kernel: FuncOp, roles: RolesOp, launch: Launch, num_steps: int | None = None
    ) -> None:
        self.launch = launch
        self.num_steps = num_steps
        self.events = 0
        self.rings: dict[RingOp, Ring] = {}
        self.turns: dict[str, Turns] = {}
        self._roles = roles
        self._common = _Replica(self, "", 0, 1)
        for number, argument in enumerate(kernel.body.block.args):
            self._common.values[argument] = launch.arguments.get(number)
        for op in kernel.body.block.ops:
            if isinstance(op, RingOp):
                sides = op.producers.value.data, op.consumers.value.data
                self.rings[op] = Ring.of(op.ring_name.data, op.num_slots, *sides)
            elif not op.regions:
                self._common.evaluate(op)

    def run(self) -> int:
        """Run all replicas, one after another, until all have ended."""
        live = [
            (replica, replica.run(body.block))
            for role, body in zip(self._roles.described(), self._roles.bodies, strict=True)
            for index, name in enumerate(role.replica_names())
            for replica in (_Replica(self, name, index, role.replicas, self._common.values),)
        ]
        while live:
            before, still = self.events, list[tuple[_Replica, _Running]]()
            for replica, running in live:
                if _advance(running):
                    still.append((replica, running))
            if still and self.events == before and len(still) == len(live):
                waits = "; ".join(f"{r.name} waits for {r.awaits}" for r, _ in still)
                raise still[0][0].error(f"every role that is left waits: {waits}")
            live = still
        for ring in self.rings.values():
            slots = ring.unread()
            if slots:
                raise self._common.error(
                    f"ring {ring.name}: all roles have ended, and slots {slots} were filled and "
                    "not emptied as often, or have arrivals of a phase that did not end",
                    next(op for op, other in self.rings.items() if other is ring),
                )
        return self.events


def _advance(running: _Running) -> bool:
    """Run a replica until it waits; whether it has not ended."""
    try:
        next(running)
    except StopIteration:
        return False
    return True


class _Replica:
    """One replica of a role: its values, what it holds, and its products."""

    def __init__(
        self,
        run: _Run,
        name: str,
        index: int,
        count: int,
        values: Mapping[SSAValue, _Value] | None = None,
    ) -> None:
        self.name, self.index, self.count = name, index, count
        self.values: dict[SSAValue, _Value] = dict(values or {})
        self.awaits = ""
        self._run = run
        self._op: Operation | None = None
        self._held: dict[tuple[RingOp, int, bool], _Slot] = {}
        self._products: list[_Product] = []
        self._steps = 0

    def error(self, what: str, op: Operation | None = None) -> ProtocolBroken:
        """The error of a role at the op where it stands."""
        at = op or self._op
        span, chain = span_of(at) if at is not None else (None, ())
        launch = self._run.launch
        return ProtocolBroken(
            f"role {self.name}: {what}" if self.name else what,
            hint=f"arguments {dict(launch.arguments)} of program {launch.program} show it",
            span=span,
            chain=chain,
        )

    # --- control ---

    def run(self, body: Block) -> _Running:
        """Run a role to its end, where it holds nothing and no product runs."""
        self.values[body.args[0]] = self.index
        yield from self._block(body)
        for slot in self._held.values():
            verb = "released" if slot.is_filled else "committed"
            raise self.error(f"{_place(slot)} is never {verb}")
        if any(not product.is_done and product.slots for product in self._products):
            raise self.error("ends while a product still reads a ring")

    def _block(self, block: Block) -> _Running:
        for op in block.ops:
            self._op = op
            self._steps += 1
            if self._run.num_steps is not None and self._steps > self._run.num_steps:
                raise _GivenUp
            if self._steps > STEP_LIMIT:
                raise self.error(f"runs for more than {STEP_LIMIT} ops")
            yield from self._step(op)

    def _step(self, op: Operation) -> _Running:
        if isinstance(op, ForOp):
            yield from self._for(op)
        elif isinstance(op, IfOp):
            yield from self._if(op)
        elif isinstance(op, WhileOp):
            yield from self._while(op)
        else:
            act = _act_of(op)
            if act is not None:
                self._run.events += 1
                yield from self._guarded(act, op)
            else:
                self.evaluate(op)

    def _guarded(self, act: Callable[[_Replica, Operation], _Running], op: Operation) -> _Running:
        """Do what an op on a ring or a turn does; what breaks the protocol gets its place."""
        running = act(self, op)
        while True:
            self._op = op
            try:
                next(running)
            except StopIteration:
                return
            except Broken as broken:
                raise self.error(f"{_subject(op)}{broken}", op) from broken
            yield

    def _bind(self, to: Sequence[SSAValue], values: Sequence[_Value]) -> None:
        self.values.update(zip(to, values, strict=True))

    def _all(self, values: Sequence[SSAValue]) -> list[_Value]:
        return [self.values.get(value) for value in values]

    def _for(self, op: ForOp) -> _Running:
        low, high, step = (self.integer(v, "a bound of a loop") for v in (op.lb, op.ub, op.step))
        carried = self._all(op.iter_args)
        body = op.body.block
        for number in range(low, high, step):
            self._bind(body.args, [number, *carried])
            yield from self._block(body)
            carried = self._all(_end(body).operands)
        self._bind(op.results, carried)

    def _if(self, op: IfOp) -> _Running:
        taken = op.true_region if self.integer(op.cond, "a condition") else op.false_region
        if taken.blocks:
            yield from self._block(taken.block)
            self._bind(op.results, self._all(_end(taken.block).operands))

    def _while(self, op: WhileOp) -> _Running:
        carried = self._all(op.arguments)
        while True:
            before, after = op.before_region.block, op.after_region.block
            self._bind(before.args, carried)
            yield from self._block(before)
            condition, *forwarded = _end(before).operands
            carried = self._all(forwarded)
            if not self.integer(condition, "a condition"):
                break
            self._bind(after.args, carried)
            yield from self._block(after)
            carried = self._all(_end(after).operands)
        self._bind(op.results, carried)

    # --- values ---

    def integer(self, value: SSAValue, what: str) -> int:
        """A scalar. *Raises*: ProtocolBroken where it does not follow from the arguments."""
        known = self.values.get(value)
        if not isinstance(known, int):
            raise self.error(
                f"{what} does not follow from the arguments: other roles do not know it"
            )
        return known

    def evaluate(self, op: Operation) -> None:
        """A scalar op, a view of a slot, or an op on tiles that touches slots and products."""
        if isinstance(op, LaidOutDotOp):
            self._start_product(op)
            return
        self._check_uses(op)
        for effect in own_effects(op):
            if isinstance(effect, Access) and effect.resource is Resource.SHARED:
                self._touch(op, effect)
        value = self._scalar(op)
        if value is None and any(isinstance(r.type, SharedType) for r in op.results):
            value = next((v for v in self._all(op.operands) if isinstance(v, _Slot)), None)
        for result in op.results:
            self.values[result] = value

    def _scalar(self, op: Operation) -> int | None:
        """The value of an op on integers; None where it is none or not known."""
        if isinstance(op, ConstantOp):
            is_integer = isinstance(op.result.type, IntegerType)
            return int(op.splat_value()) if is_integer else None
        launch = self._run.launch
        if isinstance(op, GetProgramIdOp):
            return launch.program[op.axis.value.data]
        if isinstance(op, GetNumProgramsOp):
            return launch.programs[op.axis.value.data]
        if isinstance(op, GetGridExtentOp):
            return (launch.grid or launch.programs)[op.axis.value.data]
        operands = self._all(op.operands)
        if not isinstance(op, ElementwiseOp) or not isinstance(op.results[0].type, IntegerType):
            return None
        arrays = [_typed(v, s.type) for v, s in zip(operands, op.operands, strict=True)]
        known = [array for array in arrays if array is not None]
        if len(known) < len(arrays):
            return None
        if op.name in _CASTS:
            return _cast(op, int(known[0]))
        result = op.reference(*known)
        return None if isinstance(result, tuple) else int(result)

    def _check_uses(self, op: Operation) -> None:
        """What a running product writes is for products, waits and the next iteration."""
        for operand in op.operands:
            value = self.values.get(operand)
            is_handed_on = isinstance(op, DotWaitOp) or op.next_op is None
            if isinstance(value, _Product) and not value.is_done and not is_handed_on:
                raise self.error(f"{op.name} uses what a product still writes", op)

    def _touch(self, op: Operation, effect: Access) -> None:
        slot = None if effect.value is None else self.values.get(effect.value)
        if isinstance(slot, _Slot):
            self.require_held(slot, op)
            if effect.writes and slot.is_filled:
                raise self.error(f"{op.name} writes to {_place(slot)}, which it has to read", op)
            if effect.reads and not slot.is_filled:
                raise self.error(f"{op.name} reads {_place(slot)}, which it has to fill", op)

    def require_held(self, slot: _Slot, op: Operation) -> None:
        if self._held.get((slot.ring, slot.number, slot.is_filled)) is not slot:
            verb = "released" if slot.is_filled else "committed"
            raise self.error(f"{op.name} touches {_place(slot)}, which was {verb} before", op)

    # --- products ---

    def _start_product(self, op: LaidOutDotOp) -> None:
        slots = [v for v in self._all([op.a, op.b]) if isinstance(v, _Slot)]
        for slot in slots:
            self.require_held(slot, op)
        for operand in (op.a, op.b):
            value = self.values.get(operand)
            if isinstance(value, _Product) and not value.is_done:
                raise self.error(f"{op.name} reads what a product still writes", op)
        product = _Product(tuple(slots), op.is_async is None)
        if op.is_async is not None:
            self._products.append(product)
        self.values[op.result] = product

    def wait_products(self, op: DotWaitOp) -> None:
        """End all products but the last `pending`."""
        while len(self._products) > op.pending.value.data:
            self._products.pop(0).is_done = True
        self._bind(op.results, self._all(op.tiles))

    # --- rings ---

    def ring(self, op: Operation) -> Ring:
        """The ring that an op is on."""
        return self._run.rings[_ring_op(op)]

    def slot_number(self, op: Operation, value: SSAValue | None) -> int:
        """The slot that an op names. *Raises*: Broken where there is none."""
        if value is None:
            raise Broken("the op names no slot")
        number = self.integer(value, "a slot")
        if not 0 <= number < len(self.ring(op).full):
            raise Broken(f"there is no slot {number}")
        return number

    def hold(self, op: RingAcquireOp | RingWaitOp, number: int) -> None:
        """From here on the replica fills or reads a slot. *Raises*: Broken if it did already."""
        is_filled = isinstance(op, RingWaitOp)
        key = op.ring_of(), number, is_filled
        if key in self._held:
            raise Broken(f"slot {number} is its already, and it asks for it again")
        slot = self._held[key] = _Slot(*key)
        for result in op.results:
            self.values[result] = slot

    def let_go(self, op: Operation, number: int, is_filled: bool) -> None:
        """The replica gives a slot back. *Raises*: Broken where it may not."""
        slot = self._held.pop((_ring_op(op), number, is_filled), None)
        if slot is None:
            raise Broken(f"gives slot {number} back, which it does not hold")
        if any(slot in product.slots and not product.is_done for product in self._products):
            raise Broken(f"gives slot {number} back, which a product still reads")

    def turns(self, name: str) -> Turns:
        """The turns of a name."""
        return self._run.turns.setdefault(name, Turns(self.count))


# --- what each op does --------------------------------------------------------------------------


def _acquire(replica: _Replica, op: Operation) -> _Running:
    assert isinstance(op, RingAcquireOp | RingWaitOp)
    if len(op.position) != 2:
        raise Broken("the op names no slot")
    number, ring = replica.slot_number(op, op.position[0]), replica.ring(op)
    fill = replica.integer(op.position[1], "the number of a fill")
    is_wait = isinstance(op, RingWaitOp)
    phases, phase = (ring.full[number], fill) if is_wait else (ring.empty[number], fill - 1)
    kind = "full" if is_wait else "empty"
    replica.awaits = f"phase {phase} of {kind}[{number}] of ring {ring.name}"
    while not phases.has_ended(phase):
        yield
    replica.awaits = ""
    replica.hold(op, number)


def _commit(replica: _Replica, op: Operation) -> _Running:
    assert isinstance(op, RingCommitOp)
    number = replica.slot_number(op, op.slot)
    replica.let_go(op, number, is_filled=False)
    announced = 0 if op.announced_bytes is None else op.announced_bytes.value.data
    replica.ring(op).full[number].arrive(announced)
    return
    yield


def _release(replica: _Replica, op: Operation) -> _Running:
    assert isinstance(op, RingReleaseOp)
    if op.condition is None or replica.integer(op.condition, "the condition of a release"):
        number = replica.slot_number(op, op.slot)
        replica.let_go(op, number, is_filled=True)
        replica.ring(op).empty[number].arrive()
    return
    yield


def _seek(replica: _Replica, op: Operation) -> _Running:
    assert isinstance(op, RingSeekOp)
    if len(op.before) != 2:
        raise Broken("the op names no slot")
    slots = len(replica.ring(op).full)
    slot, fill = (replica.integer(v, "where a role stands") for v in op.before)
    count = replica.integer(op.count, "how far a role goes")
    if count < 0:
        raise Broken(f"goes {-count} fills back")
    fills, number = divmod(fill * slots + slot + count, slots)
    replica.values.update(zip(op.after, (number, fills), strict=True))
    return
    yield


def _fill(replica: _Replica, op: Operation) -> _Running:
    assert isinstance(op, RingFill)
    number, tile = replica.slot_number(op, op.slot), replica.values.get(op.dst)
    if not isinstance(tile, _Slot) or (tile.ring, tile.number) != (_ring_op(op), number):
        raise Broken(f"slot {number} is told of a copy that goes to another place")
    replica.require_held(tile, op)
    if tile.is_filled:
        raise Broken(f"slot {number} is filled by who has to read it")
    replica.ring(op).full[number].bring(op.num_bytes())
    return
    yield


def _take_turn(replica: _Replica, op: Operation) -> _Running:
    assert isinstance(op, TurnWaitOp)
    turns = replica.turns(op.turns.data)
    replica.awaits = f"its turn at {op.turns.data}"
    while not turns.take(replica.index):
        yield
    replica.awaits = ""


def _pass_turn(replica: _Replica, op: Operation) -> _Running:
    assert isinstance(op, TurnPassOp)
    replica.turns(op.turns.data).hand_on(replica.index)
    return
    yield


def _dot_wait(replica: _Replica, op: Operation) -> _Running:
    assert isinstance(op, DotWaitOp)
    replica.wait_products(op)
    return
    yield


_ACTS: dict[type[Operation], Callable[[_Replica, Operation], _Running]] = {
    RingAcquireOp: _acquire,
    RingWaitOp: _acquire,
    RingCommitOp: _commit,
    RingReleaseOp: _release,
    RingSeekOp: _seek,
    TurnWaitOp: _take_turn,
    TurnPassOp: _pass_turn,
    DotWaitOp: _dot_wait,
}


def _act_of(op: Operation) -> Callable[[_Replica, Operation], _Running] | None:
    return _fill if isinstance(op, RingFill) else _ACTS.get(type(op))


def _ring_op(op: Operation) -> RingOp:
    """The op that makes the ring that an op is on."""
    owner = op.ring.owner if isinstance(op, RingFill) else op.operands[0].owner
    assert isinstance(owner, RingOp)
    return owner


def _subject(op: Operation) -> str:
    """What an op is on, as the start of a sentence about it."""
    name = shared_by_roles(op)
    return f"{name}: " if name else ""


def _place(slot: _Slot) -> str:
    return f"slot {slot.number} of ring {slot.ring.ring_name.data}"


def _end(block: Block) -> Operation:
    """The op that ends a block and hands its values on."""
    last = block.last_op
    assert last is not None
    return last


_CASTS = ("arith.extsi", "arith.extui", "arith.trunci")


def _cast(op: Operation, value: int) -> int:
    """An integer in another width; a bit is 0 or 1."""
    source, target = op.operands[0].type, op.results[0].type
    assert isinstance(source, IntegerType) and isinstance(target, IntegerType)
    if op.name == "arith.extui":
        return value % (1 << source.width.data)
    if op.name == "arith.extsi" and source.width.data == 1:
        return -value
    made = _typed(value, target)
    assert made is not None
    return int(made)


def _typed(value: object, type_: Attribute) -> Array | None:
    """An integer as the array that a reference takes; None where it is not known."""
    if not isinstance(value, int) or not isinstance(type_, IntegerType):
        return None
    width = type_.width.data
    if width == 1:
        return np.array(bool(value))
    low = value % (1 << width)
    return np.array(low - (1 << width) if low >> (width - 1) else low, np.dtype(f"i{width // 8}"))
