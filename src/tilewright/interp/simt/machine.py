"""The state of one simulated cta, or of a cluster: threads, values, mask, memories."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.interp.simt import types as t
from tilewright.interp.simt.arithmetic import LOCAL_WINDOW, SHARED_WINDOW
from tilewright.interp.simt.copies import Copies
from tilewright.interp.simt.faults import DivergentCollective, Fault, GlobalRace
from tilewright.interp.simt.global_shadow import GlobalShadow
from tilewright.interp.simt.in_flight import InFlight
from tilewright.interp.simt.memory import GlobalMemory, Region, space_of
from tilewright.interp.simt.products import Products
from tilewright.interp.simt.shared import SharedMemory
from tilewright.interp.simt.statistics import WARP, Report
from tilewright.interp.simt.synchronization import Synchronization
from tilewright.interp.simt.syntax import Site
from tilewright.interp.simt.types import LlvmType
from tilewright.interp.simt.values import Value, from_bytes, to_bytes
from tilewright.ir.op import Array


class Machine:
    """One cta's threads in lockstep, or those of the ctas of a cluster, one cta after the other.

    `values` holds what each slot of the program has, one array element per thread. `mask` says
    which threads execute the instruction at hand, None for all of them. `ranks` are the numbers
    of the threads' ctas in their cluster, and `cta` is the first one's in the grid.
    """

    def __init__(
        self, threads: int, grid: tuple[int, int, int], shared_bytes: int, cluster: int = 1
    ) -> None:
        self.cta_threads, self.cluster = threads, cluster
        self.threads = threads = threads * cluster
        self.warps = threads // WARP
        self.ranks = np.arange(threads) // self.cta_threads
        self.grid = grid
        self.cta = (0, 0, 0)
        # Slot 0 takes what instructions without a value give.
        self.values: list[Value | None] = [None]
        self.mask: Array | None = None
        self.thread_ids = np.arange(threads)
        self.report = Report()
        self.memory = GlobalMemory()
        self.synchronization = Synchronization(threads, cluster)
        self.shared = SharedMemory(shared_bytes, self.synchronization, self.report)
        self.products = Products(threads, self.shared, self.synchronization)
        self.copies = Copies(threads, self.memory, self.shared, self.synchronization, self.report)
        self.global_shadow: GlobalShadow | None = None
        self.local_bytes = 0
        self._local = self._new_local()
        self.progress = 0
        self._ticks = 0

    def start_cta(self, cta: tuple[int, int, int]) -> None:
        """Begin another program, or cluster of them: shared and local memory are fresh."""
        self.cta = cta
        self.mask = None
        self.synchronization.reset()
        self.shared.reset()
        self.products.reset()
        self.copies.reset()
        self._local = self._new_local()

    def tick(self) -> int:
        """The time, which goes on by a microsecond whenever a program looks at it."""
        self._ticks += 1000
        return self._ticks

    def _new_local(self) -> Region:
        size = self.local_bytes * self.threads
        return Region("local memory", LOCAL_WINDOW, size, is_initialized=False)

    def allocate_local(self, num_bytes: int, align: int) -> int:
        """The offset of `num_bytes` more in every thread's local memory."""
        offset = -(-self.local_bytes // align) * align
        self.local_bytes = -(-(offset + num_bytes) // 16) * 16
        return offset

    def active(self) -> Array:
        """The numbers of the threads that execute."""
        return self.thread_ids if self.mask is None else np.flatnonzero(self.mask)

    def read(self, slot: int) -> Array:
        """The value of a slot that holds no aggregate, for the threads that execute."""
        value = self.values[slot]
        if type(value) is np.ndarray:
            return value
        assert isinstance(value, InFlight), "a value is used before it is defined"
        return value.resolve(self.mask)

    def require_whole_warps(self, what: str) -> Array:
        """The warps that execute; raise when some lanes of one do not."""
        if self.mask is None:
            return np.arange(self.warps)
        lanes = self.mask.reshape(self.warps, WARP)
        exited = self.synchronization.exited.reshape(self.warps, WARP)
        some, every = lanes.any(1), (lanes | exited).all(1)
        every &= some
        if (some != every).any():
            warp = int(np.argmax(some != every))
            missing = np.flatnonzero(~lanes[warp]).tolist()
            raise Fault(DivergentCollective, f"{what} without lanes {missing} of warp {warp}")
        return np.flatnonzero(every)

    def peer_addresses(self, addresses: Array, ranks: Array) -> Array:
        """Where ctas of the cluster have what the threads' own have at shared addresses."""
        base = np.uint64(t.SHARED_BASE)
        offsets = (addresses.astype(np.uint64) - base) % np.uint64(t.CTA_WINDOW)
        return offsets + base + ranks.astype(np.uint64) * np.uint64(t.CTA_WINDOW)

    def window(self, space: int) -> int:
        """Where an address space begins among generic addresses."""
        return {t.SHARED: SHARED_WINDOW, t.LOCAL: LOCAL_WINDOW}.get(space, 0)

    # --- memory -----------------------------------------------------------------------------

    def load(self, space: int, addresses: Array, type_: LlvmType, align: int, site: Site) -> Value:
        """Load a value in every active thread; others get zeros."""
        num_bytes = t.size_bytes(type_)
        threads = self.active()
        data = self.gather(space, addresses[threads], threads, num_bytes, align, site)
        if self.mask is None:
            return from_bytes(np.ascontiguousarray(data), type_)
        everything = np.zeros((self.threads, num_bytes), np.uint8)
        everything[threads] = data
        return from_bytes(everything, type_)

    def store(
        self, space: int, addresses: Array, value: Value, type_: LlvmType, align: int, site: Site
    ) -> None:
        """Store a value in every active thread."""
        threads = self.active()
        data = to_bytes(value, type_)[threads]
        self.scatter(space, addresses[threads], threads, data, align, site)

    def _by_space(
        self, space: int, addresses: Array, access: Callable[[int, Array, Array], None]
    ) -> None:
        """Split accesses through generic pointers by where they point."""
        every = np.arange(len(addresses))
        if space != t.GENERIC:
            access({7: t.SHARED, t.CONSTANT: t.GLOBAL}.get(space, space), addresses, every)
            return
        kinds = np.where(addresses >= LOCAL_WINDOW, 5, np.where(addresses >= SHARED_WINDOW, 3, 1))
        for kind in np.unique(kinds):
            part = np.flatnonzero(kinds == kind)
            window = {5: LOCAL_WINDOW, 3: SHARED_WINDOW, 1: 0}[int(kind)]
            access(int(kind), addresses[part] - np.uint64(window), part)

    def gather(
        self, space: int, addresses: Array, threads: Array, num_bytes: int, align: int, site: Site
    ) -> Array:
        """The bytes at the addresses that `threads` read, shape [accesses, num_bytes]."""
        result = np.empty((len(addresses), num_bytes), np.uint8)

        def access(kind: int, places: Array, part: Array) -> None:
            who = threads[part]
            if kind == t.SHARED:
                result[part] = self.shared.load(places, who, num_bytes, align, site)
            elif kind == t.LOCAL:
                result[part] = self._local.gather(self._private(places, who), num_bytes, align)
            else:
                result[part] = self._read_global(places, who, num_bytes, align, site)

        self._by_space(space, addresses, access)
        return result

    def scatter(
        self, space: int, addresses: Array, threads: Array, data: Array, align: int, site: Site
    ) -> None:
        """Write rows of bytes at the addresses for `threads`."""

        def access(kind: int, places: Array, part: Array) -> None:
            who = threads[part]
            if kind == t.SHARED:
                self.shared.store(places, who, data[part], align, site)
            elif kind == t.LOCAL:
                self._local.scatter(self._private(places, who), data[part], align)
            else:
                self._write_global(places, who, data[part], align, site)

        self._by_space(space, addresses, access)
        self.progress += 1

    def _private(self, offsets: Array, threads: Array) -> Array:
        """Where the local memory of each thread lies."""
        return (
            offsets
            + threads.astype(np.uint64) * np.uint64(self.local_bytes)
            + np.uint64(LOCAL_WINDOW)
        )

    def _count(
        self, kind: str, addresses: Array, threads: Array, num_bytes: int, site: Site
    ) -> None:
        record = self.report.access(site, kind, "global", num_bytes)
        self.report.record(record, addresses, threads, num_bytes)

    def update(
        self,
        space: int,
        addresses: Array,
        num_bytes: int,
        change: Callable[[Array, Array], Array],
        site: Site,
    ) -> Array:
        """Read, change and write in one step, thread after thread where addresses are equal.

        `change` maps old bytes [n, num_bytes] and the threads' numbers to new bytes. The old
        bytes of every thread come back; inactive threads get zeros.
        """
        old = np.zeros((self.threads, num_bytes), np.uint8)
        pending = self.active()
        while len(pending):
            _, first = np.unique(addresses[pending], return_index=True)
            turn = pending[first]
            places = addresses[turn]
            kind = space if space != t.GENERIC else space_of(int(places[0]))
            if space == t.GENERIC and kind == t.SHARED:
                places = places - np.uint64(SHARED_WINDOW)
            old[turn] = self._update_once(kind, places, turn, num_bytes, change, site)
            pending = np.delete(pending, first)
        self.progress += 1
        return old

    def _update_once(
        self,
        kind: int,
        places: Array,
        threads: Array,
        num_bytes: int,
        change: Callable[[Array, Array], Array],
        site: Site,
    ) -> Array:
        if kind in (t.SHARED, 7):
            return self.shared.update(places, threads, num_bytes, change, site)
        self._count("atomic", places, threads, num_bytes, site)
        before = self.memory.gather(places, num_bytes, num_bytes)
        every = np.ones(len(threads), np.bool_)
        self.copies.stores.check_write(places, num_bytes, threads, is_sum=True)
        self._check_write(places, threads, num_bytes, every, site, is_atomic=True)
        self.memory.scatter(places, change(before, threads), num_bytes)
        return before

    # --- global memory, with the order of accesses checked on request -----------------------

    def _read_global(
        self, addresses: Array, threads: Array, num_bytes: int, align: int, site: Site
    ) -> Array:
        self._count("load", addresses, threads, num_bytes, site)
        data = self.memory.gather(addresses, num_bytes, align)
        self.copies.stores.check_read(addresses, num_bytes, threads)
        if self.global_shadow is not None:
            for region, part in self.memory.by_region(addresses):
                places = addresses[part]
                self.global_shadow.read(region, places, num_bytes, threads[part], site)
        return data

    def _write_global(
        self, addresses: Array, threads: Array, data: Array, align: int, site: Site
    ) -> None:
        num_bytes = data.shape[1]
        self._count("store", addresses, threads, num_bytes, site)
        self.copies.stores.check_write(addresses, num_bytes, threads, is_sum=False)
        if self.global_shadow is not None:
            before = self.memory.gather(addresses, num_bytes, align)
            changed = (before != data).any(1)
            self._check_write(addresses, threads, num_bytes, changed, site, is_atomic=False)
        self.memory.scatter(addresses, data, align)
        if self.global_shadow is not None:
            lost = (self.memory.gather(addresses, num_bytes, align) != data).any(1)
            if lost.any():
                self._report_lost(addresses, int(threads[int(np.argmax(lost))]), lost)

    def _report_lost(self, addresses: Array, thread: int, lost: Array) -> None:
        """Tell of a write in whose place another thread's is, by the same instruction."""
        region, _ = next(iter(self.memory.by_region(addresses[lost][:1])))
        offset = int(addresses[int(np.argmax(lost))]) - region.base
        raise Fault(
            GlobalRace,
            f"thread {thread} (warp {thread // 32}) writes offset {offset} of {region.name}, where "
            "another thread writes a different value in one instruction",
        )

    def _check_write(
        self,
        addresses: Array,
        threads: Array,
        num_bytes: int,
        changed: Array,
        site: Site,
        *,
        is_atomic: bool,
    ) -> None:
        if self.global_shadow is None:
            return
        for region, part in self.memory.by_region(addresses):
            self.global_shadow.write(
                region,
                addresses[part],
                num_bytes,
                threads[part],
                changed[part],
                site,
                is_atomic=is_atomic,
            )
