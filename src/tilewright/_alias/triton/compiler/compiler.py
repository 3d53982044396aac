"""`triton.compiler.compiler`: the compiled kernel."""

from __future__ import annotations

from tilewright.runtime.kernel import CompiledKernel

__all__ = ["CompiledKernel"]
