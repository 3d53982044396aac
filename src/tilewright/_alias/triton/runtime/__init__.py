"""`triton.runtime`: jit functions, the autotuner, the driver."""

from __future__ import annotations

from .._names import refuse
from . import _allocation as _allocation
from . import autotuner, build, cache, errors, interpreter, jit
from .autotuner import Autotuner, Config, Heuristics, autotune, heuristics
from .driver import driver
from .errors import InterpreterError, OutOfResources
from .jit import JITCallable, JITFunction, KernelInterface, MockTensor, TensorWrapper, reinterpret

__getattr__ = refuse(__name__, {})

__all__ = [
    "Autotuner",
    "Config",
    "Heuristics",
    "InterpreterError",
    "JITCallable",
    "JITFunction",
    "KernelInterface",
    "MockTensor",
    "OutOfResources",
    "TensorWrapper",
    "autotune",
    "autotuner",
    "build",
    "cache",
    "driver",
    "errors",
    "heuristics",
    "interpreter",
    "jit",
    "reinterpret",
]
