"""Asynchronous copies: of single threads (cp.async) and in bulk, also of tensor boxes."""

from __future__ import annotations

import numpy as np

from tilewright.interp.simt.atomics import change_function
from tilewright.interp.simt.bulk_stores import BulkStores
from tilewright.interp.simt.faults import Fault
from tilewright.interp.simt.global_shadow import GlobalShadow
from tilewright.interp.simt.memory import GlobalMemory, check_alignment
from tilewright.interp.simt.shared import SharedMemory
from tilewright.interp.simt.statistics import Report
from tilewright.interp.simt.synchronization import Synchronization
from tilewright.interp.simt.syntax import Site
from tilewright.interp.simt.tensor_map import MAP_BYTES, BoxedArray
from tilewright.ir.op import Array
from tilewright.support.errors import KernelFault

_CHUNK = 16


class Copies:
    """The copies that the threads of a cta have started.

    Data moves when a copy starts; until the wait that makes it visible, the clocks of its agent
    say that nobody may touch it.
    """

    def __init__(
        self,
        threads: int,
        memory: GlobalMemory,
        shared: SharedMemory,
        synchronization: Synchronization,
        report: Report,
    ) -> None:
        self._threads = threads
        self._memory = memory
        self._shared = shared
        self._synchronization = synchronization
        self._report = report
        self.tensor_maps: dict[int, BoxedArray] = {}
        self._acquired: set[int] = set()
        self._users: dict[int, list[tuple[int, int]]] = {}
        self.stores = BulkStores(synchronization.clocks, memory)
        self.global_shadow: GlobalShadow | None = None
        self.reset()

    def reset(self) -> None:
        """Begin another cta."""
        self._committed = np.zeros(self._threads, np.int64)
        self._bulk_committed = np.zeros(self._threads, np.int64)
        self._bulk_started: dict[int, int] = {}
        self._users.clear()
        self.stores.reset()

    # --- copies of single threads -----------------------------------------------------------

    def _column(self) -> int:
        return self._synchronization.clocks.copies()

    def start(
        self, targets: Array, sources: Array, sizes: Array, width: int, threads: Array, site: Site
    ) -> None:
        """Copy `width` bytes per thread, of which `sizes` are read and the rest become zero."""
        check_alignment(targets, width)
        data = np.zeros((len(threads), width), np.uint8)
        for size in np.unique(sizes):
            part = np.flatnonzero(sizes == size)
            if size > 0:
                align = int(size) & -int(size)
                data[part, : int(size)] = self._memory.gather(sources[part], int(size), align)
        self._count(targets, sources, sizes, width, threads, site)
        columns = self._column() + threads
        clocks = self._committed[threads] + 1
        self._shared.write_tile(targets, data, threads, (columns, clocks), site, is_generic=True)
        timeline = self._synchronization.timeline
        if timeline is not None:
            timeline.start_copy(threads, int(sizes.sum()), site)

    def _count(
        self, targets: Array, sources: Array, sizes: Array, width: int, threads: Array, site: Site
    ) -> None:
        written = self._report.access(site, "copy", "shared", width)
        self._report.record(written, targets, threads, width)
        reading = sizes > 0
        if reading.any():
            read = self._report.access(site, "copy", "global", width)
            self._report.record(read, sources[reading], threads[reading], width)

    def commit(self, threads: Array) -> None:
        """Close the group of each thread's copies."""
        self._committed[threads] += 1
        if self._synchronization.timeline is not None:
            self._synchronization.timeline.commit_copies(threads)

    def wait(self, threads: Array, pending: int) -> None:
        """Wait until at most `pending` of each thread's groups run."""
        clocks = self._synchronization.clocks
        columns = self._column() + threads
        done = np.maximum(self._committed[threads] - pending, 0)
        clocks.known[threads, columns] = np.maximum(clocks.known[threads, columns], done)
        if self._synchronization.timeline is not None:
            self._synchronization.timeline.wait_for_copies(threads, pending)

    def wait_all(self, threads: Array) -> None:
        """Wait for all copies of each thread, committed or not."""
        self.commit(threads)
        self.wait(threads, 0)

    def arrive_when_done(self, address: int, threads: Array, *, counts: bool) -> None:
        """Arrive at an mbarrier when the copies so far are done; `counts` raises its count too."""
        barrier = self._synchronization.memory_barrier(address)
        if counts:
            barrier.pending += len(threads)
        clocks = self._synchronization.clocks
        saved = clocks.known[threads].copy()
        timeline = self._synchronization.timeline
        times = [] if timeline is None else list(timeline.now)
        self.wait_all(threads)
        self._synchronization.arrive_at(address, threads, 0, 1)
        if timeline is not None:
            timeline.now = times
        columns = self._column() + threads
        clocks.known[threads, columns] = saved[np.arange(len(threads)), columns]

    # --- copies in bulk ---------------------------------------------------------------------

    def tensor_map(self, address: int) -> BoxedArray:
        """The tensor map at an address: one of the launch, or one that the program made."""
        found = self.tensor_maps.get(address)
        if found is not None:
            return found
        data = self._memory.gather(np.array([address], np.uint64), MAP_BYTES, 64)
        if address not in self._acquired:
            raise Fault(
                KernelFault,
                f"the tensor map at {address:#x} is used without "
                "fence.proxy.tensormap::generic.acquire",
            )
        return BoxedArray.decode(data.tobytes())

    def acquire_maps(self, addresses: Array, threads: Array) -> None:
        """Make tensor maps that generic stores wrote visible to copies.

        Copies that used what was there before have to be known to be done.
        """
        known = self._synchronization.clocks.known
        for address, thread in zip(addresses.tolist(), threads.tolist(), strict=True):
            for column, clock in self._users.pop(address, ()):
                if known[thread, column] < clock:
                    raise Fault(
                        KernelFault,
                        f"the tensor map at {address:#x} is made anew by thread {thread} while "
                        "copies that use it run",
                    )
            self._acquired.add(address)

    def _use_map(self, address: int, column: int, clock: int) -> None:
        """Note a copy that uses a tensor map of the program until its agent is done."""
        if address in self._acquired:
            self._users.setdefault(address, []).append((column, clock))

    def load_box(
        self,
        target: int,
        barrier: int,
        map_address: int,
        coordinates: tuple[int, ...],
        thread: int,
        site: Site,
    ) -> None:
        """Copy a box to shared memory; its bytes complete on the mbarrier."""
        tensor_map = self.tensor_map(map_address)
        self._check_box(tensor_map, target)
        data = self._read_box(tensor_map, coordinates, thread)
        agent = self._land(
            tensor_map.chunk_addresses(target), data.reshape(-1, _CHUNK), barrier, thread, site
        )
        self._use_map(map_address, *agent)

    @staticmethod
    def _check_box(tensor_map: BoxedArray, address: int) -> None:
        check_alignment(np.array([address], np.uint64), 128)
        row = tensor_map.box[-1] * tensor_map.dtype.itemsize
        if tensor_map.swizzle_bytes and row != tensor_map.swizzle_bytes:
            raise Fault(
                KernelFault,
                f"boxes with rows of {row} bytes and a swizzle of {tensor_map.swizzle_bytes} are "
                "not simulated",
            )

    def _read_box(self, tensor_map: BoxedArray, coordinates: tuple[int, ...], thread: int) -> Array:
        """The bytes of a box, with its padding outside of the array."""
        addresses, inside = tensor_map.element_addresses(coordinates)
        size = tensor_map.dtype.itemsize
        data = np.tile(tensor_map.padding(), (len(addresses), 1))
        if inside.any():
            self._check_read(addresses[inside], size, thread)
            data[inside] = self._memory.gather(addresses[inside], size, size)
        return data.reshape(-1)

    def _check_read(self, addresses: Array, size: int, thread: int) -> None:
        self.stores.check_read(addresses, size, np.full(len(addresses), thread))

    def _land(
        self, addresses: Array, rows: Array, barrier: int, thread: int, site: Site
    ) -> tuple[int, int]:
        """Write rows of 16 bytes whose arrival the mbarrier announces; their agent and clock."""
        clocks = self._synchronization.clocks
        column = clocks.agent(f"copies that the mbarrier at {barrier} waits for")
        clock = clocks.tick_agent(column)
        every = np.ones(len(addresses), np.int64)
        self._shared.write_tile(
            addresses, rows, every * thread, (every * column, every * clock), site
        )
        timeline = self._synchronization.timeline
        if timeline is not None:
            timeline.load(barrier, thread, rows.size, site)
        self._synchronization.complete_bytes(barrier, rows.size, column, clock)
        return column, clock

    def load_bytes(
        self, target: int, barrier: int, source: int, size: int, thread: int, site: Site
    ) -> None:
        """Copy contiguous bytes to shared memory."""
        check_alignment(np.array([target, source, size], np.uint64), _CHUNK)
        steps = np.arange(0, size, _CHUNK)
        self._check_read((source + steps).astype(np.uint64), _CHUNK, thread)
        rows = self._memory.gather((source + steps).astype(np.uint64), _CHUNK, _CHUNK)
        self._land((target + steps).astype(np.uint64), rows, barrier, thread, site)

    def store_box(
        self,
        source: int,
        map_address: int,
        coordinates: tuple[int, ...],
        operation: str,
        thread: int,
        site: Site,
    ) -> None:
        """Copy a box from shared memory, or reduce it into global memory."""
        tensor_map = self.tensor_map(map_address)
        self._check_box(tensor_map, source)
        data = self._take(tensor_map.chunk_addresses(source), thread, site)
        column = self._synchronization.clocks.agent(f"bulk copies of thread {thread}")
        self._use_map(map_address, column, self._bulk_started[thread])
        elements = data.reshape(-1, tensor_map.dtype.itemsize)
        places, inside = tensor_map.element_addresses(coordinates)
        if not inside.any():
            return
        addresses, new = places[inside], elements[inside]
        if operation:
            new = self._reduced(tensor_map.dtype, addresses, new, operation)
        size = tensor_map.dtype.itemsize
        self._check_order(addresses, new, thread, is_sum=bool(operation))
        self._memory.scatter(addresses, new, size)
        clock = self._bulk_started[thread]
        self.stores.start(addresses, size, thread, clock, site, is_sum=bool(operation))

    def store_bytes(self, target: int, source: int, size: int, thread: int, site: Site) -> None:
        """Copy contiguous bytes from shared memory."""
        check_alignment(np.array([target, source, size], np.uint64), _CHUNK)
        steps = np.arange(0, size, _CHUNK)
        data = self._take((source + steps).astype(np.uint64), thread, site)
        places = (target + steps).astype(np.uint64)
        self._check_order(places, data, thread, is_sum=False)
        self._memory.scatter(places, data, _CHUNK)
        self.stores.start(places, _CHUNK, thread, self._bulk_started[thread], site)

    def _check_order(self, addresses: Array, data: Array, thread: int, *, is_sum: bool) -> None:
        """Hold what the engine changes to be ordered behind what threads did to it, on request."""
        if self.global_shadow is None:
            return
        size = data.shape[1]
        changed = (self._memory.gather(addresses, size, size) != data).any(1)
        for region, part in self._memory.by_region(addresses):
            own = addresses[part][changed[part]]
            self.global_shadow.check_bulk(region, own, size, thread, is_atomic=is_sum)

    def _take(self, addresses: Array, thread: int, site: Site) -> Array:
        """Read rows of 16 bytes, in flight until the thread's bulk group is done."""
        clocks = self._synchronization.clocks
        column = clocks.agent(f"bulk copies of thread {thread}")
        clock = int(self._bulk_committed[thread]) + 1
        self._bulk_started[thread] = clock
        return self._shared.read_tile(addresses, _CHUNK, np.array([thread]), (column, clock), site)

    def _reduced(self, dtype: np.dtype, addresses: Array, new: Array, operation: str) -> Array:
        kinds = {"f": "f", "i": "s", "u": "u", "V": "bf", "b": "u"}
        kind = "bf16" if dtype.name == "bfloat16" else f"{kinds[dtype.kind]}{dtype.itemsize * 8}"
        width = f"u{dtype.itemsize}"
        old = np.ascontiguousarray(self._memory.gather(addresses, dtype.itemsize, dtype.itemsize))
        change = change_function(operation, kind)
        after = change(old.view(width)[:, 0], np.ascontiguousarray(new).view(width)[:, 0])
        return np.ascontiguousarray(after)[:, None].view(np.uint8)

    def commit_bulk(self, threads: Array) -> None:
        """Close the group of each thread's bulk copies out of shared memory."""
        self._bulk_committed[threads] += 1

    def wait_bulk(self, threads: Array, pending: int, *, is_complete: bool) -> None:
        """Wait until at most `pending` of each thread's bulk groups run.

        Where it `is_complete` they are in memory, and else their tiles have been read.
        """
        clocks = self._synchronization.clocks
        for thread in threads:
            column = clocks.agents.get(f"bulk copies of thread {thread}")
            done = int(self._bulk_committed[thread]) - pending
            if column is not None and done > 0:
                clocks.complete(np.array([thread]), column, done)
            if column is not None and done > 0 and is_complete:
                self.stores.complete(int(thread), done)

    def check_exit(self, threads: Array) -> None:
        """Raise when a thread ends while its bulk copies still read shared memory."""
        clocks = self._synchronization.clocks
        for thread in set(self._bulk_started).intersection(threads.tolist()):
            column = clocks.agents[f"bulk copies of thread {thread}"]
            if clocks.known[thread, column] < self._bulk_started[thread]:
                raise Fault(
                    KernelFault,
                    f"thread {thread} ends while its bulk copies read shared memory: "
                    "cp.async.bulk.wait_group.read 0 is missing",
                )
