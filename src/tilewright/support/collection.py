"""Python's garbage collector, held back where it would only look at what is to stay."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


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
