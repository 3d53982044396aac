"""Conversions executed with NumPy, on `[register, lane, warp]`: the oracle of the plans.

What a kernel does for a conversion is what happens here, and shared memory is watched: how many
wavefronts each instruction takes, and whether anything is read that was not written.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tilewright.layout.access import VECTOR_BYTES, WAVEFRONT_BYTES, WORD_BYTES, Access
from tilewright.layout.convert import Conversion, RegisterPermutation, WarpShuffle
from tilewright.layout.linear import LinearLayout
from tilewright.layout.roundtrip import SharedRoundTrip
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError

Elements = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Simulation:
    """What a conversion did: who holds which element after it, and what it cost.

    `elements` is `[register, lane, warp]`, elements numbered row-major. `wavefronts` counts what
    shared memory served, `ideal` what it serves at least for as many instructions and bytes.
    """

    elements: Elements
    wavefronts: int
    ideal: int

    @property
    def has_bank_conflicts(self) -> bool:
        """Whether an access took longer than its bytes need."""
        return self.wavefronts > self.ideal


def elements_of(layout: LinearLayout) -> Elements:
    """The number of the element that each register of each lane of each warp holds."""
    total: Elements = np.zeros((layout.num_registers, layout.num_lanes, layout.num_warps), np.int64)
    coordinates = layout.coordinates()
    for dim, extent in enumerate(layout.shape):
        total = total * extent + coordinates[..., dim]
    return total


def simulate(
    plan: Conversion, source: LinearLayout, target: LinearLayout, element_bytes: int
) -> Simulation:
    """The plan executed on a tile whose elements are their own numbers.

    *Raises*: `InternalError` where a plan reads what was never written, or overwrites an element
    that is still to be read.
    """
    start = elements_of(source)
    if isinstance(plan, RegisterPermutation):
        return Simulation(start[list(plan.moves)], 0, 0)
    if isinstance(plan, WarpShuffle):
        return Simulation(_shuffle(plan, start), 0, 0)
    return _RoundTrip(plan, element_bytes).run(start, target)


def _xor(bases: tuple[int, ...], count: int) -> Elements:
    """The XOR of the bases of the bits of 0, 1, … `count - 1`."""
    total: Elements = np.zeros(1, np.int64)
    for basis in bases:
        total = np.concatenate([total, total ^ basis])
    assert len(total) == count, (bases, count)
    return total


def _shuffle(plan: WarpShuffle, start: Elements) -> Elements:
    _, lanes, warps = start.shape
    lane, warp = np.arange(lanes)[:, None], np.arange(warps)[None, :]
    select = _xor(plan.select_lane, lanes)[:, None] ^ _xor(plan.select_warp, warps)[None, :]
    source = _xor(plan.source_lane, lanes)[:, None] ^ _xor(plan.source_warp, warps)[None, :]
    place = _xor(plan.place_lane, lanes)[:, None] + 0 * warp
    made: list[Elements] = []
    for registers in plan.source_registers:
        value = start[list(registers)]
        index = np.arange(len(registers))[:, None, None]
        sent = value[index ^ select, lane, warp]
        arrived = np.full((len(plan.rounds) << plan.packed_log2, lanes, warps), -1)
        for exchange in plan.rounds:
            if not exchange.moves and (source != lane).any():
                raise InternalError("a round that moves between lanes says that it does not")
            for low in range(1 << plan.packed_log2):
                word = sent[exchange.sent | low]
                arrived[exchange.received | low] = word[source ^ exchange.lane, warp]
        made.append(arrived[np.arange(len(arrived))[:, None, None] ^ place, lane, warp])
    return np.stack([made[copy][index] for copy, index in plan.results])


class _RoundTrip:
    """Shared memory, and the instructions of a round trip executed on it."""

    def __init__(self, plan: SharedRoundTrip, element_bytes: int) -> None:
        self._plan, self._size = plan, element_bytes
        self._wavefronts = self._ideal = 0

    def run(self, start: Elements, target: LinearLayout) -> Simulation:
        """Store, load, pass by pass."""
        plan, threads = self._plan, start.shape[1:]
        store, load = _Threads(plan.store, *threads), _Threads(plan.load, *threads)
        loaded = np.full((target.num_registers, *threads), -1)
        for stores, loads in zip(plan.store.passes, plan.load.passes, strict=True):
            memory = np.full(plan.bytes // self._size, -1)
            for group in stores:
                self._store(store, group, start, memory)
            for group in loads:
                for register, at in self._accesses(load, group):
                    loaded[register] = memory[at]
        if (loaded[sorted(set(plan.load.representative))] < 0).any():
            raise InternalError("a round trip loads what was not stored")
        result = loaded[list(plan.load.representative)]
        return Simulation(result, self._wavefronts, self._ideal)

    def _store(
        self, threads: _Threads, group: tuple[int, ...], start: Elements, memory: Elements
    ) -> None:
        for register, at in self._accesses(threads, group):
            where = at[threads.is_active]
            if (memory[where] >= 0).any():
                raise InternalError("a round trip stores two elements in one place")
            memory[where] = start[register][threads.is_active]

    def _accesses(
        self, threads: _Threads, group: tuple[int, ...]
    ) -> Iterator[tuple[int, Elements]]:
        """For each register of an instruction, where its threads reach shared memory."""
        first = threads.addresses(group[0])
        if threads.access.kind == "vector":
            self._count(first, len(group) * self._size)
            for place, register in enumerate(group):
                if (threads.addresses(register) != first + place * self._size).any():
                    raise InternalError("the registers of a vector are not neighbours")
                yield register, first // self._size + place
            return
        per_word = max(1, WORD_BYTES // self._size)
        for matrix in range(len(group) // per_word):
            rows = first[8 * matrix : 8 * matrix + 8]
            if (rows % VECTOR_BYTES).any():
                raise InternalError("a row of a matrix is not aligned to 16 bytes")
            self._serve(rows // VECTOR_BYTES, VECTOR_BYTES)
            for place in range(per_word):
                row, column = threads.matrix_element(place, per_word)
                register = group[matrix * per_word + place]
                yield register, rows[row] // self._size + column[:, None]

    def _count(self, first: Elements, vector_bytes: int) -> None:
        """Count the wavefronts of one instruction in every warp."""
        if (first % vector_bytes).any():
            raise InternalError(f"a vector of {vector_bytes} bytes is not aligned")
        chunk = max(WORD_BYTES, vector_bytes)
        group = min(len(first), WAVEFRONT_BYTES // chunk)
        for lane in range(0, len(first), group):
            self._serve(first[lane : lane + group] // chunk, chunk)

    def _serve(self, chunks: Elements, chunk_bytes: int) -> None:
        """One wavefront for each group of different chunks that are in the same banks."""
        banks, num_warps = WAVEFRONT_BYTES // chunk_bytes, chunks.shape[1]
        distinct = np.unique(chunks * num_warps + np.arange(num_warps))
        bank = distinct // num_warps % banks * num_warps + distinct % num_warps
        counts = np.bincount(bank, minlength=banks * num_warps)
        self._wavefronts += int(counts.reshape(banks, num_warps).max(axis=0).sum())
        self._ideal += num_warps


class _Threads:
    """The threads of a cta at one end of a round trip."""

    def __init__(self, access: Access, lanes: int, warps: int) -> None:
        self.access = access
        lane, warp = _xor(access.offsets.lane, lanes), _xor(access.offsets.warp, warps)
        self._inside = lane[:, None] ^ warp[None, :]
        free = np.arange(lanes)[:, None] & access.free_lanes
        self.is_active = (free | np.arange(warps)[None, :] & access.free_warps) == 0
        self._lane = np.arange(lanes)

    def addresses(self, register: int) -> Elements:
        """The byte that each thread reaches for a register, `[lanes, warps]`."""
        offsets = self.access.offsets
        return offsets.added[register] + (offsets.register[register] ^ self._inside)

    def matrix_element(self, place: int, per_word: int) -> tuple[Elements, Elements]:
        """The row and the column of the matrix that each lane holds at a place of its word."""
        if self.access.kind == "matrix":
            return self._lane // 4, self._lane % 4 * per_word + place
        return self._lane % 4 * 2 + place, self._lane // 4
