"""What a simulated launch counts: instructions, memory requests and how well they coalesce."""

from __future__ import annotations

from collections import Counter
from dataclasses import field

import numpy as np

from tilewright.interp.simt.syntax import Site
from tilewright.ir.op import Array
from tilewright.support.dataclass import dataclass

WARP = 32
_SECTOR_BYTES = 32
_BANKS = 32
_SAMPLES = 4
_MANY = 1 << 12  # more than a cta has warps, halves or quarters of warps


@dataclass
class AccessStatistics:
    """What one memory instruction did.

    `requests` counts warps that executed it. `sectors` (global) and `wavefronts` (shared) are
    counted over the first executions only, `sampled_requests` of them, and so are their
    ideals: what the bytes would need if they lay next to each other.
    """

    site: Site
    kind: str
    space: str
    bytes_per_thread: int
    requests: int = 0
    executions: int = 0
    sampled_requests: int = 0
    transactions: int = 0
    ideal_transactions: int = 0

    @property
    def transactions_per_request(self) -> float:
        """Sectors (global) or wavefronts (shared) that one warp's access takes."""
        return self.transactions / max(self.sampled_requests, 1)

    @property
    def efficiency(self) -> float:
        """Ideal transactions over actual ones, 1 at best."""
        return self.ideal_transactions / max(self.transactions, 1)


@dataclass
class Report:
    """The result of a simulated launch."""

    instructions: Counter[str] = field(default_factory=Counter)
    accesses: dict[tuple[int, str], AccessStatistics] = field(default_factory=dict)
    printed: list[str] = field(default_factory=list)
    barriers: int = 0

    def shared_accesses(self) -> list[AccessStatistics]:
        """The instructions that access shared memory, in the order of the text."""
        return [a for _, a in sorted(self.accesses.items()) if a.space == "shared"]

    def global_accesses(self) -> list[AccessStatistics]:
        """The instructions that access global memory, in the order of the text."""
        return [a for _, a in sorted(self.accesses.items()) if a.space == "global"]

    def bank_conflicts(self) -> int:
        """Wavefronts of shared memory beyond the ideal, over the sampled executions."""
        return sum(a.transactions - a.ideal_transactions for a in self.shared_accesses())

    def access(self, site: Site, kind: str, space: str, num_bytes: int) -> AccessStatistics:
        """The record of an instruction."""
        key = (site.line, kind + space)
        found = self.accesses.get(key)
        if found is None:
            found = self.accesses[key] = AccessStatistics(site, kind, space, num_bytes)
        return found

    def record(
        self, record: AccessStatistics, addresses: Array, threads: Array, num_bytes: int
    ) -> None:
        """Count one execution: the addresses that the active `threads` access."""
        # Warps of which some threads take no part are requests of their own as well.
        requests = int(np.count_nonzero(np.diff(threads // WARP))) + 1
        record.requests += requests
        record.executions += 1
        if record.executions > _SAMPLES:
            return
        record.sampled_requests += requests
        count = count_wavefronts if record.space == "shared" else count_sectors
        transactions, ideal = count(addresses, threads, num_bytes)
        record.transactions += transactions
        record.ideal_transactions += ideal


def count_sectors(addresses: Array, threads: Array, num_bytes: int) -> tuple[int, int]:
    """Sectors of 32 bytes that the warps touch, and the least that the bytes need."""
    steps = np.arange(0, num_bytes, min(num_bytes, _SECTOR_BYTES))
    sectors = (addresses.view(np.int64)[:, None] + steps) // _SECTOR_BYTES
    warps = threads // WARP
    touched = len(np.unique((sectors * _MANY + warps[:, None]).ravel()))
    lanes = np.bincount(warps)
    return touched, int((-(-lanes * num_bytes // _SECTOR_BYTES)).sum())


def count_wavefronts(addresses: Array, threads: Array, num_bytes: int) -> tuple[int, int]:
    """Passes that the banks need, and the least that the bytes need.

    A warp's access of 8 bytes a lane goes in two halves, one of 16 bytes in four quarters;
    lanes that read the same word share it.
    """
    words = max(num_bytes // 4, 1)
    groups = threads * words // WARP  # the halves or quarters, numbered over the cta
    word = addresses.view(np.int64)[:, None] // 4 + np.arange(words)
    keys = np.unique((word * _MANY + groups[:, None]).ravel())
    groups, banks = keys % _MANY, keys // _MANY % _BANKS
    per_bank = np.bincount(groups * _BANKS + banks, minlength=(int(groups.max()) + 1) * _BANKS)
    per_bank = per_bank[: len(per_bank) // _BANKS * _BANKS].reshape(-1, _BANKS)
    return int(per_bank.max(1).sum()), int((-(-per_bank.sum(1) // _BANKS)).sum())
