"""`triton.compiler.compiler`: compile a kernel ahead of its first launch."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Protocol, cast

from tilewright.compiler.build import build_artifact, make_request
from tilewright.frontend.devices import DevicePlacement
from tilewright.frontend.kernel_source import KernelSource
from tilewright.frontend.program import Specialization
from tilewright.machine.model import MachineModel
from tilewright.runtime.artifact import Artifact
from tilewright.runtime.drivers import load_driver
from tilewright.runtime.fingerprint import compiler_fingerprint
from tilewright.runtime.kernel import STATISTICS
from tilewright.support.environment import variable_text
from tilewright.support.errors import TilewrightError
from tilewright.support.options import CompileOptions, option_names

from .. import knobs
from .._names import refuse
from ..backends.compiler import BaseBackend, GPUTarget, backend_for, target_folder
from ..knobs import CompileTimes
from ..runtime.cache_files import get_cache_manager
from ..runtime.driver import driver, has_gpu
from ..runtime.raising import as_triton_raises
from .kernel import AsmDict, CompiledKernel, LazyDict, refuse_ir_source
from .source import ASTSource


class _NamesMachines(Protocol):
    """A driver that describes machines which are not there."""

    def named_machine(self, name: str) -> MachineModel:
        """The features of a machine by its name."""
        ...


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
            src.fn.named(specialized.source, src),
            specialized.specialization,
            CompileOptions().replaced(known),
            wanted,
        )
    except TilewrightError as error:
        raised = as_triton_raises(error, first_line=src.fn.def_line, indent=src.fn.def_indent)
        raise raised.with_traceback(None) from raised.__cause__


class IRSource:
    """A kernel in a file of IR, which Tilewright does not compile."""

    def __init__(self, path: str, context: object = None, backend: object = None) -> None:
        raise refuse_ir_source(str(path))


def max_shared_mem(device: int) -> int:
    """The bytes of shared memory that one program can have."""
    return driver.active.utils.get_device_properties(device)["max_shared_mem"]


def compiled_kernel(
    src: ASTSource,
    source: KernelSource,
    specialization: Specialization,
    options: CompileOptions,
    target: GPUTarget,
    placement: DevicePlacement | None = None,
) -> CompiledKernel:
    """A specialisation compiled, or taken from the disk cache; not loaded yet."""
    where = placement or DevicePlacement(target_folder(target))
    started = _microseconds()
    request = make_request(source, specialization, options, where, _machine(target, where))
    asked, before = _microseconds(), STATISTICS.loaded_from_disk
    artifact = build_artifact(request)
    built, is_hit = _microseconds(), STATISTICS.loaded_from_disk > before
    kernel = CompiledKernel(src, request, artifact, target, where.device)
    if variable_text("TRITON_CACHE_DIR") and _is_launched_plainly(artifact):
        _put_cubin(kernel)
    listener = knobs.compilation.listener
    if listener is not None:
        stages = [] if is_hit else [("compile", built - asked)]
        stored = 0 if is_hit else _microseconds() - built
        times = CompileTimes((built if is_hit else asked) - started, stages, stored)
        listener(
            src=src,
            metadata=kernel.metadata._asdict(),
            metadata_group=dict.fromkeys(artifact.sections, ""),
            times=times,
            cache_hit=is_hit,
        )
    return kernel


def _microseconds() -> int:
    return time.perf_counter_ns() // 1000


def _is_launched_plainly(artifact: Artifact) -> bool:
    """Whether its arguments and a grid are all that the launch of a cubin takes.

    Tensor maps and the grid of a persistent kernel are parameters behind the arguments that the
    launcher fills in, programs that wait for each other start together, and a program may have more
    warps than were asked for: who finds no cubin launches through `run`.
    """
    metadata = artifact.metadata
    options = cast("Mapping[str, object]", metadata.get("options", {}))
    needs_more = (
        metadata.get("tensor_maps")
        or metadata.get("most_programs")
        or options.get("launch_cooperative_grid")
        or metadata.get("num_warps") != options.get("num_warps")
    )
    return "cubin" in artifact.sections and not needs_more


def _put_cubin(kernel: CompiledKernel) -> None:
    """Leave the cubin where clients that launch it themselves look for it."""
    files = get_cache_manager(kernel.hash)
    name = f"{kernel.name}.cubin"
    if files.get_file(name) is None:
        files.put(kernel.artifact.sections["cubin"], name)


def _machine(target: GPUTarget, where: DevicePlacement) -> MachineModel | None:
    """The features of a GPU that is named and not there; None for what is there."""
    if where.is_on_host or has_gpu():
        return None
    named = cast("_NamesMachines", load_driver(where.target))
    return named.named_machine(f"sm_{target.arch}a" if target.arch == 90 else str(target.arch))


__getattr__ = refuse(__name__, {})

__all__ = [
    "ASTSource",
    "AsmDict",
    "CompileTimes",
    "CompiledKernel",
    "GPUTarget",
    "IRSource",
    "LazyDict",
    "compile",
    "make_backend",
    "max_shared_mem",
    "triton_key",
]
