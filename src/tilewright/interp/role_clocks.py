"""Vector clocks of the roles of a program: which accesses of shared memory come before which.

A role (each of its replicas) has a time, which goes on with everything that orders. Its warps are
not ordered among each other but by its own barrier, so that of itself a role knows only what lay
before the last one. An access of role r at its time t comes before role q when q knows of r more
than t. What an mbarrier waits for is done by none of them and has a *column* of its own.

`shown` says the same of writes by threads that asynchronous units are sure to see. Threads write
what they copy as well: who waited for such copies shows them, by a fence of its own.
"""

from __future__ import annotations

import numpy as np

from tilewright.ir.op import Array
from tilewright.support.dataclass import dataclass

LONG_AGO = -1
"""The time of what everybody knows."""


@dataclass(frozen=True)
class Knowledge:
    """What a role knew when it told others: a time for each column."""

    known: Array
    shown: Array

    def joined(self, other: Knowledge | None) -> Knowledge:
        """What both know together."""
        if other is None:
            return self
        return Knowledge(_latest(self.known, other.known), _latest(self.shown, other.shown))


NOTHING = Knowledge(np.zeros(0, np.int32), np.zeros(0, np.int32))
"""What is known before anything was told."""


def _latest(left: Array, right: Array) -> Array:
    size = max(len(left), len(right))
    return np.maximum(_widened(left, size), _widened(right, size))


def _widened(times: Array, size: int) -> Array:
    return np.concatenate([times, np.zeros(size - len(times), times.dtype)])


class RoleClocks:
    """The clocks of the roles of one program, and of what it waits for: a column each."""

    def __init__(self, num_roles: int) -> None:
        self._known = np.zeros((0, 0), np.int32)
        self._shown = np.zeros((0, 0), np.int32)
        self._times: list[int] = []
        self._fenced: list[int] = []
        # Whether asynchronous units see what a column writes behind a fence only.
        self._is_fenced = np.zeros(0, np.bool_)
        self._columns: dict[object, int] = {}
        self._copies: list[int] = []
        for _ in range(num_roles):
            self._add(is_fenced=True)

    def _add(self, *, is_fenced: bool) -> int:
        self._known = np.pad(self._known, (0, 1))
        self._shown = np.pad(self._shown, (0, 1))
        self._is_fenced = np.append(self._is_fenced, is_fenced)
        self._times.append(0)
        self._fenced.append(0)
        return len(self._times) - 1

    def fork(self, role: int) -> int:
        """The column of a new role, which comes after all that a role has done."""
        told, new = self.release(role), self._add(is_fenced=True)
        self.acquire(new, told)
        return new

    def time(self, column: int) -> int:
        """The time at which a role accesses memory now, or at which a column's last event was."""
        return self._times[column]

    def column(self, key: object) -> int:
        """The column of what runs asynchronously under a name."""
        found = self._columns.get(key)
        if found is None:
            found = self._columns[key] = self._add(is_fenced=False)
        return found

    def copies(self, key: object) -> int:
        """The column of what threads copy, for all of which an mbarrier waits under a name."""
        column = self.column((key, "copies"))
        if column not in self._copies:
            self._copies.append(column)
            self._is_fenced[column] = True
        return column

    def end_event(self, column: int) -> Knowledge:
        """What ran asynchronously so far is done; who acquires this comes after it."""
        self._times[column] += 1
        known = np.zeros(len(self._times), np.int32)
        known[column] = self._times[column]
        return Knowledge(known, np.zeros_like(known) if column in self._copies else known)

    # --- events of roles ---

    def barrier(self, role: int) -> None:
        """All warps of a role meet: its accesses before come before those after."""
        self._times[role] += 1
        self._known[role, role] = self._times[role]
        self._shown[role, role] = self._fenced[role]

    def fence(self, role: int) -> None:
        """What threads of a role wrote is seen by asynchronous units, once others know of it.

        What it knows that others have copied is seen by those that it starts.
        """
        self._times[role] += 1
        self._fenced[role] = self._times[role]
        self._shown[role, self._copies] = self._known[role, self._copies]

    def release(self, role: int, *, is_whole: bool = True) -> Knowledge:
        """What a role tells those who wait; with `is_whole` all of its warps have arrived.

        One thread that arrives for the others tells no more than what lay before their barrier.
        """
        known, shown = self._known[role].copy(), self._shown[role].copy()
        if is_whole:
            self._times[role] += 1
            known[role] = self._times[role]
            shown[role] = self._fenced[role]
        return Knowledge(known, shown)

    def acquire(self, role: int, told: Knowledge) -> None:
        """All warps of a role have waited for what somebody told."""
        for own, other in ((self._known, told.known), (self._shown, told.shown)):
            row = own[role, : len(other)]
            np.maximum(row, other, out=row)

    # --- questions ---

    def are_known(self, role: int, columns: Array | int, times: Array) -> Array:
        """Whether accesses by columns at their times come before what a role does now."""
        return times < self._known[role, columns]

    def are_shown(self, role: int, columns: Array, times: Array) -> Array:
        """Whether asynchronous units that a role starts now see writes by columns."""
        return ~self._is_fenced[columns] | (times < self._shown[role, columns])
