"""Tilewright: a tile language and an optimizing compiler, in Python from end to end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright import language
from tilewright.jit import JITFunction, jit
from tilewright.runtime.kernel import CompiledKernel, compile_statistics
from tilewright.support.errors import (
    CompileError,
    InternalError,
    TilewrightError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from tilewright import testing
    from tilewright.language.aggregates import aggregate, aggregate_replace, must_use_result
    from tilewright.language.extensions import extension
    from tilewright.language.host import constexpr_function
    from tilewright.runtime.autotune import autotune
    from tilewright.runtime.config import Config
    from tilewright.runtime.heuristics import heuristics

__version__ = "0.1.0"

# Loaded when first named: most programs tune and measure nothing.
_LAZY = {
    "Config": "tilewright.runtime.config",
    "aggregate": "tilewright.language.aggregates",
    "aggregate_replace": "tilewright.language.aggregates",
    "autotune": "tilewright.runtime.autotune",
    "constexpr_function": "tilewright.language.host",
    "extension": "tilewright.language.extensions",
    "heuristics": "tilewright.runtime.heuristics",
    "must_use_result": "tilewright.language.aggregates",
    "testing": "tilewright.testing",
}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'tilewright' has no attribute {name!r}")
    import importlib

    module = importlib.import_module(_LAZY[name])
    value = module if name == "testing" else getattr(module, name)
    globals()[name] = value
    return value


def cdiv(x: int, y: int) -> int:
    """x / y rounded up, for y > 0."""
    return -(-x // y)


# Named in a kernel it is the function of the language, which takes values of run time too.
cdiv.__dict__["__tilewright_op__"] = "cdiv"


def next_power_of_2(n: int) -> int:
    """The least power of two that is at least n (n ≥ 1)."""
    return 1 << max(0, int(n) - 1).bit_length()


__all__ = [
    "CompileError",
    "CompiledKernel",
    "Config",
    "InternalError",
    "JITFunction",
    "TilewrightError",
    "UnsupportedError",
    "aggregate",
    "aggregate_replace",
    "autotune",
    "cdiv",
    "compile_statistics",
    "constexpr_function",
    "extension",
    "heuristics",
    "jit",
    "language",
    "must_use_result",
    "next_power_of_2",
    "testing",
]
