"""`triton.compiler.compiler`: compile a kernel ahead of its first launch."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.frontend.program import Specialization
from tilewright.frontend.source import KernelSource
from tilewright.jit import build_artifact, make_request
from tilewright.runtime.fingerprint import compiler_fingerprint
from tilewright.support.errors import TilewrightError
from tilewright.support.options import CompileOptions, option_names

from ..backends.compiler import BaseBackend, GPUTarget, backend_for, target_folder
from ..runtime.driver import driver
from ..runtime.raising import as_triton_raises
from .kernel import AsmDict, CompiledKernel, LazyDict, refuse_ir_source
from .source import ASTSource


def triton_key() -> str:
    """The identity of the compiler."""
    return compiler_fingerprint()


def make_backend(target: GPUTarget) -> BaseBackend:
    """The compiler for a target, as an object that answers questions.

    Raises: `UnsupportedError` for a target that kernels cannot be compiled for.
    """
    return backend_for(target)


def compile(
    src: ASTSource | str,
    target: GPUTarget | None = None,
    options: Mapping[str, object] | None = None,
    _env_vars: object = None,
) -> CompiledKernel:
    """Compile a kernel for the types and constants of `src`.

    `options` are those of a launch; names that mean nothing here are ignored.
    Raises: `CompilationError`; `UnsupportedError` for a file of IR.
    """
    if not isinstance(src, ASTSource):
        raise refuse_ir_source(str(src))
    known = {n: v for n, v in (options or {}).items() if n in option_names()}
    wanted = target or driver.active.get_current_target()
    try:
        specialized = src.specialized()
        return compiled_kernel(
            src,
            specialized.source,
            specialized.specialization,
            CompileOptions().replaced(known),
            wanted,
        )
    except TilewrightError as error:
        raised = as_triton_raises(error, first_line=src.fn.def_line)
        raise raised.with_traceback(None) from None


def compiled_kernel(
    src: ASTSource,
    source: KernelSource,
    specialization: Specialization,
    options: CompileOptions,
    target: GPUTarget,
) -> CompiledKernel:
    """A specialisation compiled, or taken from the disk cache; not loaded yet."""
    target_folder(target)
    request = make_request(source, specialization, options)
    return CompiledKernel(src, request, build_artifact(request), target)


__all__ = [
    "ASTSource",
    "AsmDict",
    "CompiledKernel",
    "GPUTarget",
    "LazyDict",
    "compile",
    "make_backend",
    "triton_key",
]
