"""Tilewright under the name that scripts written for Triton import."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType

import tilewright
from tilewright.language import constexpr_function
from tilewright.runtime.autotune import autotune
from tilewright.runtime.config import Config
from tilewright.runtime.heuristics import heuristics
from tilewright.support.errors import CompileError as CompilationError
from tilewright.support.errors import TilewrightError as TritonError

from . import compiler, language, runtime, testing, tools
from .runtime.allocation import set_allocator
from .runtime.errors import InterpreterError, OutOfResources
from .runtime.jit import JITFunction, KernelInterface, TensorWrapper, reinterpret

# The version of the language whose behaviour Tilewright follows; scripts compare it.
__version__ = "3.9.0"

cdiv = tilewright.cdiv
next_power_of_2 = constexpr_function(tilewright.next_power_of_2)


def jit(
    fn: FunctionType | None = None,
    *,
    version: object = None,
    repr: Callable[..., str] | None = None,
    launch_metadata: Callable[..., object] | None = None,
    do_not_specialize: Sequence[str | int] | None = None,
    do_not_specialize_on_alignment: Sequence[str | int] | None = None,
    debug: bool | None = None,
    noinline: bool | None = None,
) -> JITFunction | Callable[[FunctionType], JITFunction]:
    """`tilewright.jit` with every keyword of Triton's.

    `version`, `repr` and `launch_metadata` are accepted and change nothing.
    """

    def decorate(function: FunctionType) -> JITFunction:
        return JITFunction(
            function,
            do_not_specialize=tuple(do_not_specialize or ()),
            do_not_specialize_on_alignment=tuple(do_not_specialize_on_alignment or ()),
            debug=debug,
            noinline=bool(noinline),
        )

    return decorate if fn is None else decorate(fn)


__all__ = [
    "CompilationError",
    "Config",
    "InterpreterError",
    "JITFunction",
    "KernelInterface",
    "OutOfResources",
    "TensorWrapper",
    "TritonError",
    "autotune",
    "cdiv",
    "compiler",
    "constexpr_function",
    "heuristics",
    "jit",
    "language",
    "next_power_of_2",
    "reinterpret",
    "runtime",
    "set_allocator",
    "testing",
    "tools",
]
