"""The bytes of a program's shared memory, and what must have come before an access of them.

Bytes that nothing wrote cannot be read, nor those that an asynchronous copy is to write. Where
the order of accesses is checked, two of which one writes need a barrier in between or a wait of
the one role for the other, and an asynchronous unit sees what threads wrote only after a fence.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

import numpy as np

from tilewright.interp.role_clocks import LONG_AGO, RoleClocks
from tilewright.interp.simt.faults import Fault, ProxyRace, SharedRace, UnfinishedOperation
from tilewright.ir.op import Array
from tilewright.support.errors import UninitializedRead

_UNWRITTEN, _WRITTEN, _UNDEFINED, _IN_FLIGHT = range(4)


class SharedBytes:
    """Bytes with their state; `is_ordered` says whether the order of accesses is checked."""

    def __init__(self, is_ordered: bool, roles: tuple[str, ...] = ("the program",)) -> None:
        self.is_ordered = is_ordered
        # By the column of their clock.
        self.roles = dict(enumerate(roles))
        self.clocks = RoleClocks(len(roles))
        self.role = 0
        self.data = np.zeros(0, np.uint8)
        self._state = np.zeros(0, np.uint8)
        # Who wrote a byte last, and when; when each role read it last.
        self._writer = np.zeros(0, np.int16)
        self._written = np.zeros(0, np.int32)
        self._read: dict[int, Array] = {}
        # How many asynchronous units read a byte.
        self._readers = np.zeros(0, np.uint16)

    @contextmanager
    def acting(self, role: int) -> Generator[None]:
        """What happens here, a role does."""
        before, self.role = self.role, role
        try:
            yield
        finally:
            self.role = before

    def fork(self, names: Sequence[str]) -> list[int]:
        """New roles by their names, which come after all that the acting one has done."""
        made = [self.clocks.fork(self.role) for _ in names]
        self.roles.update(zip(made, names, strict=True))
        return made

    # --- places ---

    def reserve(self, end: int) -> None:
        """Have at least `end` bytes."""
        missing = end - self.data.size
        if missing <= 0:
            return

        def grown(array: Array, value: int) -> Array:
            return np.concatenate([array, np.full(missing, value, array.dtype)])

        self.data, self._state = grown(self.data, 0xAA), grown(self._state, _UNWRITTEN)
        self._writer, self._written = grown(self._writer, 0), grown(self._written, LONG_AGO)
        self._read = {role: grown(times, LONG_AGO) for role, times in self._read.items()}
        self._readers = grown(self._readers, 0)

    def forget(self, start: int, size: int) -> None:
        """Begin a new tile: what its bytes held is gone."""
        self.reserve(start + size)
        places = np.arange(start, start + size)
        self._require_idle(places, "begins in bytes that")
        self._state[start : start + size] = _UNWRITTEN

    # --- accesses of threads ---

    def write(self, places: Array, data: Array, undefined: Array | None) -> None:
        """Write bytes; `undefined` marks those of undefined values."""
        self._check_write(places)
        self.data[places] = data
        self._note_write(places, self.role)
        if undefined is not None:
            self._state[places[undefined]] = _UNDEFINED

    def fetch(self, places: Array, *, is_async: bool = False) -> tuple[Array, Array | None]:
        """The bytes at some places, and which of them hold undefined values; None for none.

        `is_async` is a read by an asynchronous unit.
        """
        states = self._state[places]
        if (states == _IN_FLIGHT).any():
            raise Fault(UnfinishedOperation, "reads what an asynchronous copy still brings")
        if (states == _UNWRITTEN).any():
            raise Fault(UninitializedRead, "reads shared memory that nothing has written")
        self._require_written_before(places, "reads")
        if is_async:
            self._require_shown(places, "reads")
        self._note_read(places)
        undefined = states == _UNDEFINED
        return self.data[places], undefined if undefined.any() else None

    def pass_through(self, start: int, size: int) -> None:
        """Elements change threads through scratch: written, a barrier, read; then it is gone."""
        self.reserve(start + size)
        places = np.arange(start, start + size)
        self._check_write(places)
        self._note_write(places, self.role)
        self.barrier()
        self._state[places] = _UNWRITTEN
        self._note_read(places)

    def barrier(self) -> None:
        """Every warp of the role waits: its accesses before are done."""
        self.clocks.barrier(self.role)

    def fence(self) -> None:
        """What the role's threads wrote is seen by asynchronous units, once it is ordered."""
        self.clocks.fence(self.role)

    # --- accesses of asynchronous units ---

    def expect(self, places: Array, *, is_async: bool = False) -> None:
        """Begin a copy to some bytes; `is_async` is one by a unit that threads have to tell."""
        self._check_write(places)
        if is_async:
            self._require_shown(places, "overwrites")
        self._state[places] = _IN_FLIGHT

    def bring(self, places: Array, data: Array, column: int) -> None:
        """End a copy: who is ordered after `column` finds its bytes."""
        self.data[places] = data
        self._note_write(places, column)

    def start_reading(self, places: Array) -> None:
        """From here on an asynchronous unit reads some bytes."""
        self._readers[places] += 1

    def end_reading(self, places: Array) -> None:
        """The role knows that an asynchronous unit has read some bytes."""
        self._readers[places] -= 1
        self._note_read(places)

    def _note_write(self, places: Array, column: int) -> None:
        self._state[places] = _WRITTEN
        self._writer[places] = column
        self._written[places] = self.clocks.time(column)

    def _note_read(self, places: Array) -> None:
        if self.role not in self._read:
            self._read[self.role] = np.full(self.data.size, LONG_AGO, np.int32)
        self._read[self.role][places] = self.clocks.time(self.role)

    # --- what must have come before ---

    def _check_write(self, places: Array) -> None:
        self._require_idle(places, "writes to bytes that")
        self._require_written_before(places, "writes to")
        if not self.is_ordered:
            return
        for reader, times in self._read.items():
            if not self.clocks.are_known(self.role, reader, times[places]).all():
                raise Fault(SharedRace, f"writes to what {self._since(reader, 'read')}")

    def _require_written_before(self, places: Array, verb: str) -> None:
        if not self.is_ordered:
            return
        writers = self._writer[places]
        known = self.clocks.are_known(self.role, writers, self._written[places])
        if not known.all():
            writer = int(writers[int(np.argmin(known))])
            raise Fault(SharedRace, f"{verb} what {self._since(writer, 'written')}")

    def _since(self, other: int, participle: str) -> str:
        """How an access by a role, or by what an mbarrier waits for, is told in a fault."""
        if other == self.role:
            return f"was {participle} since the last barrier"
        if other not in self.roles:
            return f"was {participle} by a copy that {self.roles[self.role]} did not wait for"
        return (
            f"was {participle} by {self.roles[other]}, for which {self.roles[self.role]} "
            "did not wait"
        )

    def _require_shown(self, places: Array, verb: str) -> None:
        if not self.is_ordered:
            return
        if not self.clocks.are_shown(self.role, self._writer[places], self._written[places]).all():
            raise Fault(ProxyRace, f"{verb} what threads wrote, which no fence has shown")

    def _require_idle(self, places: Array, verb: str) -> None:
        if (self._state[places] == _IN_FLIGHT).any():
            raise Fault(UnfinishedOperation, f"{verb} an asynchronous copy is to write")
        if (self._readers[places] != 0).any():
            raise Fault(UnfinishedOperation, f"{verb} an asynchronous product still reads")
