"""Tilewright under the name that programs written for Triton import."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import tilewright

from . import _C as _C
from . import _utils as _utils
from . import backends, compiler, knobs, language, runtime
from ._names import refuse
from .compiler import CompilationError, compile
from .errors import TritonError
from .runtime._allocation import set_allocator
from .runtime._async_compile import AsyncCompileMode, FutureKernel
from .runtime.autotuner import Config, autotune, heuristics
from .runtime.errors import InterpreterError, OutOfResources
from .runtime.jit import (
    JITFunction,
    KernelInterface,
    MockTensor,
    TensorWrapper,
    constexpr_function,
    jit,
    reinterpret,
)

if TYPE_CHECKING:
    from . import testing, tools
    from .tools import LinearLayout

# The version of the language whose behaviour Tilewright follows; programs compare it.
__version__ = "3.9.0"


def cdiv(x: int, y: int) -> int:
    """x / y rounded up, for y > 0."""
    return -(-x // y)


# Named in a kernel it is the function of the language, which takes values of run time too.
cdiv.__dict__["__tilewright_op__"] = "cdiv"
next_power_of_2 = constexpr_function(tilewright.next_power_of_2)
aggregate = tilewright.language.aggregate
must_use_result = tilewright.language.must_use_result


# Most programs that launch kernels measure nothing.
_LAZY = ("testing", "tools", "profiler")
_missing = refuse(__name__, {"experimental": "write the kernel in triton.language"})


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return import_module(f"{__name__}.{name}")
    if name == "LinearLayout":
        return import_module(f"{__name__}.tools").LinearLayout
    return _missing(name)


__all__ = [
    "AsyncCompileMode",
    "CompilationError",
    "Config",
    "FutureKernel",
    "InterpreterError",
    "JITFunction",
    "KernelInterface",
    "LinearLayout",
    "MockTensor",
    "OutOfResources",
    "TensorWrapper",
    "TritonError",
    "aggregate",
    "autotune",
    "backends",
    "cdiv",
    "compile",
    "compiler",
    "constexpr_function",
    "heuristics",
    "jit",
    "knobs",
    "language",
    "must_use_result",
    "next_power_of_2",
    "reinterpret",
    "runtime",
    "set_allocator",
    "testing",
    "tools",
]
