"""Work that a fork waits for, because a child could not go on without the thread that does it.

A compile takes the locks of LLVM and of modules that are being imported. A child that is forked
meanwhile gets them locked, and no thread that would open them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

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

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=FORK_GATE.before_fork,
        after_in_parent=FORK_GATE.after_in_parent,
        after_in_child=FORK_GATE.after_in_child,
    )
