"""`triton.runtime._allocation`: who gives kernels scratch memory."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

Allocator = Callable[[int, int, int | None], object]
_ALLOCATOR: ContextVar[Allocator | None] = ContextVar("allocator", default=None)
_PROFILE_ALLOCATOR: ContextVar[Allocator | None] = ContextVar("profile_allocator", default=None)


def set_allocator(allocator: Allocator) -> None:
    """Get scratch memory from `allocator(size_bytes, alignment, stream)`.

    Kernels here bring their own, so the allocator is kept for who asks and never called.
    """
    _ALLOCATOR.set(allocator)


def set_profile_allocator(allocator: Allocator | None) -> None:
    """The same for memory that profilers use."""
    _PROFILE_ALLOCATOR.set(allocator)


def has_profile_allocator() -> bool:
    """Whether an allocator for profilers was set."""
    return _PROFILE_ALLOCATOR.get() is not None
