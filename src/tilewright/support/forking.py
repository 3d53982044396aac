"""Work that a fork waits for, and locks that a child finds open.

A compile takes the locks of LLVM and of modules that are being imported. A child that is forked
meanwhile gets them locked, and no thread that would open them: the fork waits. Locks of our own
around work that is long, or around a few lines, are opened in the child.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType
from typing import Final
from weakref import WeakSet

# A fork waits for the compiles that run, seconds at the most; then it takes its chance.
_PATIENCE_S = 20.0


class ForkGate:
    """Counts the threads that are at work; a fork waits until only its own is."""

    def __init__(self) -> None:
        self._condition = threading.Condition(threading.RLock())
        self._depths: dict[int, int] = {}
        self._num_forks = 0

    @contextmanager
    def work(self) -> Generator[None]:
        """A block that no fork of another thread interrupts; blocks nest."""
        thread = threading.get_ident()
        with self._condition:
            # Who is at work already must end it, whoever waits.
            self._condition.wait_for(
                lambda: not self._num_forks or thread in self._depths, _PATIENCE_S
            )
            self._depths[thread] = self._depths.get(thread, 0) + 1
        try:
            yield
        finally:
            with self._condition:
                self._depths[thread] -= 1
                if not self._depths[thread]:
                    del self._depths[thread]
                self._condition.notify_all()

    def before_fork(self) -> None:
        """Wait for the work of other threads and keep them from starting more."""
        self._condition.acquire()
        self._num_forks += 1
        thread = threading.get_ident()
        self._condition.wait_for(lambda: self._depths.keys() <= {thread}, _PATIENCE_S)

    def after_in_parent(self) -> None:
        """Let other threads work on."""
        self._num_forks -= 1
        self._condition.notify_all()
        self._condition.release()

    def after_in_child(self) -> None:
        """Forget the threads that are not here, and what they waited for."""
        thread = threading.get_ident()
        self._condition = threading.Condition(threading.RLock())
        self._depths = {t: depth for t, depth in self._depths.items() if t == thread}
        self._num_forks = 0


# One a process, as its forks are.
FORK_GATE: Final = ForkGate()


class ThreadLock:
    """A reentrant lock among threads that a forked child finds open, whoever of the parent held it.

    For work that no fork can wait for, such as tuning, and for what is short. What it guards must
    be whole between any two steps: the child goes on from there.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _THREAD_LOCKS.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.release()

    def after_in_child(self) -> None:
        """Be open, unless the thread that forked holds the lock: it is here, and will open it."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._lock = threading.RLock()


# One a process, as its forks are.
_THREAD_LOCKS: Final[WeakSet[ThreadLock]] = WeakSet()


def _open_locks() -> None:
    for lock in list(_THREAD_LOCKS):
        lock.after_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=FORK_GATE.before_fork,
        after_in_parent=FORK_GATE.after_in_parent,
        after_in_child=FORK_GATE.after_in_child,
    )
    os.register_at_fork(after_in_child=_open_locks)
