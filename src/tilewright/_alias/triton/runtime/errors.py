"""`triton.runtime.errors`: our errors under Triton's names."""

from __future__ import annotations

from tilewright.runtime.tuning import NoUsableConfig as AutotunerError
from tilewright.support.errors import KernelFault as InterpreterError
from tilewright.support.errors import TilewrightError as TritonError
from tilewright.support.errors import UnsupportedError as OutOfResources

__all__ = ["AutotunerError", "InterpreterError", "OutOfResources", "TritonError"]
