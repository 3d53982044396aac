"""`triton.compiler.errors`: errors of compiling, under Triton's names."""

from __future__ import annotations

from tilewright.support.errors import CompileError as CompilationError
from tilewright.support.errors import StaticAssertionFailed as CompileTimeAssertionFailure
from tilewright.support.errors import TilewrightError as TritonError
from tilewright.support.errors import UnsupportedConstruct as UnsupportedLanguageConstruct

__all__ = [
    "CompilationError",
    "CompileTimeAssertionFailure",
    "TritonError",
    "UnsupportedLanguageConstruct",
]
