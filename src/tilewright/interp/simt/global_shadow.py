"""Whether the threads of one program access global memory in an order.

Programs are not compared with each other: they run one after the other. Of each granule the
shadow keeps the last writer and two readers; a third reader that neither of them is ordered
after is forgotten, so a race may escape, and none is reported that is not there.
"""

from __future__ import annotations

import numpy as np

from tilewright.interp.simt.clocks import Clocks
from tilewright.interp.simt.faults import Fault, GlobalRace
from tilewright.interp.simt.memory import Region
from tilewright.interp.simt.syntax import Site
from tilewright.ir.op import Array

_WIDEST = 16
_PLAIN, _ATOMIC = 0, 1


class _Tables:
    """The last accesses of one region."""

    def __init__(self, size: int) -> None:
        self.granule = _WIDEST
        count = -(-size // _WIDEST) + 1
        self.writer = np.zeros(count, np.int16)
        self.write_clock = np.zeros(count, np.int32)
        self.write_epoch = np.zeros(count, np.int32)
        self.write_kind = np.zeros(count, np.int8)
        self.write_line = np.zeros(count, np.int32)
        self.readers = np.zeros((count, 2), np.int16)
        self.read_clocks = np.zeros((count, 2), np.int32)
        self.read_epoch = np.zeros(count, np.int32)
        self.read_line = np.zeros(count, np.int32)

    def places(self, offsets: Array, num_bytes: int) -> Array:
        """The granules of accesses, shape [accesses, granules each]."""
        low_bits = int(np.bitwise_or.reduce(offsets)) | num_bytes | _WIDEST
        width = low_bits & -low_bits
        if width < self.granule:
            factor = self.granule // width
            for name, table in list(vars(self).items()):
                if isinstance(table, np.ndarray):
                    setattr(self, name, np.repeat(table, factor, axis=0))
            self.granule = width
        first = offsets // self.granule
        return first[:, None] + np.arange(num_bytes // self.granule)


class GlobalShadow:
    """The last accesses of global memory by the threads of the running program."""

    def __init__(self, clocks: Clocks) -> None:
        self._clocks = clocks
        self._tables: dict[int, _Tables] = {}
        self._sites: dict[int, Site] = {}

    def _find(self, region: Region, addresses: Array, num_bytes: int) -> tuple[_Tables, Array]:
        tables = self._tables.get(region.base)
        if tables is None:
            tables = self._tables[region.base] = _Tables(region.size)
        offsets = addresses.view(np.int64) - region.base
        return tables, tables.places(offsets, num_bytes)

    def read(
        self, region: Region, addresses: Array, num_bytes: int, threads: Array, site: Site
    ) -> None:
        """Check and record reads."""
        tables, places = self._find(region, addresses, num_bytes)
        who = np.broadcast_to(threads[:, None], places.shape)
        self._check_writer(region, tables, places, who, "reads", _PLAIN)
        self._record_read(tables, places, who)
        tables.read_line[places] = site.line
        self._sites[site.line] = site

    def _record_read(self, tables: _Tables, places: Array, who: Array) -> None:
        known = self._clocks.known
        epoch = self._clocks.generation
        fresh = tables.read_epoch[places] != epoch
        clocks = known[who, who]
        slot = np.zeros(places.shape, np.int64)
        first = tables.readers[places, 0]
        keeps_first = ~fresh & (first != who) & (known[who, first] < tables.read_clocks[places, 0])
        slot[keeps_first] = 1
        tables.read_clocks[places[fresh], 1] = 0
        tables.readers[places, slot] = who
        tables.read_clocks[places, slot] = clocks
        tables.read_epoch[places] = epoch

    def write(
        self,
        region: Region,
        addresses: Array,
        num_bytes: int,
        threads: Array,
        changed: Array,
        site: Site,
        *,
        is_atomic: bool,
    ) -> None:
        """Check and record writes; `changed` says which rows differ from what was there."""
        tables, places = self._find(region, addresses, num_bytes)
        who = np.broadcast_to(threads[:, None], places.shape)
        kind = _ATOMIC if is_atomic else _PLAIN
        self._check_writer(region, tables, places[changed], who[changed], "writes", kind)
        self._check_readers(region, tables, places, who)
        tables.writer[places] = who
        tables.write_clock[places] = self._clocks.known[who, who]
        tables.write_epoch[places] = self._clocks.generation
        tables.write_kind[places] = kind
        tables.write_line[places] = site.line
        self._sites[site.line] = site

    def check_bulk(
        self,
        region: Region,
        addresses: Array,
        num_bytes: int,
        thread: int,
        *,
        is_atomic: bool,
    ) -> None:
        """Check a write by the copy engine for a thread; `BulkStores` keeps it for later ones."""
        if not len(addresses):
            return
        tables, places = self._find(region, addresses, num_bytes)
        who = np.broadcast_to(np.int64(thread), places.shape)
        kind = _ATOMIC if is_atomic else _PLAIN
        self._check_writer(region, tables, places, who, "writes", kind)
        self._check_readers(region, tables, places, who)

    def _check_writer(
        self, region: Region, tables: _Tables, places: Array, who: Array, verb: str, kind: int
    ) -> None:
        hot = tables.write_epoch[places] == self._clocks.generation
        if not hot.any():
            return
        writers = tables.writer[places]
        bad = hot & (writers != who)
        bad &= self._clocks.known[who, writers] < tables.write_clock[places]
        if kind == _ATOMIC:
            bad &= tables.write_kind[places] != _ATOMIC
        if bad.any():
            row, column = np.argwhere(bad)[0]
            place = int(places[row, column])
            line = int(tables.write_line[place])
            self._report(
                region,
                tables,
                place,
                int(who[row, column]),
                verb,
                int(writers[row, column]),
                "wrote",
                line,
            )

    def _check_readers(self, region: Region, tables: _Tables, places: Array, who: Array) -> None:
        hot = tables.read_epoch[places] == self._clocks.generation
        if not hot.any():
            return
        for slot in (0, 1):
            readers = tables.readers[places, slot]
            bad = hot & (readers != who)
            bad &= self._clocks.known[who, readers] < tables.read_clocks[places, slot]
            if bad.any():
                row, column = np.argwhere(bad)[0]
                place = int(places[row, column])
                line = int(tables.read_line[place])
                self._report(
                    region,
                    tables,
                    place,
                    int(who[row, column]),
                    "writes",
                    int(readers[row, column]),
                    "read",
                    line,
                )

    def _report(
        self,
        region: Region,
        tables: _Tables,
        place: int,
        thread: int,
        verb: str,
        other: int,
        other_verb: str,
        line: int,
    ) -> None:
        raise Fault(
            GlobalRace,
            f"thread {thread} (warp {thread // 32}) {verb} offset {place * tables.granule} of "
            f"{region.name}, which thread {other} (warp {other // 32}) {other_verb} with no "
            f"barrier in between\n  the other access: {self._sites[line]}",
        )
