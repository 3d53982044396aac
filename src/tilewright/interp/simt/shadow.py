"""Who last touched each part of shared memory, and whether the next access is ordered after it.

The shadow keeps, per granule, the last write and the last read of every thread and agent. A
granule is as wide as the narrowest access so far. Two writes of equal bytes do not race, since
layouts keep copies of one element in several threads.
"""

from __future__ import annotations

import numpy as np

from tilewright.interp.simt.clocks import Clocks
from tilewright.interp.simt.faults import Fault, ProxyRace, SharedRace
from tilewright.interp.simt.syntax import Site
from tilewright.ir.op import Array

_GENERIC, _ATOMIC, _ASYNC = 0, 1, 2
_WIDEST = 16
_FIRST_ROOM = 256
# The generation of asynchronous accesses: no barrier of threads orders what runs by itself.
_NEVER = 1 << 60


class Shadow:
    """The last accesses of `size` bytes of shared memory."""

    def __init__(self, size: int, clocks: Clocks, granule: int = _WIDEST) -> None:
        self.clocks = clocks
        self.granule = granule
        count = -(-size // granule)
        # Granules up to here were accessed.
        self._end = 0
        self.writer = np.full(count, -1, np.int32)
        self.write_clock = np.zeros(count, np.int32)
        self.write_generation = np.zeros(count, np.int64)
        self.write_kind = np.zeros(count, np.int8)
        self.write_site = np.zeros(count, np.int32)
        self.read_generation = np.zeros(count, np.int64)
        self.read_site = np.zeros(count, np.int32)
        # A row per thread and agent; it grows with what is accessed.
        self.reads = np.zeros((clocks.known.shape[1], 0), np.int32)
        self._sites: dict[int, Site] = {}

    def _line(self, site: Site) -> int:
        self._sites[site.line] = site
        return site.line

    def places(self, offsets: Array, num_bytes: int) -> Array:
        """The granules of accesses, shape [accesses, granules each]."""
        low_bits = int(np.bitwise_or.reduce(offsets)) | num_bytes | _WIDEST
        width = low_bits & -low_bits
        if width < self.granule:
            self._refine(width)
        count = num_bytes // self.granule
        first = offsets // self.granule
        self._end = max(self._end, int(first.max()) + count)
        return first[:, None] if count == 1 else first[:, None] + np.arange(count)

    def _refine(self, width: int) -> None:
        factor = self.granule // width
        for name, table in list(vars(self).items()):
            if isinstance(table, np.ndarray):
                setattr(self, name, np.repeat(table, factor, axis=-1))
        self.granule = width
        self._end *= factor

    # --- accesses of threads ----------------------------------------------------------------

    def read(self, places: Array, threads: Array, site: Site) -> None:
        """Check and record a read, `threads` being one per row of `places`."""
        self._check_writes(places, threads, site, "reads", _GENERIC)
        self._record_read(places, threads[:, None], self.clocks.clock(threads)[:, None], site)
        self.read_generation[places] = np.maximum(
            self.read_generation[places], self.clocks.generation
        )

    def write(
        self, places: Array, threads: Array, changed: Array, site: Site, *, is_atomic: bool
    ) -> None:
        """Check and record a write; `changed` says which rows differ from what was there."""
        kind = _ATOMIC if is_atomic else _GENERIC
        if changed.any():
            self._check_writes(places[changed], threads[changed], site, "writes", kind)
        self._check_reads(places, threads, site)
        self.writer[places] = threads[:, None]
        self.write_clock[places] = self.clocks.clock(threads)[:, None]
        self.write_generation[places] = self.clocks.generation
        self.write_kind[places] = kind
        self.write_site[places] = self._line(site)

    def _check_writes(
        self, places: Array, threads: Array, site: Site, verb: str, kind: int
    ) -> None:
        generations = self.write_generation[places]
        hot = generations >= self.clocks.generation
        if not hot.any():
            return
        writers = self.writer[places]
        known = self.clocks.known[threads[:, None], writers]
        bad = hot & (known < self.write_clock[places]) & (writers != threads[:, None])
        if kind == _ATOMIC:
            bad &= self.write_kind[places] != _ATOMIC
        if bad.any():
            row, column = np.argwhere(bad)[0]
            self._report_write(int(places[row, column]), int(threads[row]), verb)

    def _check_reads(self, places: Array, threads: Array, site: Site) -> None:
        hot = self.read_generation[places] >= self.clocks.generation
        if not hot.any():
            return
        rows, columns = np.nonzero(hot)
        granules, who = places[rows, columns], threads[rows]
        self._make_room()
        width = min(self.reads.shape[0], self.clocks.known.shape[1])
        last = self.reads[:width, granules].T
        bad = last > self.clocks.known[who, :width]
        bad[np.arange(len(who)), who] = False
        if bad.any():
            index, reader = np.argwhere(bad)[0]
            self._report_read(int(granules[index]), int(who[index]), int(reader))

    def _record_read(self, places: Array, columns: Array, clocks: Array, site: Site) -> None:
        self._make_room()
        self.reads[columns, places] = clocks
        self.read_site[places] = self._line(site)

    def _make_room(self) -> None:
        """Let the table of reads cover all agents and all granules that were accessed."""
        rows, columns = self.clocks.known.shape[1], self.reads.shape[1]
        if self.reads.shape[0] >= rows and columns >= self._end:
            return
        if columns < self._end:
            columns = min(max(2 * columns, self._end, _FIRST_ROOM), len(self.writer))
        more = np.zeros((rows, columns), np.int32)
        more[: self.reads.shape[0], : self.reads.shape[1]] = self.reads
        self.reads = more

    # --- accesses of the asynchronous proxy and of copies -----------------------------------

    def read_async(
        self, places: Array, issuers: Array, column: int, clock: int, site: Site
    ) -> None:
        """Check and record a read by an agent that `issuers` start together.

        What threads wrote must be ordered before all of them, and fenced for the proxy.
        """
        flat = places.ravel()
        known = self.clocks.known[issuers].min(0)
        fenced = self.clocks.fenced[issuers].min(0)
        written = flat[self.writer[flat] >= 0]
        writers, clocks = self.writer[written], self.write_clock[written]
        bad = known[writers] < clocks
        if bad.any():
            self._report_write(int(written[int(np.argmax(bad))]), int(issuers[0]), "reads")
        generic = self.write_kind[written] != _ASYNC
        own = np.where(generic, self.clocks.fence_columns(writers), 0)
        unfenced = generic & (fenced[own] < clocks)
        if unfenced.any():
            self._report_unfenced(int(written[int(np.argmax(unfenced))]))
        self._record_read(flat, np.full(len(flat), column), np.full(len(flat), clock), site)
        self.read_generation[flat] = _NEVER

    def write_async(
        self,
        places: Array,
        issuers: Array,
        columns: Array,
        clocks: Array,
        site: Site,
        *,
        is_generic: bool = False,
    ) -> None:
        """Check and record writes by agents: row i of `places` by `columns[i]`.

        `issuers` has one thread per row. `is_generic`: by the proxy of plain stores.
        """
        self._check_writes(places, issuers, site, "writes", _ASYNC)
        self._check_reads(places, issuers, site)
        self.writer[places] = columns[:, None]
        self.write_clock[places] = clocks[:, None]
        self.write_generation[places] = _NEVER
        self.write_kind[places] = _GENERIC if is_generic else _ASYNC
        self.write_site[places] = self._line(site)

    # --- reports ----------------------------------------------------------------------------

    def _report_write(self, granule: int, thread: int, verb: str) -> None:
        other = self._sites[int(self.write_site[granule])]
        raise Fault(
            SharedRace,
            f"{self._name(thread)} {verb} shared offset {granule * self.granule}, which "
            f"{self._name(int(self.writer[granule]))} wrote with no wait or barrier in between\n"
            f"  the write: {other}",
        )

    def _report_read(self, granule: int, thread: int, reader: int) -> None:
        other = self._sites[int(self.read_site[granule])]
        raise Fault(
            SharedRace,
            f"{self._name(thread)} writes shared offset {granule * self.granule}, which "
            f"{self._name(reader)} read with no wait or barrier in between\n  the read: {other}",
        )

    def _report_unfenced(self, granule: int) -> None:
        other = self._sites[int(self.write_site[granule])]
        raise Fault(
            ProxyRace,
            f"the asynchronous proxy reads shared offset {granule * self.granule}, which "
            f"{self._name(int(self.writer[granule]))} wrote without fence.proxy.async behind\n"
            f"  the write: {other}",
        )

    def _name(self, column: int) -> str:
        threads = self.clocks.threads
        if column < threads:
            return f"thread {column} (warp {column // 32})"
        key, first = max(
            (item for item in self.clocks.agents.items() if item[1] <= column),
            key=lambda item: item[1],
        )
        place = f" {column - first}" if key == "cp.async of thread" else ""
        return f"an asynchronous operation ({key}{place})"
