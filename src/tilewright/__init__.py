"""Tilewright: a tile language and an optimizing compiler, in Python from end to end."""

from __future__ import annotations

from tilewright import language
from tilewright.jit import JITFunction, jit
from tilewright.runtime.kernel import CompiledKernel, compile_statistics
from tilewright.support.errors import (
    CompileError,
    InternalError,
    TilewrightError,
    UnsupportedError,
)

__version__ = "0.1.0"


def cdiv(x: int, y: int) -> int:
    """x / y rounded up, for y > 0."""
    return -(-x // y)


def next_power_of_2(n: int) -> int:
    """The least power of two that is at least n (n ≥ 1)."""
    return 1 << max(0, int(n) - 1).bit_length()


__all__ = [
    "CompileError",
    "CompiledKernel",
    "InternalError",
    "JITFunction",
    "TilewrightError",
    "UnsupportedError",
    "cdiv",
    "compile_statistics",
    "jit",
    "language",
    "next_power_of_2",
]
