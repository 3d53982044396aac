"""The shared memory of one program: its bytes, its barriers, and what runs asynchronously.

Tiles that share bytes overwrite each other, and what an asynchronous copy brings is there only
after the wait for it. Where tiles have their places (T2), the order of accesses is checked as
well, between the warps of a role and between roles. A program without roles is one role.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import lru_cache

import numpy as np

from tilewright.interp.role_barriers import Copy, MemoryBarrier, Turns
from tilewright.interp.role_clocks import NOTHING
from tilewright.interp.shared_bytes import SharedBytes
from tilewright.interp.simt.faults import Fault, UnfinishedOperation
from tilewright.ir.op import Array
from tilewright.layout.linear import LinearLayout
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import KernelFault


@lru_cache(maxsize=256)
def element_offsets(layout: LinearLayout) -> Array:
    """The offset of every element of a shared tile, in elements, in the tile's shape."""
    offsets = np.zeros(layout.shape, np.int64)
    places = np.array(layout.register_offsets()).reshape(-1, layout.rank)
    offsets[tuple(places.T)] = np.arange(len(places))
    return offsets


@dataclass
class RunningProduct:
    """A product in flight: the bytes it reads, its result, and what is undefined in that."""

    reads: list[Array]
    result: Array
    undefined: Array | None


@dataclass
class _Unfinished:
    """What a role has started and not waited for: copies in groups, products, stores."""

    copies: list[Copy] = field(default_factory=list)
    groups: list[list[Copy]] = field(default_factory=list)
    products: list[RunningProduct] = field(default_factory=list)
    stores: list[Array] = field(default_factory=list)


class SharedMemory(SharedBytes):
    """The bytes of a program, with its barriers and what runs asynchronously.

    `num_arrivals` goes on with every arrival and load that an mbarrier waits for.
    """

    def __init__(self, is_ordered: bool, roles: tuple[str, ...] = ("the program",)) -> None:
        super().__init__(is_ordered, roles)
        self._work: dict[int, _Unfinished] = {}
        self._memory_barriers: dict[object, MemoryBarrier] = {}
        self._turns: dict[str, Turns] = {}
        self.num_arrivals = 0

    @property
    def products(self) -> list[RunningProduct]:
        """The products of the acting role that run, in order."""
        return self._unfinished.products

    @property
    def _unfinished(self) -> _Unfinished:
        return self._work.setdefault(self.role, _Unfinished())

    # --- turns ---

    def make_turns(self, name: str, num_replicas: int) -> None:
        """Have turns of so many replicas, if there are none of the name."""
        self._turns.setdefault(name, Turns.of(name, num_replicas))

    def take_turn(self, name: str, replica: int) -> bool:
        """Whether it is a replica's turn; the role then comes after who passed it."""
        told = self._turns[name].take(replica)
        if told is not None:
            self.clocks.acquire(self.role, told)
        return told is not None

    def pass_turn(self, name: str, replica: int) -> None:
        """It is the next replica's turn."""
        self.num_arrivals += 1
        self._turns[name].hand_on(replica, self.clocks.release(self.role))

    # --- asynchronous copies and products ---

    def start_copy(
        self, places: Array, data: Array, again: Callable[[], Array] | None = None
    ) -> None:
        """Begin a copy to some bytes, which hold nothing until it is waited for.

        `again` reads its data once more: whether they are the same at its end.
        """
        self.expect(places)
        self._unfinished.copies.append(Copy(places, data, again))

    def commit_copies(self) -> None:
        """Close the group of the copies begun so far."""
        own = self._unfinished
        own.groups.append(own.copies)
        own.copies = []

    def wait_copies(self, pending: int) -> None:
        """Let all groups but the last `pending` arrive."""
        groups = self._unfinished.groups
        while len(groups) > pending:
            for copy in groups.pop(0):
                self.bring(copy.places, copy.brought(), self.role)

    def start_product(self, product: RunningProduct) -> None:
        """Leave a product running."""
        for places in product.reads:
            self.start_reading(places)
        self.products.append(product)

    def wait_products(self, pending: int) -> list[RunningProduct]:
        """Let all products but the last `pending` end; those that did."""
        ended: list[RunningProduct] = []
        while len(self.products) > pending:
            ended.append(self.products.pop(0))
            for places in ended[-1].reads:
                self.end_reading(places)
        return ended

    # --- mbarriers ---

    def make_barrier(self, name: object, count: int) -> None:
        """Have an mbarrier of so many arrivals a phase."""
        self._memory_barriers[name] = MemoryBarrier(name, count)

    def arrive(self, name: object, num_bytes: int = 0, *, is_whole: bool = True) -> None:
        """Arrive at an mbarrier and announce bytes; `is_whole`: all warps of the role have."""
        barrier = self._ready_barrier(name)
        self.num_arrivals += 1
        barrier.arrive(self.clocks.release(self.role, is_whole=is_whole), num_bytes)

    def load(
        self,
        name: object,
        places: Array,
        data: Array,
        again: Callable[[], Array] | None = None,
    ) -> None:
        """Begin a load by a copy engine, which an mbarrier waits for; `again` as for copies."""
        barrier = self._ready_barrier(name)
        self.expect(places, is_async=True)
        self.num_arrivals += 1
        barrier.copies.append(Copy(places, data, again))

    def arrive_behind_copies(self, name: object) -> None:
        """Arrive at an mbarrier when the copies that the acting role has begun are there."""
        own = self._unfinished
        copies, own.copies = own.copies, []
        self.arrive(name, sum(copy.places.size for copy in copies))
        barrier = self._memory_barriers[name]
        barrier.copies += [Copy(c.places, c.data, c.again, by_threads=True) for c in copies]

    def has_ended(self, name: object, phase: int) -> bool:
        """Whether a phase (counted from 0) of an mbarrier has; the role then comes after it."""
        told = self._ready_barrier(name).test(phase)
        if told is not None:
            self.clocks.acquire(self.role, told)
        return told is not None

    def is_loading(self) -> bool:
        """Whether a load was begun that nobody has waited for."""
        barriers = self._memory_barriers.values()
        return any(barrier.copies for barrier in barriers if isinstance(barrier.name, int))

    def _ready_barrier(self, name: object) -> MemoryBarrier:
        """An mbarrier, its phase ended if it has all it waits for."""
        barrier = self._memory_barriers.get(name)
        if barrier is None:
            raise Fault(KernelFault, f"mbarrier {name} was never made")
        if barrier.is_full:
            self._end_phase(barrier)
        return barrier

    def _end_phase(self, barrier: MemoryBarrier) -> None:
        column, told = self.clocks.column(barrier.name), NOTHING
        if any(copy.by_threads for copy in barrier.copies):
            written = self.clocks.copies(barrier.name)
            for copy in barrier.copies:
                if copy.by_threads:
                    self.bring(copy.places, copy.brought(), written)
            told = self.clocks.end_event(written)
        for copy in barrier.copies:
            if not copy.by_threads:
                self.bring(copy.places, copy.brought(), column)
        barrier.end_phase(self.clocks.end_event(column).joined(told))

    # --- mbarriers of one slot, whose loads one role starts and waits for ---

    def start_load(
        self,
        number: int,
        places: Array,
        data: Array,
        announced: int | None,
        again: Callable[[], Array] | None = None,
    ) -> None:
        """Begin a load for which every thread will wait at barrier `number`.

        `announced` are the bytes of all loads of its phase, which the first of them tells.
        """
        if number not in self._memory_barriers:
            self.make_barrier(number, 1)
        barrier = self._memory_barriers[number]
        assert (announced is None) == (barrier.arrived == 1), f"two phases of barrier {number}"
        if announced is not None:
            self.arrive(number, announced, is_whole=False)
        self.load(number, places, data, again)

    def end_loads(self, number: int) -> int:
        """Let the loads of a phase arrive; how many phases ended before."""
        barrier = self._memory_barriers[number]
        before = barrier.num_ended
        whole = f"{barrier.brought} of {barrier.announced} bytes at {number}"
        assert self.has_ended(number, before), whole
        return before

    def start_store(self, places: Array) -> Array:
        """Begin a store of some bytes; what they are."""
        data, _ = self.fetch(places, is_async=True)
        self.start_reading(places)
        self._unfinished.stores.append(places)
        return data

    def require_idle(self) -> None:
        """What the acting role has started is done. *Raises*: Fault where something still runs."""
        own = self._unfinished
        copies = [*own.groups, *own.copies]
        running = {"a product": own.products, "a store": own.stores, "a copy": copies}
        for what, left in running.items():
            if left:
                raise Fault(UnfinishedOperation, f"the role ends while {what} still runs")

    def end_stores(self, pending: int = 0) -> None:
        """Wait in one thread until all stores but the last `pending` have read their bytes."""
        stores = self._unfinished.stores
        while len(stores) > pending:
            self.end_reading(stores.pop(0))
