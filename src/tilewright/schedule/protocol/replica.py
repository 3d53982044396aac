"""One replica of a role while a protocol runs: its values, the slots it holds, its products."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue

from tilewright.ir.effects import Access, Resource, own_effects
from tilewright.ir.encoding import SharedType
from tilewright.ir.locations import span_of
from tilewright.ops.rings import RingAcquireOp, RingCommitOp, RingFill, RingOp, RingWaitOp
from tilewright.ops.staging import AsyncCopyOp, DotWaitOp, LaidOutDotOp
from tilewright.schedule.protocol.scalars import Launch, scalar_of
from tilewright.schedule.protocol.state import Broken, Ring, Turns
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import ProtocolBroken


@dataclass(frozen=True, eq=False)
class Slot:
    """A slot that a replica has acquired or waited for, or a view of its tiles."""

    ring: RingOp
    number: int
    is_filled: bool


@dataclass
class Product:
    """A product that was started, with the slots that it reads."""

    slots: tuple[Slot, ...]
    is_done: bool = False


Value: TypeAlias = "int | Slot | Product | None"


@dataclass
class SharedState:
    """What the roles of a program share, the launch, and how many events there were.

    `programs` are those of its cluster, by rank, itself among them. `num_steps` are the ops of a
    role after which the run gives up; None for as many as it takes.
    """

    launch: Launch
    num_steps: int | None = None
    events: int = 0
    rings: dict[RingOp, Ring] = field(default_factory=dict)
    turns: dict[str, Turns] = field(default_factory=dict)
    programs: list[SharedState] = field(default_factory=list)


class Replica:
    """One replica of a role: its values, what it holds, and its products."""

    def __init__(
        self,
        shared: SharedState,
        name: str,
        index: int,
        count: int,
        values: Mapping[SSAValue, Value] | None = None,
    ) -> None:
        self.name, self.index, self.count = name, index, count
        self.values: dict[SSAValue, Value] = dict(values or {})
        self.awaits = ""
        self.shared = shared
        self.op: Operation | None = None
        self._held: dict[tuple[RingOp, int, bool], Slot] = {}
        self._products: list[Product] = []
        self._copies: list[Slot] = []
        self.steps = 0

    def error(self, what: str, op: Operation | None = None) -> ProtocolBroken:
        """The error of a role at the op where it stands."""
        at = op or self.op
        span, chain = span_of(at) if at is not None else (None, ())
        launch = self.shared.launch
        return ProtocolBroken(
            f"role {self.name}: {what}" if self.name else what,
            hint=f"arguments {dict(launch.arguments)} of program {launch.program} show it",
            span=span,
            chain=chain,
        )

    def require_end(self) -> None:
        """At its end a role holds nothing and no product runs. *Raises*: ProtocolBroken."""
        for slot in self._held.values():
            verb = "released" if slot.is_filled else "committed"
            raise self.error(f"{_named(slot)} is never {verb}")
        if any(not product.is_done and product.slots for product in self._products):
            raise self.error("ends while a product still reads a ring")
        for slot in self._copies:
            raise self.error(f"ends while nobody waits for its copies to {_named(slot)}")

    # --- values ---

    def bind(self, to: Sequence[SSAValue], values: Sequence[Value]) -> None:
        """Name what is handed on."""
        self.values.update(zip(to, values, strict=True))

    def all(self, values: Sequence[SSAValue]) -> list[Value]:
        """What is known of some values."""
        return [self.values.get(value) for value in values]

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
        self._check_uses(op)
        for effect in own_effects(op):
            if isinstance(effect, Access) and effect.resource is Resource.SHARED:
                self._touch(op, effect)
        value = scalar_of(op, self.all(op.operands), self.shared.launch)
        if value is None and any(isinstance(r.type, SharedType) for r in op.results):
            value = next((v for v in self.all(op.operands) if isinstance(v, Slot)), None)
        for result in op.results:
            self.values[result] = value

    def _check_uses(self, op: Operation) -> None:
        """What a running product writes is for products, waits and the next iteration."""
        for operand in op.operands:
            value = self.values.get(operand)
            is_handed_on = op.next_op is None
            if isinstance(value, Product) and not value.is_done and not is_handed_on:
                raise self.error(f"{op.name} uses what a product still writes", op)

    def _touch(self, op: Operation, effect: Access) -> None:
        slot = None if effect.value is None else self.values.get(effect.value)
        if isinstance(slot, Slot):
            self.require_held(slot, op)
            if effect.writes and slot.is_filled:
                raise self.error(f"{op.name} writes to {_named(slot)}, which it has to read", op)
            if effect.reads and not slot.is_filled:
                raise self.error(f"{op.name} reads {_named(slot)}, which it has to fill", op)

    def require_held(self, slot: Slot, op: Operation) -> None:
        """Refuse a slot that was given back. *Raises*: ProtocolBroken."""
        if self._held.get((slot.ring, slot.number, slot.is_filled)) is not slot:
            verb = "released" if slot.is_filled else "committed"
            raise self.error(f"{op.name} touches {_named(slot)}, which was {verb} before", op)

    # --- products ---

    def start_product(self, op: LaidOutDotOp) -> None:
        """A product reads slots, until it is waited for where it is asynchronous."""
        slots = [v for v in self.all([op.a, op.b]) if isinstance(v, Slot)]
        for slot in slots:
            self.require_held(slot, op)
        for operand in (op.a, op.b):
            value = self.values.get(operand)
            if isinstance(value, Product) and not value.is_done:
                raise self.error(f"{op.name} reads what a product still writes", op)
        product = Product(tuple(slots), op.is_async is None)
        if op.is_async is not None:
            self._products.append(product)
        self.values[op.result] = product

    def wait_products(self, op: DotWaitOp) -> None:
        """End all products but the last `pending`."""
        while len(self._products) > op.pending.value.data:
            self._products.pop(0).is_done = True
        self.bind(op.results, self.all(op.tiles))

    # --- copies ---

    def start_copy(self, op: AsyncCopyOp) -> None:
        """Threads of the role start copies; those to a slot are for a commit to wait for."""
        self.evaluate(op)
        slot = self.values.get(op.dst)
        if isinstance(slot, Slot):
            self._copies.append(slot)

    def hand_copies(self, op: RingCommitOp, number: int) -> None:
        """A commit takes the copies that were started. *Raises*: Broken for those of others."""
        if op.by_copies is None:
            return
        if [(slot.ring, slot.number) for slot in self._copies] != [(ring_of(op), number)]:
            raise Broken(f"slot {number} waits for other copies than those that go to it")
        self._copies.clear()

    # --- rings ---

    def ring(self, op: Operation) -> Ring:
        """The ring that an op is on."""
        return self.shared.rings[ring_of(op)]

    def rings_beside(self, op: Operation) -> list[Ring]:
        """The other rings whose slots lie where those of the ring lie that an op is on."""
        own = ring_of(op)
        rings = self.shared.rings.items()
        return [ring for other, ring in rings if other is not own and other.memory == own.memory]

    def shared_rings(self, op: Operation) -> list[Ring]:
        """The ring that an op is on, and those of the programs that share it."""
        ring = ring_of(op)
        if ring.programs == 1:
            return [self.shared.rings[ring]]
        return [program.rings[ring] for program in self.shared.programs]

    def slot_number(self, op: Operation, value: SSAValue | None) -> int:
        """The slot that an op names. *Raises*: Broken where there is none."""
        if value is None:
            raise Broken("the op names no slot")
        number = self.integer(value, "a slot")
        if not 0 <= number < len(self.ring(op).full):
            raise Broken(f"there is no slot {number}")
        return number

    def hold(self, op: RingAcquireOp | RingWaitOp, number: int, is_filled: bool) -> None:
        """From here on the replica fills or reads a slot. *Raises*: Broken if it did already."""
        key = op.ring_of(), number, is_filled
        if key in self._held:
            raise Broken(f"slot {number} is its already, and it asks for it again")
        slot = self._held[key] = Slot(*key)
        for result in op.results:
            self.values[result] = slot

    def let_go(self, op: Operation, number: int, is_filled: bool) -> None:
        """The replica gives a slot back. *Raises*: Broken where it may not."""
        slot = self._held.pop((ring_of(op), number, is_filled), None)
        if slot is None:
            raise Broken(f"gives slot {number} back, which it does not hold")
        if any(slot in product.slots and not product.is_done for product in self._products):
            raise Broken(f"gives slot {number} back, which a product still reads")

    def turns(self, name: str) -> Turns:
        """The turns of a name."""
        return self.shared.turns.setdefault(name, Turns(self.count))


def ring_of(op: Operation) -> RingOp:
    """The op that makes the ring that an op is on."""
    owner = op.ring.owner if isinstance(op, RingFill) else op.operands[0].owner
    assert isinstance(owner, RingOp)
    return owner


def _named(slot: Slot) -> str:
    return f"slot {slot.number} of ring {slot.ring.ring_name.data}"
