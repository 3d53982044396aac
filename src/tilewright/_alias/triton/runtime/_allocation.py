"""`triton.runtime._allocation`: who gives kernels scratch memory."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol

from tilewright.support.errors import TilewrightError


class Buffer(Protocol):
    """Memory that an allocator gives."""

    def data_ptr(self) -> int: ...


class Allocator(Protocol):
    """Gives scratch memory: `allocator(size_bytes, alignment, stream)`."""

    def __call__(self, size: int, alignment: int, stream: int | None) -> Buffer: ...


class NoAllocator(TilewrightError, RuntimeError):
    """Scratch memory is asked for and no allocator was set."""


class NullAllocator:
    """The allocator while none is set. Raises: `NoAllocator` when it is called."""

    def __call__(self, size: int, alignment: int, stream: int | None) -> Buffer:
        raise NoAllocator(
            "Kernel requires a runtime memory allocation, but no allocator was set. "
            "Use triton.set_allocator to specify an allocator."
        )


_NULL_ALLOCATOR = NullAllocator()
_allocator: ContextVar[Allocator] = ContextVar("_allocator", default=_NULL_ALLOCATOR)
_profile_allocator: ContextVar[Allocator] = ContextVar(
    "_profile_allocator", default=_NULL_ALLOCATOR
)


def set_allocator(allocator: Allocator) -> None:
    """Get scratch memory from `allocator(size_bytes, alignment, stream)`.

    Kernels here bring their own, so the allocator is kept for who asks and never called.
    """
    _allocator.set(allocator)


def set_profile_allocator(allocator: Allocator | None) -> None:
    """The same for memory that profilers use; None takes it back."""
    _profile_allocator.set(_NULL_ALLOCATOR if allocator is None else allocator)


def has_profile_allocator() -> bool:
    """Whether an allocator for profilers was set."""
    return not isinstance(_profile_allocator.get(), NullAllocator)
