"""`triton.runtime.allocation`: who gives kernels scratch memory."""

from __future__ import annotations

from collections.abc import Callable

Allocator = Callable[[int, int, object], object]


def set_allocator(allocator: Allocator) -> None:
    """Accept an allocator: kernels on the CPU need no scratch memory from the host."""
