"""`triton.compiler`: the compiled kernel and the errors of compiling."""

from __future__ import annotations

from tilewright.runtime.kernel import CompiledKernel

from . import errors
from .errors import CompilationError

__all__ = ["CompilationError", "CompiledKernel", "errors"]
