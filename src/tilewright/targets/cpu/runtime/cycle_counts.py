"""What kernels have counted of their parts, read from where their code keeps it.

Part of the launch path: it imports neither xDSL nor the compiler.
"""

from __future__ import annotations

import ctypes
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from tilewright.codegen.link import LoadedCode
from tilewright.support.dataclass import dataclass

COUNTS_SYMBOL = "tilewright_counts"


@dataclass(frozen=True)
class PartCount:
    """The cycles that a part of a kernel took in all of its runs, on whatever threads."""

    cycles: int
    runs: int


@dataclass(frozen=True)
class KernelCounts:
    """The counts of one loaded kernel, by its artifact's key; its code stays while this does."""

    key: str
    code: LoadedCode
    num_parts: int

    def read(self) -> tuple[PartCount, ...]:
        """What it has counted so far: the whole program first, then the parts."""
        array = (ctypes.c_int64 * (2 * self.num_parts)).from_address(
            self.code.addresses[COUNTS_SYMBOL]
        )
        return tuple(PartCount(*array[2 * i : 2 * i + 2]) for i in range(self.num_parts))


_COUNTS: ContextVar[list[KernelCounts] | None] = ContextVar("counts", default=None)


def note_counts(counts: KernelCounts) -> None:
    """Keep the counts of a kernel that was loaded, where a collector is open."""
    found = _COUNTS.get()
    if found is not None:
        found.append(counts)


@contextmanager
def collected_counts() -> Generator[list[KernelCounts]]:
    """A list of the counts of each kernel that is loaded inside the block, in order."""
    counts: list[KernelCounts] = []
    token = _COUNTS.set(counts)
    try:
        yield counts
    finally:
        _COUNTS.reset(token)
