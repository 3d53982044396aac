"""`triton.compiler`: compile a kernel ahead of its first launch."""

from __future__ import annotations

from .compiler import ASTSource, CompiledKernel, LazyDict, compile, make_backend
from .errors import CompilationError

__all__ = [
    "ASTSource",
    "CompilationError",
    "CompiledKernel",
    "LazyDict",
    "compile",
    "make_backend",
]
