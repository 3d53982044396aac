"""The shared memory of one program, byte by byte: what it holds and who may touch it.

Tiles that share bytes overwrite each other, bytes that nothing wrote cannot be read, and what an
asynchronous copy brings is there only after the wait for it. Where tiles have their places (T2),
the order of accesses is checked as well: two of which one writes need a barrier in between, and
an asynchronous unit sees what threads wrote only after a fence and a barrier.
"""

from __future__ import annotations

from dataclasses import field
from functools import lru_cache

import numpy as np

from tilewright.interp.simt.faults import Fault, ProxyRace, SharedRace, UnfinishedOperation
from tilewright.ir.op import Array
from tilewright.layout.linear import LinearLayout
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import UninitializedRead

_UNWRITTEN, _WRITTEN, _UNDEFINED, _IN_FLIGHT = range(4)
_SHOWN, _FENCED, _HIDDEN = range(3)
_LONG_AGO = -1


@lru_cache(maxsize=256)
def element_offsets(layout: LinearLayout) -> Array:
    """The offset of every element of a shared tile, in elements, in the tile's shape."""
    offsets = np.zeros(layout.shape, np.int64)
    places = np.array(layout.register_offsets()).reshape(-1, layout.rank)
    offsets[tuple(places.T)] = np.arange(len(places))
    return offsets


@dataclass
class _Copy:
    """What a copy in flight will write: bytes, and to where."""

    places: Array
    data: Array


@dataclass
class _Phase:
    """The loads in flight that share a barrier, and how many bytes they were to bring."""

    announced: int
    copies: list[_Copy] = field(default_factory=list)


@dataclass
class RunningProduct:
    """A product in flight: the bytes it reads, its result, and what is undefined in that."""

    reads: list[Array]
    result: Array
    undefined: Array | None


@dataclass
class SharedMemory:
    """Bytes with their state; `is_ordered` says whether the order of accesses is checked."""

    is_ordered: bool
    data: Array = field(default_factory=lambda: np.zeros(0, np.uint8))
    state: Array = field(default_factory=lambda: np.zeros(0, np.uint8))
    # Barriers that had passed when a byte was last written and read.
    written: Array = field(default_factory=lambda: np.zeros(0, np.int32))
    read: Array = field(default_factory=lambda: np.zeros(0, np.int32))
    # Whether asynchronous units may miss what threads wrote, and how many products read a byte.
    hidden: Array = field(default_factory=lambda: np.zeros(0, np.uint8))
    readers: Array = field(default_factory=lambda: np.zeros(0, np.uint16))
    barriers: int = 0
    _open: list[_Copy] = field(default_factory=list)
    _groups: list[list[_Copy]] = field(default_factory=list)
    products: list[RunningProduct] = field(default_factory=list)
    # Loads by a copy engine in flight, by the number of their barrier, and stores by it; how many
    # phases of each barrier ended.
    _loads: dict[int, _Phase] = field(default_factory=dict)
    _stores: list[Array] = field(default_factory=list)
    _num_phases: dict[int, int] = field(default_factory=dict)

    # --- places ---

    def reserve(self, end: int) -> None:
        """Have at least `end` bytes."""
        missing = end - self.data.size
        if missing <= 0:
            return

        def grown(array: Array, value: int) -> Array:
            return np.concatenate([array, np.full(missing, value, array.dtype)])

        self.data, self.state = grown(self.data, 0xAA), grown(self.state, _UNWRITTEN)
        self.written, self.read = grown(self.written, _LONG_AGO), grown(self.read, _LONG_AGO)
        self.hidden, self.readers = grown(self.hidden, _SHOWN), grown(self.readers, 0)

    def forget(self, start: int, size: int) -> None:
        """Begin a new tile: what its bytes held is gone."""
        self.reserve(start + size)
        places = np.arange(start, start + size)
        self._require_idle(places, "begins in bytes that")
        self.state[start : start + size] = _UNWRITTEN

    # --- accesses of threads ---

    def write(self, places: Array, data: Array, undefined: Array | None) -> None:
        """Write bytes; `undefined` marks those of undefined values."""
        self._check_write(places)
        self.data[places] = data
        self.state[places] = _WRITTEN
        if undefined is not None:
            self.state[places[undefined]] = _UNDEFINED
        self.written[places] = self.barriers
        self.hidden[places] = _HIDDEN

    def fetch(self, places: Array, *, is_async: bool = False) -> tuple[Array, Array | None]:
        """The bytes at some places, and which of them hold undefined values; None for none.

        `is_async` is a read by an asynchronous unit.
        """
        states = self.state[places]
        if (states == _IN_FLIGHT).any():
            raise Fault(UnfinishedOperation, "reads what an asynchronous copy still brings")
        if (states == _UNWRITTEN).any():
            raise Fault(UninitializedRead, "reads shared memory that nothing has written")
        if self.is_ordered:
            if (self.written[places] == self.barriers).any():
                raise Fault(SharedRace, "reads what was written since the last barrier")
            if is_async and (self.hidden[places] != _SHOWN).any():
                raise Fault(ProxyRace, "reads what threads wrote, which no fence has shown")
        self.read[places] = self.barriers
        undefined = states == _UNDEFINED
        return self.data[places], undefined if undefined.any() else None

    def pass_through(self, start: int, size: int) -> None:
        """Elements change threads through scratch: written, a barrier, read; then it is gone."""
        self.reserve(start + size)
        places = np.arange(start, start + size)
        self._check_write(places)
        self.barrier()
        self.state[places] = _UNWRITTEN
        self.read[places] = self.barriers
        self.hidden[places] = _HIDDEN

    def _check_write(self, places: Array) -> None:
        self._require_idle(places, "writes to bytes that")
        if not self.is_ordered:
            return
        if (self.written[places] == self.barriers).any():
            raise Fault(SharedRace, "writes to what was written since the last barrier")
        if (self.read[places] == self.barriers).any():
            raise Fault(SharedRace, "writes to what was read since the last barrier")

    def _require_idle(self, places: Array, verb: str) -> None:
        if (self.state[places] == _IN_FLIGHT).any():
            raise Fault(UnfinishedOperation, f"{verb} an asynchronous copy is to write")
        if (self.readers[places] != 0).any():
            raise Fault(UnfinishedOperation, f"{verb} an asynchronous product still reads")

    # --- order ---

    def barrier(self) -> None:
        """Every warp waits: accesses before are done."""
        self.barriers += 1
        self.hidden[self.hidden == _FENCED] = _SHOWN

    def fence(self) -> None:
        """What threads wrote is seen by asynchronous units after the next barrier."""
        self.hidden[self.hidden == _HIDDEN] = _FENCED

    # --- asynchronous copies and products ---

    def start_copy(self, places: Array, data: Array) -> None:
        """Begin a copy to some bytes, which hold nothing until it is waited for."""
        self._check_write(places)
        self.state[places] = _IN_FLIGHT
        self._open.append(_Copy(places, data))

    def commit_copies(self) -> None:
        """Close the group of the copies begun so far."""
        self._groups.append(self._open)
        self._open = []

    def wait_copies(self, pending: int) -> None:
        """Let all groups but the last `pending` arrive."""
        while len(self._groups) > pending:
            for copy in self._groups.pop(0):
                self.state[copy.places] = _WRITTEN
                self.data[copy.places] = copy.data
                self.written[copy.places] = self.barriers
                self.hidden[copy.places] = _HIDDEN

    def start_product(self, product: RunningProduct) -> None:
        """Leave a product running."""
        for places in product.reads:
            self.readers[places] += 1
        self.products.append(product)

    def wait_products(self, pending: int) -> list[RunningProduct]:
        """Let all products but the last `pending` end; those that did."""
        ended: list[RunningProduct] = []
        while len(self.products) > pending:
            ended.append(self.products.pop(0))
            for places in ended[-1].reads:
                self.readers[places] -= 1
                self.read[places] = self.barriers
        return ended

    # --- copy engines ---

    def start_load(self, number: int, places: Array, data: Array, announced: int | None) -> None:
        """Begin a load for which every thread will wait at barrier `number`.

        `announced` are the bytes of all loads of its phase, which the first of them tells.
        """
        assert (announced is None) == (number in self._loads), f"two phases of barrier {number}"
        self._check_write(places)
        if self.is_ordered and (self.hidden[places] != _SHOWN).any():
            raise Fault(ProxyRace, "overwrites what threads wrote, which no fence has shown")
        self.state[places] = _IN_FLIGHT
        phase = self._loads.setdefault(number, _Phase(announced or 0))
        phase.copies.append(_Copy(places, data))

    def end_loads(self, number: int) -> int:
        """Let the loads of a phase arrive; who reads them needs no other barrier.

        How many phases ended before.
        """
        before = self._num_phases.get(number, 0)
        self._num_phases[number] = before + 1
        phase = self._loads.pop(number)
        brought = sum(copy.places.size for copy in phase.copies)
        assert brought == phase.announced, f"{brought} of {phase.announced} bytes at {number}"
        for copy in phase.copies:
            self.state[copy.places] = _WRITTEN
            self.data[copy.places] = copy.data
            self.written[copy.places] = _LONG_AGO
            self.hidden[copy.places] = _SHOWN
        return before

    def start_store(self, places: Array) -> Array:
        """Begin a store of some bytes; what they are."""
        data, _ = self.fetch(places, is_async=True)
        self.readers[places] += 1
        self._stores.append(places)
        return data

    def end_stores(self) -> None:
        """Wait in one thread until every store has read its bytes."""
        for places in self._stores:
            self.readers[places] -= 1
            self.read[places] = self.barriers
        self._stores.clear()
