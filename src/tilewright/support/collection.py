"""Python's garbage collector, held back where it would only look at what is to stay."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


def count_as_old() -> None:
    """Let the collector take all objects that there are for old ones, without a walk over them.

    The compiler's modules are some 90,000 containers that stay. When collection goes on, the
    collector would walk them once as new ones and once more as younger ones, 20 ms each time.
    They are collected with the old ones, should they become garbage.
    """
    if gc.get_freeze_count() == 0:  # what a program froze stays so
        gc.freeze()
        gc.unfreeze()


@contextmanager
def collection_paused() -> Generator[None]:
    """A block in which no garbage is collected.

    Loading and running the compiler makes a few hundred thousand objects that live on or are
    freed by their reference counts; the collector would walk all of them several times.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
