"""`triton.runtime`: jit functions, the autotuner, the driver."""

from __future__ import annotations

from . import allocation, autotuner, driver, errors, jit
from .autotuner import Autotuner, Config, Heuristics, autotune, heuristics
from .errors import InterpreterError, OutOfResources
from .jit import JITFunction, KernelInterface, MockTensor, TensorWrapper, reinterpret

__all__ = [
    "Autotuner",
    "Config",
    "Heuristics",
    "InterpreterError",
    "JITFunction",
    "KernelInterface",
    "MockTensor",
    "OutOfResources",
    "TensorWrapper",
    "allocation",
    "autotune",
    "autotuner",
    "driver",
    "errors",
    "heuristics",
    "jit",
    "reinterpret",
]
