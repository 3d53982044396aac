"""What programs that waited too long left behind, as an error that names every role.

A kernel whose waits are bounded knows an address of the host's memory. A program that gives up
writes there what each of its warps waited for; the host reads it when the driver says that the
kernel has stopped, and at the end of the process if nobody asked.
"""

from __future__ import annotations

import atexit
import ctypes
import sys
from collections.abc import Mapping
from typing import Final, cast

from tilewright.support.dataclass import dataclass
from tilewright.support.errors import Deadlock
from tilewright.targets.nvidia.cuda import Cuda

REPORT_SYMBOL = "tw_hang_report"
"""The global of a kernel that holds the address of its report."""
# By definition: what a warp writes are 8 words: the number of the wait (from 1), slot, phase, 0;
# then the coordinates of the program, 0.
RECORD_BYTES = 32
# Source: CUDA C++ programming guide 13.0: a program has at most 32 warps.
_MAX_WARPS = 32
_WORDS = RECORD_BYTES // 4


@dataclass(frozen=True)
class HangReport:
    """The report of one loaded kernel: the words at its address, and what they mean."""

    kernel: str
    words: ctypes.Array[ctypes.c_int32]
    seconds: int
    waits: tuple[str, ...]
    groups: tuple[tuple[str, int, int], ...]

    def error(self) -> Deadlock | None:
        """What a program has written, in words; None where none gave up."""
        records = [self.words[_WORDS * w : _WORDS * (w + 1)] for w in range(_MAX_WARPS)]
        left = {warp: record for warp, record in enumerate(records) if record[0]}
        if not left:
            return None
        first = next(iter(left.values()))
        groups = self.groups or (("every warp", 0, _MAX_WARPS),)
        lines = [f"\n  {name} {self._state(left, *span)}" for name, *span in groups]
        program = tuple(first[4:7])
        return Deadlock(
            f"{self.kernel}: program {program} waited for {self.seconds} s{''.join(lines)}"
        )

    def _state(self, left: Mapping[int, list[int]], first: int, end: int) -> str:
        """What a group of warps waited for, as far as it is known."""
        texts = [
            self.waits[record[0] - 1].format(slot=record[1], phase=record[2])
            for warp, record in left.items()
            if first <= warp < end
        ]
        if not texts:
            return "has ended, or waits at a barrier for warps of its own"
        return "waits for " + " and for ".join(dict.fromkeys(texts))


class HangReports:
    """The reports of this process's kernels whose waits are bounded."""

    def __init__(self) -> None:
        self._reports: list[HangReport] = []
        self._has_told = False

    def watch(self, cuda: Cuda, module: int, name: str, described: Mapping[str, object]) -> None:
        """Give a kernel of a loaded module a report. *Raises*: CudaError."""
        if not self._reports:
            atexit.register(self._tell_at_exit)
        size = RECORD_BYTES * _MAX_WARPS
        address = cuda.allocate_host(size)
        words = (ctypes.c_int32 * (size // 4)).from_address(address)
        ctypes.memset(address, 0, size)
        cuda.set_global(module, REPORT_SYMBOL, address)
        groups = cast("list[tuple[str, int, int]]", described["groups"])
        self._reports.append(
            HangReport(
                name,
                words,
                int(str(described["seconds"])),
                tuple(map(str, cast("list[object]", described["waits"]))),
                tuple((str(group), int(first), int(end)) for group, first, end in groups),
            )
        )

    def error(self) -> Deadlock | None:
        """The report of the kernel that gave up; None where none did."""
        found = next((e for e in (r.error() for r in self._reports) if e is not None), None)
        self._has_told |= found is not None
        return found

    def _tell_at_exit(self) -> None:
        """Print what nobody has heard: the error may have been another library's to raise."""
        if not self._has_told and (error := self.error()) is not None:
            print(error, file=sys.stderr)


# One a process: a fault is the process's, as the history of launches is.
HANG_REPORTS: Final = HangReports()
