"""Conversions within a warp: each round, every lane sends one register and receives one.

With `M` the linear map from a place of the target (register, lane) to the place of the source
that holds its element, a round cannot be "target register r of every lane": two lanes may need
different registers of one lane. So in round `r` lane `l` receives its register `r ^ F(l)`, with
`F` chosen such that lanes that receive from one lane receive the same register of it. What lane
`k` sends is then linear too: register `s ^ G(k)`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.layout.atoms import AtomView
from tilewright.layout.gf2 import Span, combine
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class ShuffleRound:
    """One exchange: a register sent, a register received, and from which lane.

    *Semantics*: register `sent` (after the selection before) of lane `lane ^ source(lane,
    warp)` arrives in register `received` (before the selection after). `moves` is False where
    that is the lane itself for every lane, and nothing needs to be shuffled.
    """

    sent: int
    received: int
    lane: int
    moves: bool


@dataclass(frozen=True)
class WarpShuffle:
    """A conversion in which elements change lanes and stay in their warp.

    *Semantics*, for each copy `c` of the atom, at lane `l` of warp `w` (XOR of the bases of the
    bits set, for `select`, `source` and `place`):

    1. `value[i] = source register source_registers[c][i]`
    2. `sent[i] = value[i ^ select_lane(l) ^ select_warp(w)]`
    3. for each round: `arrived[round.received] = sent[round.sent]` of lane
       `source_lane(l) ^ source_warp(w) ^ round.lane`
    4. `made[i] = arrived[i ^ place_lane(l)]`
    5. target register `t` is `made[i]` of copy `c`, with `(c, i) = results[t]`

    *Constraints*: registers `i` that differ in the low `packed_log2` bits only go together in
    every step, so one 32-bit word carries `2^packed_log2` of them; rounds name the first one.
    """

    source_registers: tuple[tuple[int, ...], ...]
    select_lane: tuple[int, ...]
    select_warp: tuple[int, ...]
    source_lane: tuple[int, ...]
    source_warp: tuple[int, ...]
    rounds: tuple[ShuffleRound, ...]
    place_lane: tuple[int, ...]
    results: tuple[tuple[int, int], ...]
    packed_log2: int
    element_bytes: int

    @property
    def num_shuffles(self) -> int:
        """The number of 32-bit shuffles of a warp."""
        words = max(1, self.element_bytes // 4)
        moving = sum(exchange.moves for exchange in self.rounds)
        return moving * words * len(self.source_registers)

    @property
    def num_selects(self) -> int:
        """The number of selections between two registers of a warp."""
        before = sum(mask != 0 for mask in (*self.select_lane, *self.select_warp))
        after = sum(mask != 0 for mask in self.place_lane)
        sent = len(self.source_registers[0]) >> self.packed_log2
        per_copy = before * sent + after * len(self.rounds)
        return per_copy * max(1, self.element_bytes // 4) * len(self.source_registers)

    def cost(self) -> int:
        """The cycles that a warp needs for it, roughly."""
        packing = len(self.rounds) * self.packed_log2 * len(self.source_registers)
        # A shuffle takes a wavefront of shared memory and half the issue slots of a store.
        return 24 + 2 * self.num_shuffles + self.num_selects + packing


@dataclass(frozen=True)
class _Map:
    """Where a bit of the target is in the source: a combination of registers, and a lane."""

    register: int
    lane: int

    def __xor__(self, other: _Map) -> _Map:
        return _Map(self.register ^ other.register, self.lane ^ other.lane)


def plan_shuffle(source: AtomView, target: AtomView, element_bytes: int) -> WarpShuffle | None:
    """The shuffles that convert a layout, or None where one round a register does not do it."""
    places = _SourcePlaces(source)
    warps = [places.of(t ^ s) for t, s in zip(target.warps, source.warps, strict=True)]
    registers = [places.of(vector) for vector in target.registers]
    lanes = [places.of(vector) for vector in target.lanes]
    found = [m for m in (*warps, *registers, *lanes) if m is not None]
    if len(found) != len(warps) + len(registers) + len(lanes):
        return None  # something is in another warp
    warp_maps = found[: len(warps)]
    register_maps = found[len(warps) : len(warps) + len(registers)]
    exchange = _Exchange(target, places.kernel, register_maps, found[-len(lanes) :])
    if not exchange.solve():
        return None
    return _assemble(source, target, element_bytes, register_maps, warp_maps, exchange)


class _SourcePlaces:
    """Where in its warp the source holds an element."""

    def __init__(self, source: AtomView) -> None:
        self._num_registers = len(source.registers)
        self._span = Span((*source.registers, *source.lanes))
        # Places that hold the element 0 too: what copies leave to choose.
        self.kernel = [self._map(combination) for combination in self._span.kernel]

    def of(self, vector: int) -> _Map | None:
        remainder, combination = self._span.reduce(vector)
        return None if remainder else self._map(combination)

    def _map(self, combination: int) -> _Map:
        mask = (1 << self._num_registers) - 1
        return _Map(combination & mask, combination >> self._num_registers)


class _Exchange:
    """The search for `F`: for each lane bit, which register it receives and from which lane."""

    def __init__(
        self, target: AtomView, kernel: list[_Map], registers: list[_Map], lanes: list[_Map]
    ) -> None:
        self._target, self._kernel = target, kernel
        self._registers, self._lanes = registers, lanes
        # By basis of the lanes: the lane, F of it, and where in the source that is.
        self._basis: list[tuple[int, int, _Map]] = []
        self._sources = Span()

    def solve(self) -> bool:
        """Whether there is an exchange in which no lane must send two registers at once."""
        lanes = Span()
        copies = self._copies()
        for lane, received in copies:
            lanes.add(lane)
            self._take(lane, received, _Map(0, 0), own_only=True)
        for bit in range(len(self._lanes)):
            if not lanes.add(1 << bit):
                continue
            if not self._take(1 << bit, 0, self._lanes[bit], own_only=False):
                return False
        self._complete()
        return True

    def _copies(self) -> list[tuple[int, int]]:
        """Lanes that receive what lane 0 does, each with the registers that it must be in."""
        num_registers = len(self._target.registers)
        mask = (1 << num_registers) - 1
        kernel = Span((*self._target.registers, *self._target.lanes)).kernel
        return [(vector >> num_registers, vector & mask) for vector in kernel]

    def _take(self, lane: int, received: int, start: _Map, own_only: bool) -> bool:
        """Choose from where a basis vector of the lanes receives.

        Its own lane if it can; else, for copies, lane 0's source; else any lane not yet taken.
        """
        choice = self._reach(start, lane, own_only)
        if choice is None and own_only:
            self._basis.append((lane, received, start))
            return True
        if choice is None:
            reachable = self._steps(own_only)
            candidates = [start.lane, *(start.lane ^ step.lane for step, _ in reachable)]
            free = next((c for c in candidates if c not in self._sources), None)
            choice = None if free is None else self._reach(start, free, own_only)
        if choice is None:
            return False
        where, change = choice
        self._sources.add(where.lane)
        self._basis.append((lane, received ^ change, where))
        return True

    def _steps(self, own_only: bool) -> list[tuple[_Map, int]]:
        """What may be added to a place: copies of the source, and other target registers."""
        steps = [(step, 0) for step in self._kernel]
        if not own_only:
            steps += [(step, 1 << bit) for bit, step in enumerate(self._registers)]
        return steps

    def _reach(self, start: _Map, lane: int, own_only: bool) -> tuple[_Map, int] | None:
        """A place in `lane` that does, and the registers received instead."""
        if lane in self._sources:
            return None
        steps = self._steps(own_only)
        remainder, combination = Span(step.lane for step, _ in steps).reduce(lane ^ start.lane)
        if remainder:
            return None
        where, change = start, 0
        for bit, (step, register) in enumerate(steps):
            if combination >> bit & 1:
                where, change = where ^ step, change ^ register
        return where, change

    def _complete(self) -> None:
        """`F`, the source and `G` by lane bit."""
        span = Span(lane for lane, _, _ in self._basis)
        by_bit = [span.reduce(1 << bit)[1] for bit in range(len(self._lanes))]
        sources = [where for _, _, where in self._basis]
        self.place = [combine([f for _, f, _ in self._basis], bits) for bits in by_bit]
        self.source = [combine([where.lane for where in sources], bits) for bits in by_bit]
        sending = [where for where in sources if where.lane]
        span = Span(where.lane for where in sending)
        registers = [where.register for where in sending]
        self.select = [
            combine(registers, span.reduce(1 << bit)[1]) for bit in range(len(self._lanes))
        ]

    def selected(self, lane: int) -> int:
        """`G`: what a lane XORs to the register that it sends."""
        return combine(self.select, lane)


def _assemble(
    source: AtomView,
    target: AtomView,
    element_bytes: int,
    registers: list[_Map],
    warps: list[_Map],
    exchange: _Exchange,
) -> WarpShuffle:
    select_warp = [m.register ^ exchange.selected(m.lane) for m in warps]
    sent = [m.register ^ exchange.selected(m.lane) for m in registers]
    moved = [*exchange.select, *select_warp]
    pairs = _packed_bits(registers, sent, moved, exchange.place, element_bytes)
    order = _Order([s for s, _ in pairs], len(source.registers))
    place = _Order([t for _, t in pairs], len(target.registers))
    is_still = exchange.source == [1 << bit for bit in range(len(exchange.source))]
    is_still = is_still and not any(m.lane for m in warps)
    rounds: list[ShuffleRound] = []
    for received in range(0, 1 << len(target.registers), 1 << len(pairs)):
        bits = place.old(received)
        lane = combine([m.lane for m in registers], bits)
        moves = lane != 0 or not is_still
        rounds.append(ShuffleRound(order.new(combine(sent, bits)), received, lane, moves))
    return WarpShuffle(
        source_registers=tuple(
            tuple(source.register(copy, order.old(i)) for i in range(1 << len(source.registers)))
            for copy in range(source.num_copies)
        ),
        select_lane=tuple(map(order.new, exchange.select)),
        select_warp=tuple(map(order.new, select_warp)),
        source_lane=tuple(exchange.source),
        source_warp=tuple(m.lane for m in warps),
        rounds=tuple(rounds),
        place_lane=tuple(map(place.new, exchange.place)),
        results=tuple((copy, place.new(bits)) for copy, bits in target.places),
        packed_log2=len(pairs),
        element_bytes=element_bytes,
    )


def _packed_bits(
    registers: Sequence[_Map],
    sent: Sequence[int],
    moved: Sequence[int],
    place: Sequence[int],
    element_bytes: int,
) -> list[tuple[int, int]]:
    """Pairs of a source and a target register bit that go together through every step."""
    touched_source = touched_target = 0
    for mask in moved:
        touched_source |= mask
    for mask in place:
        touched_target |= mask
    pairs: list[tuple[int, int]] = []
    for bit, where in enumerate(registers):
        others = [other for b, other in enumerate(sent) if b != bit]
        is_alone = where.lane == 0 and where.register.bit_count() == 1
        is_alone = is_alone and not any(other & where.register for other in others)
        if is_alone and not touched_source & where.register and not touched_target >> bit & 1:
            pairs.append((where.register.bit_length() - 1, bit))
    return pairs[: {1: 2, 2: 1}.get(element_bytes, 0)]


class _Order:
    """A renumbering of register bits that puts some first."""

    def __init__(self, first: Sequence[int], count: int) -> None:
        self._bits = [*first, *(bit for bit in range(count) if bit not in first)]

    def old(self, combination: int) -> int:
        """The combination of the old bits for one of the new."""
        return sum(1 << old for new, old in enumerate(self._bits) if combination >> new & 1)

    def new(self, combination: int) -> int:
        """The combination of the new bits for one of the old."""
        return sum(1 << new for new, old in enumerate(self._bits) if combination >> old & 1)


def permutation_moves(source: AtomView, target: AtomView) -> tuple[int, ...] | None:
    """For each target register the source register of the same lane, or None."""
    if source.lanes != target.lanes or source.warps != target.warps:
        return None
    span = Span(source.registers)
    moves: list[int] = []
    for copy, combination in target.places:
        remainder, found = span.reduce(target.vector(combination))
        if remainder:
            return None
        moves.append(source.register(copy, found))
    return tuple(moves)
