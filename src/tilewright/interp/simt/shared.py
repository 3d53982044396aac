"""Shared memory of a cta: bytes, bank conflicts, and the check of every access for races."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.interp.simt.memory import Region, check_alignment
from tilewright.interp.simt.statistics import Report
from tilewright.interp.simt.synchronization import Synchronization
from tilewright.interp.simt.syntax import Site
from tilewright.ir.op import Array

# The driver keeps the first KiB of a cta's shared memory on this machine, so a program's own
# begins there: a zero address is never right.
SHARED_BASE = 1024


class SharedMemory:
    """The shared memory of one cta, uninitialised at its start."""

    def __init__(self, size: int, synchronization: Synchronization, report: Report) -> None:
        self.size = size
        self._synchronization = synchronization
        self._report = report
        self.region = Region("shared memory", SHARED_BASE, size, is_initialized=False)

    def reset(self) -> None:
        """Forget everything, for the next cta."""
        self.region = Region("shared memory", SHARED_BASE, self.size, is_initialized=False)

    def load(
        self, addresses: Array, threads: Array, num_bytes: int, align: int, site: Site
    ) -> Array:
        """The bytes at the addresses, shape [accesses, num_bytes]."""
        check_alignment(addresses, align)
        record = self._report.access(site, "load", "shared", num_bytes)
        self._report.record(record, addresses, threads, num_bytes)
        return self.region.gather(addresses, num_bytes, align)

    def store(self, addresses: Array, threads: Array, data: Array, align: int, site: Site) -> None:
        """Write rows of bytes at the addresses."""
        check_alignment(addresses, align)
        record = self._report.access(site, "store", "shared", data.shape[1])
        self._report.record(record, addresses, threads, data.shape[1])
        self.region.scatter(addresses, data, align)

    def update(
        self,
        addresses: Array,
        threads: Array,
        num_bytes: int,
        change: Callable[[Array, Array], Array],
        site: Site,
    ) -> Array:
        """Change bytes atomically and return the old ones; no address occurs twice."""
        check_alignment(addresses, num_bytes)
        before = self.region.gather(addresses, num_bytes, num_bytes)
        self.region.scatter(addresses, change(before, threads), num_bytes)
        return before
