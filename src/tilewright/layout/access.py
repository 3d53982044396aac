"""One side of a round trip through shared memory: what each instruction moves, and to where.

An instruction moves a vector of neighbours that are in registers of one lane, or 8 × 8 matrices
of 16-byte rows (stmatrix, ldmatrix), whose elements a warp holds spread over its lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Literal

from tilewright.layout.atoms import AtomView
from tilewright.layout.banks import Wavefront
from tilewright.layout.gf2 import Span, combine
from tilewright.machine.gpus import BANK_BYTES, NUM_BANKS
from tilewright.support.dataclass import dataclass

AccessKind = Literal["vector", "matrix", "transposed_matrix"]

WORD_BYTES = BANK_BYTES
VECTOR_BYTES = 16
"""The most that one access of a lane moves. Source: PTX ISA 8.8, 9.7.9 (.v4.b32)."""
WAVEFRONT_BYTES = NUM_BANKS * BANK_BYTES


def log2(number: int) -> int:
    """The exponent of a power of two."""
    return number.bit_length() - 1


@dataclass(frozen=True)
class OffsetMap:
    """Where each register of each thread is in shared memory, in bytes.

    *Semantics*: `added[r] + (register[r] ^ XOR of lane[b] for the bits b of the lane ^ XOR of
    warp[b] for the bits b of the warp)`. The XOR stays inside one copy of the atom, whose size
    is a power of two; `added` is the start of the copy. Where `register[r] & thread_mask` is 0
    the XOR with it is a sum, so `register[r] + added[r]` is the immediate of an instruction.

    For matrices, `lane` says which row a lane gives the address of, not what it holds, and
    `register` counts for the first register of an instruction.
    """

    register: tuple[int, ...]
    added: tuple[int, ...]
    lane: tuple[int, ...]
    warp: tuple[int, ...]

    @property
    def thread_mask(self) -> int:
        """The bits of an offset that depend on lane or warp."""
        mask = 0
        for basis in (*self.lane, *self.warp):
            mask |= basis
        return mask

    def offset(self, register: int, lane: int, warp: int) -> int:
        """The offset in bytes of one register of one thread."""
        inside = self.register[register]
        for value, bases in ((lane, self.lane), (warp, self.warp)):
            for bit, basis in enumerate(bases):
                inside ^= basis * (value >> bit & 1)
        return self.added[register] + inside


@dataclass(frozen=True)
class Access:
    """How one side of a round trip reaches shared memory: all that its instructions need.

    *Semantics*: `passes[p]` lists the instructions of pass `p`, each as the registers that it
    moves. `vector`: the registers are neighbours in memory, lowest first. `matrix`: one, two or
    four 8 × 8 matrices of 16-byte rows, for each the registers of one 32-bit word, lowest first;
    lane `8 m + j` gives the address of row `j` of matrix `m`. `transposed_matrix`: the same with
    `.trans`. Registers that hold copies are in no instruction of a store, and follow from
    `representative` after a load. Threads with a bit of the free masks set need not store.
    """

    kind: AccessKind
    offsets: OffsetMap
    passes: tuple[tuple[tuple[int, ...], ...], ...]
    representative: tuple[int, ...]
    free_lanes: int
    free_warps: int

    @property
    def vector_elems(self) -> int:
        """The number of registers that one instruction moves."""
        return len(self.passes[0][0])


@dataclass(frozen=True)
class Order:
    """An order of the elements of an atom in shared memory: the vectors of an offset's bits.

    The first `num_low` bits are what a vector may cover, the last `num_static` depend on
    registers alone, on both sides.
    """

    basis: tuple[int, ...]
    num_static: int
    num_low: int

    @cached_property
    def _span(self) -> Span:
        return Span(self.basis)

    def offset(self, vector: int) -> int:
        """The offset of an element of the atom, in elements."""
        return self._span.reduce(vector)[1]

    def offsets(self, vectors: Iterable[int]) -> tuple[int, ...]:
        """The offsets of elements of the atom, in elements."""
        return tuple(map(self.offset, vectors))


@dataclass(frozen=True)
class Passes:
    """How a round trip is cut: atoms in one pass, and bits of an offset that count passes."""

    copies_per_pass: int
    split_bits: int

    def number(self, copies: int) -> int:
        """The number of passes."""
        return -(-copies // self.copies_per_pass) << self.split_bits


@dataclass(frozen=True)
class Side:
    """A layout at one end of a round trip, and the kind of instruction that moves it."""

    view: AtomView
    kind: AccessKind
    element_bytes: int

    @property
    def word_log2(self) -> int:
        """The bits of an offset in elements that stay within a bank."""
        return max(0, log2(WORD_BYTES // self.element_bytes))

    def prefix(self, low: Sequence[int]) -> int:
        """How many of the low bits of an offset one instruction covers in one lane or row."""
        if self.kind != "vector":
            return len(low)
        span, prefix = Span(self.view.registers), 0
        while prefix < len(low) and low[prefix] in span:
            prefix += 1
        return prefix

    def wavefront(self, low: Sequence[int]) -> Wavefront:
        """What one wavefront touches when these are the low bits of an offset."""
        lanes = self.view.lanes
        by_thread = (*lanes, *self.view.warps)
        if self.kind != "vector":
            return Wavefront((*low, *self._rows), by_thread)
        covered = max(self.prefix(low), min(self.word_log2, len(low)))
        unit_bytes = max(WORD_BYTES, self.element_bytes << covered)
        return Wavefront((*low[:covered], *lanes[: log2(WAVEFRONT_BYTES // unit_bytes)]), by_thread)

    @property
    def _rows(self) -> tuple[int, ...]:
        """The bits that choose the row of a matrix."""
        if self.kind == "matrix":
            return self.view.lanes[2:]
        return (self.view.registers[0], *self.view.lanes[:2])

    # --- what an order makes of it ----------------------------------------------------------

    def vector_log2(self, order: Order) -> int:
        """How many low bits a vector covers such that every thread's vectors are aligned."""
        prefix = self.prefix(order.basis[: order.num_low])
        for offset in order.offsets((*self.view.lanes, *self.view.warps)):
            if offset:
                prefix = min(prefix, log2(offset & -offset))
        return prefix

    def fits(self, order: Order) -> bool:
        """Whether rows of matrices are where the instruction wants them."""
        if self.kind == "vector":
            return True
        low = (1 << order.num_low) - 1
        word = (1 << self.word_log2) - 1 if self.kind == "matrix" else 0
        addresses = order.offsets((*self._rows, *self.view.warps))
        held = order.offsets(self.view.registers)
        return not any(at & low for at in addresses) and not any(at & low & ~word for at in held)

    def cost(self, order: Order) -> float:
        """The cycles in which shared memory serves a warp, and half a cycle an instruction."""
        registers = len(self.view.registers)
        if self.kind == "vector":
            vector = self.vector_log2(order)
            chunk = max(WORD_BYTES, self.element_bytes << vector)
            lanes = self.view.lanes
            group = min(len(lanes), log2(WAVEFRONT_BYTES // chunk))
            conflicts = self._conflicts(order, lanes[:group], chunk) << (len(lanes) - group)
            instructions = 1 << (registers - vector)
        else:
            matrices = self._matrices(order)
            conflicts = self._conflicts(order, self._rows, VECTOR_BYTES) << len(matrices)
            instructions = 1 << (registers - self.word_log2 - len(matrices))
        return self.view.num_copies * instructions * (conflicts + 0.5)

    def _conflicts(self, order: Order, vectors: Sequence[int], chunk_bytes: int) -> int:
        """The wavefronts that an access of these lanes or rows takes, in chunks of this size."""
        chunks = [at * self.element_bytes // chunk_bytes for at in order.offsets(vectors)]
        banks = WAVEFRONT_BYTES // chunk_bytes - 1
        return 1 << (Span(chunks).rank - Span(chunk & banks for chunk in chunks).rank)

    def _matrices(self, order: Order, split_bits: int = 0) -> tuple[int, ...]:
        """The offsets, in elements, from one matrix of an instruction to the next: up to two bits.

        Those of registers beyond the ones in a word, as far as they are in one pass.
        """
        taken = {"matrix": order.basis[: self.word_log2], "transposed_matrix": self._rows[:1]}
        span = Span(order.offsets(taken[self.kind]))
        limit = 1 << (len(order.basis) - split_bits)
        low = (1 << order.num_low) - 1
        found: list[int] = []
        for at in order.offsets(self.view.registers):
            if at < limit and len(found) < 2 and span.add(at):
                found.append(at & ~low)
        return tuple(found)

    def access(self, order: Order, passes: Passes) -> Access:
        """The instructions that move this side in this order."""
        view, size = self.view, self.element_bytes
        kept = len(order.basis) - passes.split_bits
        places = self._element_places(order)
        matrices = () if self.kind == "vector" else self._matrices(order, passes.split_bits)
        rows = view.lanes if self.kind == "vector" else self._rows
        lane = (*order.offsets(rows), *matrices, 0, 0)[: len(view.lanes)]
        instructions: list[list[tuple[int, ...]]] = [
            [] for _ in range(passes.number(view.num_copies))
        ]
        for group in self._groups(order, places, matrices):
            copy, at = places[group[0]]
            number = copy // passes.copies_per_pass << passes.split_bits | at >> kept
            instructions[number].append(group)
        starts = (copy % passes.copies_per_pass for copy, _ in places)
        return Access(
            kind=self.kind,
            offsets=OffsetMap(
                register=tuple((at & ((1 << kept) - 1)) * size for _, at in places),
                added=tuple(start * (size << kept) for start in starts),
                lane=tuple(at * size for at in lane),
                warp=tuple(at * size for at in order.offsets(view.warps)),
            ),
            passes=tuple(map(tuple, instructions)),
            representative=_representatives(places),
            free_lanes=view.free_lanes,
            free_warps=view.free_warps,
        )

    def _element_places(self, order: Order) -> tuple[tuple[int, int], ...]:
        """For each register, the copy of the atom and the offset in it, at lane 0 of warp 0."""
        by_bit = order.offsets(self.view.registers)
        return tuple((copy, combine(by_bit, bits)) for copy, bits in self.view.places)

    def _groups(
        self, order: Order, places: Sequence[tuple[int, int]], matrices: Sequence[int]
    ) -> list[tuple[int, ...]]:
        """The registers of each instruction, by offset."""
        if self.kind == "vector":
            vector = self.vector_log2(order)
            return list(_gathered(places, lambda at: at >> vector).values())
        words = self._words(order, places)
        steps = [0]
        for step in matrices:
            steps += [step >> order.num_low ^ other for other in steps]
        return [
            tuple(register for step in steps for register in words[copy, at ^ step])
            for copy, at in words
            if at == min(at ^ step for step in steps)
        ]

    def _words(
        self, order: Order, places: Sequence[tuple[int, int]]
    ) -> dict[tuple[int, int], tuple[int, ...]]:
        """The registers of each 32-bit word of a fragment, by copy and row of the first one."""
        if self.kind == "matrix":
            return _gathered(places, lambda at: at >> order.num_low)
        # The word of a transposed matrix is two rows of memory: the first register bit.
        pair = order.offset(self._rows[0])
        first = [bits & 1 == 0 for _, bits in self.view.places]
        others = {place: register for register, place in reversed(tuple(enumerate(places)))}
        return {
            (copy, at >> order.num_low): (register, others[copy, at ^ pair])
            for register, (copy, at) in sorted(enumerate(places), key=lambda entry: entry[1])
            if first[register] and others[copy, at] == register
        }


def _representatives(places: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """For each register, the first register at the same place."""
    first: dict[tuple[int, int], int] = {}
    return tuple(first.setdefault(place, register) for register, place in enumerate(places))


def _gathered(
    places: Sequence[tuple[int, int]], key: Callable[[int], int]
) -> dict[tuple[int, int], tuple[int, ...]]:
    """The registers whose offsets have the same key, lowest first; copies of registers left out."""
    groups: dict[tuple[int, int], dict[int, int]] = {}
    for register, (copy, at) in sorted(enumerate(places), key=lambda entry: entry[1]):
        groups.setdefault((copy, key(at)), {}).setdefault(at, register)
    return {place: tuple(group.values()) for place, group in groups.items()}
