"""Calls that may nest deeper than Python's stack: they go on where there is room.

Some walks follow the structure of a program as its author nested it, calls within calls. Such a
walk asks for room at each step. Where the stack of its thread runs out, the call runs on a
thread of its own while the caller waits: Python counts the depth for each thread, so neither
the limit of the interpreter nor that of anybody else's code changes.
"""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

from tilewright.support.forking import ThreadLock

Result = TypeVar("Result")

ROOM_FRAMES = 500
"""What is left to a call at least: more than any walk takes from one step to the next."""

STACK_BYTES = 64 << 20
"""Of a thread that goes on. Python's own frames are on the heap, but not those of C in between."""


def with_room(function: Callable[[], Result], frames: int = ROOM_FRAMES) -> Result:
    """The result of `function()`, called with at least `frames` frames left."""
    try:
        # The cheap question whether so many frames are open; traceback walks them all.
        sys._getframe(max(sys.getrecursionlimit() - frames, 1))  # pyright: ignore[reportPrivateUsage]
    except ValueError:
        return function()
    return on_new_stack(function)


def on_new_stack(function: Callable[[], Result]) -> Result:
    """The result of `function()`, called on a thread of its own; what it raises is raised here."""
    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function())
        except BaseException as error:
            errors.append(error)

    thread = _start(contextvars.copy_context(), run)
    thread.join()
    if errors:
        raise errors.pop()
    return results[0]


def _start(context: contextvars.Context, run: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=context.run, args=(run,), daemon=True)
    with _STARTING:
        size = threading.stack_size(STACK_BYTES)
        try:
            thread.start()
        finally:
            threading.stack_size(size)
    return thread


# The stack's size is a setting of the process; whoever sets it must start first.
_STARTING = ThreadLock()
