"""Whether kernels are compiled in child processes here: a wish that the tuner passes to jit."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_IS_ISOLATED: ContextVar[bool] = ContextVar("is_isolated", default=False)


def is_isolated() -> bool:
    """Whether a compile that kills or hangs its process must not take this one with it."""
    return _IS_ISOLATED.get()


@contextmanager
def isolated_compiles(is_wanted: bool = True) -> Generator[None]:
    """A block in which kernels are compiled in child processes, if that is wanted."""
    token = _IS_ISOLATED.set(is_wanted or _IS_ISOLATED.get())
    try:
        yield
    finally:
        _IS_ISOLATED.reset(token)
