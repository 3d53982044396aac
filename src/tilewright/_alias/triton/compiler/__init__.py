"""`triton.compiler`: compile a kernel ahead of its first launch."""

from __future__ import annotations

from .compiler import (
    ASTSource,
    CompiledKernel,
    IRSource,
    LazyDict,
    compile,
    make_backend,
    max_shared_mem,
)
from .errors import CompilationError

__all__ = [
    "ASTSource",
    "CompilationError",
    "CompiledKernel",
    "IRSource",
    "LazyDict",
    "compile",
    "make_backend",
    "max_shared_mem",
]
