"""Shared memory of a cta: bytes, bank conflicts, and the check of every access for races.

That of the ctas of a cluster lies in windows, one behind the other, which no access leaves.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.interp.simt.faults import Fault, SharedRace
from tilewright.interp.simt.memory import Region, check_alignment
from tilewright.interp.simt.shadow import Shadow
from tilewright.interp.simt.statistics import Report
from tilewright.interp.simt.synchronization import Synchronization
from tilewright.interp.simt.syntax import Site
from tilewright.interp.simt.types import CTA_WINDOW, SHARED_BASE
from tilewright.ir.op import Array
from tilewright.support.errors import KernelFault, OutOfBoundsAccess

_BARRIER_BYTES = 8


class SharedMemory:
    """The shared memory of each cta of a cluster, of `cta_bytes`, uninitialised at its start."""

    def __init__(self, cta_bytes: int, synchronization: Synchronization, report: Report) -> None:
        self._cta_bytes, self._is_cluster = cta_bytes, synchronization.cluster > 1
        self.size = size = cta_bytes + (synchronization.cluster - 1) * CTA_WINDOW
        self._synchronization = synchronization
        self._report = report
        self.shadow = Shadow(size, synchronization.clocks)
        self.reset()

    def reset(self) -> None:
        """Forget everything, for the next cta."""
        self.region = Region("shared memory", SHARED_BASE, self.size, is_initialized=False)
        # The next cta most likely accesses it as finely as this one did.
        self.shadow = Shadow(self.size, self._synchronization.clocks, self.shadow.granule)

    def _places(self, addresses: Array, num_bytes: int) -> Array:
        offsets = addresses.view(np.int64) - SHARED_BASE
        if self._is_cluster:
            self._require_inside(offsets % CTA_WINDOW, num_bytes)
        self.region.indices(addresses, num_bytes)
        return self.shadow.places(offsets, num_bytes)

    def _require_inside(self, offsets: Array, num_bytes: int) -> None:
        """Hold accesses to the bytes of a cta, behind which those of the next one begin."""
        first = int(offsets.max())
        if first + num_bytes > self._cta_bytes:
            what = f"{num_bytes} bytes at offset {first} of shared memory"
            raise Fault(OutOfBoundsAccess, f"{what}, which has {self._cta_bytes} bytes")

    def _keep_off_barriers(self, addresses: Array, num_bytes: int) -> None:
        """Raise when a write would fall on an mbarrier."""
        barriers = self._synchronization.memory_barriers
        if not barriers:
            return
        places = addresses.view(np.int64)
        low, high = int(places.min()), int(places.max()) + num_bytes
        for barrier in barriers:
            if low < barrier + _BARRIER_BYTES and barrier < high:
                hits = (places < barrier + _BARRIER_BYTES) & (places + num_bytes > barrier)
                if hits.any():
                    raise Fault(
                        KernelFault,
                        f"a write falls on the mbarrier at shared address {barrier}, which was "
                        "not invalidated",
                    )

    def _count(
        self, kind: str, addresses: Array, threads: Array, num_bytes: int, site: Site
    ) -> None:
        record = self._report.access(site, kind, "shared", num_bytes)
        self._report.record(record, addresses, threads, num_bytes)

    def load(
        self, addresses: Array, threads: Array, num_bytes: int, align: int, site: Site
    ) -> Array:
        """The bytes at the addresses, shape [accesses, num_bytes]."""
        check_alignment(addresses, align)
        self._count("load", addresses, threads, num_bytes, site)
        self.shadow.read(self._places(addresses, num_bytes), threads, site)
        return self.region.gather(addresses, num_bytes, align)

    def store(self, addresses: Array, threads: Array, data: Array, align: int, site: Site) -> None:
        """Write rows of bytes at the addresses."""
        check_alignment(addresses, align)
        num_bytes = data.shape[1]
        self._keep_off_barriers(addresses, num_bytes)
        self._count("store", addresses, threads, num_bytes, site)
        places = self._places(addresses, num_bytes)
        before = self.region.peek(addresses, num_bytes, align)
        changed = (before != data).any(1)
        self.shadow.write(places, threads, changed, site, is_atomic=False)
        self.region.scatter(addresses, data, align)
        after = self.region.peek(addresses, num_bytes, align)
        if not np.array_equal(after, data):
            row = int(np.argmax((after != data).any(1)))
            raise Fault(
                SharedRace,
                f"thread {int(threads[row])} and another thread write different values to shared "
                f"offset {int(addresses[row]) - SHARED_BASE} in one instruction",
            )

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
        self._count("atomic", addresses, threads, num_bytes, site)
        places = self._places(addresses, num_bytes)
        before = self.region.gather(addresses, num_bytes, num_bytes)
        every = np.ones(len(threads), np.bool_)
        self.shadow.write(places, threads, every, site, is_atomic=True)
        self.region.scatter(addresses, change(before, threads), num_bytes)
        return before

    # --- accesses that run by themselves ----------------------------------------------------

    def read_tile(
        self, addresses: Array, num_bytes: int, issuers: Array, agent: tuple[int, int], site: Site
    ) -> Array:
        """The bytes that the asynchronous proxy reads for `issuers`, who start it together.

        `agent` is the column and the clock that stand for the read.
        """
        places = self._places(addresses, num_bytes)
        self.shadow.read_async(places, issuers, *agent, site)
        return self.region.gather(addresses, num_bytes, num_bytes)

    def write_tile(
        self,
        addresses: Array,
        data: Array,
        issuers: Array,
        agents: tuple[Array, Array],
        site: Site,
        *,
        is_generic: bool = False,
    ) -> None:
        """Write rows of bytes for agents: columns and clocks, one per row like `issuers`.

        `is_generic`: by the proxy of plain stores, though nobody waits for it.
        """
        self._keep_off_barriers(addresses, data.shape[1])
        places = self._places(addresses, data.shape[1])
        self.shadow.write_async(places, issuers, *agents, site, is_generic=is_generic)
        self.region.scatter(addresses, data, data.shape[1])
