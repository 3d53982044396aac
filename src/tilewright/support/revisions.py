"""Who compiled the text of which function: kernels to look again when a function is made anew.

A notebook runs a cell again, a module is reloaded, a program replaces a function's source: what
was compiled from the old text must not run on. Nothing is asked at a launch; the event tells.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import FunctionType
from typing import Final, Protocol
from weakref import WeakSet

from tilewright.support.forking import ThreadLock


class Reader(Protocol):
    """A kernel with a snapshot of the functions that it reaches."""

    def reconsider(self) -> None:
        """Take the snapshot again at the next launch."""
        ...


class Revisions:
    """The kernels that read each function, by the function's name."""

    def __init__(self) -> None:
        self._readers: dict[str, WeakSet[Reader]] = {}
        self._lock = ThreadLock()

    def read(self, names: Iterable[str], reader: Reader) -> None:
        """Note that a kernel's snapshot holds the functions `names`."""
        with self._lock:
            for name in names:
                self._readers.setdefault(name, WeakSet()).add(reader)

    def made(self, name: str) -> None:
        """Tell the readers of a function that there is another one of its name, or text."""
        if name not in self._readers:
            return
        with self._lock:
            readers = list(self._readers.pop(name))
        for reader in readers:
            reader.reconsider()


# One a process, as modules are.
REVISIONS: Final = Revisions()


def function_name(function: FunctionType) -> str:
    """What tells a function from those of other modules and classes: `module:qualname`."""
    return f"{function.__module__}:{function.__qualname__}"


def short_name(key: str) -> str:
    """The name of a function or class from its key in a request, `module:qualname~number`."""
    return key.rpartition(":")[2].partition("~")[0].rpartition(".")[2]
