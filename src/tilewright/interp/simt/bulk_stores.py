"""What the copy engine stores to global memory, until somebody knows that it is there.

A store by the engine is in memory when its thread has waited for its group to be complete (a wait
`.read` says that shared memory was read, no more). Others know it who are ordered after that wait.
Until then nobody reads its bytes, and what threads write there may be lost; sums of both keep.

*Source*: PTX ISA 8.8, 9.7.9.25.3 "cp.async.bulk.wait_group".
"""

from __future__ import annotations

from collections import deque

import numpy as np

from tilewright.interp.simt.clocks import Clocks
from tilewright.interp.simt.faults import Fault, GlobalRace
from tilewright.interp.simt.memory import GlobalMemory
from tilewright.interp.simt.syntax import Site
from tilewright.ir.op import Array
from tilewright.support.dataclass import dataclass

# Chosen, not measured: so many stores are looked at by each read. What is forgotten is taken to
# be in memory, so a race may escape and none is reported that is not there.
_MOST_STORES = 64


@dataclass(frozen=True)
class _Store:
    """One store: the clock of its agent, the sorted bytes that it writes, and where it stands.

    `is_sum`: it reduces into memory instead.
    """

    column: int
    clock: int
    places: Array
    thread: int
    site: Site
    is_sum: bool


class BulkStores:
    """The last stores of the running program's threads by the copy engine."""

    def __init__(self, clocks: Clocks, memory: GlobalMemory) -> None:
        self._clocks = clocks
        self._memory = memory
        self._stores: deque[_Store] = deque(maxlen=_MOST_STORES)

    def reset(self) -> None:
        """Begin another program: the end of one lets its stores end."""
        self._stores.clear()

    def start(
        self,
        addresses: Array,
        num_bytes: int,
        thread: int,
        clock: int,
        site: Site,
        *,
        is_sum: bool = False,
    ) -> None:
        """Note elements that a store of a thread writes, in the group `clock` of the thread."""
        places = np.unique(_bytes_of(addresses, num_bytes))
        self._stores.append(_Store(self._column(thread), clock, places, thread, site, is_sum))

    def complete(self, thread: int, clock: int) -> None:
        """Order a thread after its own stores up to a group, which are in memory."""
        self._clocks.complete(np.array([thread]), self._column(thread), clock)

    def check_read(self, addresses: Array, num_bytes: int, threads: Array) -> None:
        """Hold threads that read elements to stores that they know to have ended.

        *Raises*: a Fault of `GlobalRace`.
        """
        for store in self._stores:
            self._check(store, addresses, num_bytes, threads, "reads")

    def check_write(
        self, addresses: Array, num_bytes: int, threads: Array, *, is_sum: bool
    ) -> None:
        """Hold threads that write elements, or add to them, to stores that they know have ended.

        *Raises*: a Fault of `GlobalRace`.
        """
        for store in self._stores:
            if not (is_sum and store.is_sum):
                self._check(store, addresses, num_bytes, threads, "writes")

    def _check(
        self, store: _Store, addresses: Array, num_bytes: int, threads: Array, verb: str
    ) -> None:
        if not len(addresses):
            return
        low, high = int(addresses.min()), int(addresses.max()) + num_bytes
        if int(store.places[-1]) < low or int(store.places[0]) >= high:
            return
        late = self._clocks.known[threads, store.column] < store.clock
        if not late.any():
            return
        met = np.isin(_bytes_of(addresses[late], num_bytes), store.places).any(1)
        if met.any():
            which = int(np.argmax(met))
            self._report(store, int(addresses[late][which]), int(threads[late][which]), verb)

    def _column(self, thread: int) -> int:
        return self._clocks.agent(f"bulk stores of thread {thread}")

    def _report(self, store: _Store, address: int, thread: int, verb: str) -> None:
        region, _ = self._memory.by_region(np.array([address], np.uint64))[0]
        raise Fault(
            GlobalRace,
            f"thread {thread} (warp {thread // 32}) {verb} offset {address - region.base} of "
            f"{region.name}, which a store by the copy engine of thread {store.thread} (warp "
            f"{store.thread // 32}) writes that nobody has waited for\n"
            f"  the store: {store.site}",
            "the thread that stores waits with cp.async.bulk.wait_group 0; a barrier follows",
        )


def _bytes_of(addresses: Array, num_bytes: int) -> Array:
    """The addresses of every byte of elements, shape [elements, num_bytes]."""
    return addresses.astype(np.int64)[:, None] + np.arange(num_bytes)
