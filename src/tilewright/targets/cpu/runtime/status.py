"""The status record: how a running kernel tells what went wrong, and the faults it becomes.

The first failure of a launch wins: its thread claims the record with a compare-and-swap and
writes site, program and indices; the launch runs on, and the driver raises when it has ended.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

from tilewright.support.dataclass import dataclass
from tilewright.support.errors import (
    AssertionFailed,
    DivisionByZero,
    KernelFault,
    OffsetOverflow,
    OutOfBoundsAccess,
)
from tilewright.support.source import Span

# Chosen, not measured: a message names so many indices of a place; further ones are left out.
MAX_RANK = 5
_FAULTS: Mapping[str, type[KernelFault]] = {
    "bounds": OutOfBoundsAccess,
    "overflow": OffsetOverflow,
    "assert": AssertionFailed,
    "division": DivisionByZero,
}


class StatusRecord(ctypes.Structure):
    """64 bytes that every program of a launch can reach; `word` is not 0 after a failure.

    `print_file` is the descriptor that device_print writes to.
    """

    _fields_ = (
        ("word", ctypes.c_int32),
        ("site", ctypes.c_int32),
        ("program", ctypes.c_int32 * 3),
        ("rank", ctypes.c_int32),
        ("index", ctypes.c_int32 * MAX_RANK),
        ("print_file", ctypes.c_int32),
        ("reserved", ctypes.c_int32 * 4),
    )


OFFSETS: Mapping[str, int] = {
    name: getattr(StatusRecord, name).offset
    for name in ("word", "site", "program", "rank", "index", "print_file")
}


@dataclass(frozen=True)
class Site:
    """One place that can fail: what it checks and where it stands in the source."""

    kind: str
    message: str
    span: Span | None
    chain: tuple[Span, ...] = ()

    def to_json(self) -> list[object]:
        """This site as JSON, for the artifact's metadata."""
        spans = (*((self.span,) if self.span is not None else ()), *self.chain)
        rows = [[s.file, s.line, s.column, s.end_column, s.function] for s in spans]
        return [self.kind, self.message, rows]

    @staticmethod
    def from_json(document: list[object]) -> Site:
        """The site that `to_json` wrote."""
        kind, message, rows = document
        assert isinstance(rows, list)
        spans = [Span(str(f), int(li), int(c), int(e), str(fn)) for f, li, c, e, fn in rows]
        return Site(str(kind), str(message), spans[0] if spans else None, tuple(spans[1:]))


def fault_of(record: StatusRecord, sites: list[Site], kernel: str) -> KernelFault:
    """The error that a failed launch raises."""
    site = sites[record.site]
    program = tuple(record.program)
    index = tuple(record.index[: record.rank])
    at = f", tile index {list(index)}" if index else ""
    summaries = {
        "bounds": f"out-of-bounds {site.message}",
        "overflow": f"the offset of a {site.message} overflows int32",
        "assert": f"assertion failed: {site.message}",
        "division": f"{site.message} has no result: a division by zero, or of the least integer",
    }
    summary = f"{kernel}: {summaries[site.kind]} in program {program}{at}"
    return _FAULTS[site.kind](summary, span=site.span, chain=site.chain)
