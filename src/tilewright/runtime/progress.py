"""A progress bar for work that turns out to be long, on a terminal only."""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from tilewright.support.forking import ThreadLock

if TYPE_CHECKING:
    from rich.progress import Progress

_PATIENCE_S = 1.0


class Step(Protocol):
    """Called after each piece of work with a word on how it stands."""

    def __call__(self, status: str) -> None:
        """Advance by one piece."""
        ...


@contextmanager
def progress_bar(title: str, total: int) -> Generator[Step]:
    """A function to call after each of `total` pieces; a bar appears after one second.

    Nothing is written where stderr is no terminal.
    """
    bar = _LateBar(title, total) if sys.stderr is not None and sys.stderr.isatty() else None
    try:
        yield bar.step if bar is not None else _ignore
    finally:
        if bar is not None:
            bar.stop()


def _ignore(status: str) -> None:
    """No terminal: nothing to show."""


class _LateBar:
    """A bar that appears when the work has lasted a second, wherever the work is then."""

    def __init__(self, title: str, total: int) -> None:
        self._title = title
        self._total = total
        self._done = 0
        self._status = ""
        self._bar: Progress | None = None
        self._is_over = False
        self._lock = ThreadLock()
        self._timer = threading.Timer(_PATIENCE_S, self._show)
        self._timer.daemon = True
        self._timer.start()

    def step(self, status: str) -> None:
        with self._lock:
            self._done += 1
            self._status = status
            self._update()

    def stop(self) -> None:
        self._timer.cancel()
        with self._lock:
            self._is_over = True
            if self._bar is not None:
                self._bar.stop()

    def _show(self) -> None:
        with self._lock:
            if not self._is_over:
                self._bar = _start(self._title, self._total)
                self._update()

    def _update(self) -> None:
        if self._bar is not None:
            task = self._bar.task_ids[0]
            self._bar.update(task, completed=self._done, status=self._status)


def _start(title: str, total: int) -> Progress:
    # Loaded here because a launch that tunes nothing must not pay for it.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[status]}"),
        console=Console(stderr=True),
        transient=True,
    )
    bar.add_task(title, total=total, status="")
    bar.start()
    return bar
