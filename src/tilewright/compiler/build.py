"""From a specialised kernel to a loaded one: the request, the disk cache, the compiler, the driver.

Part of a cache hit: what compiles is imported where something has to be compiled.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.compiler.collector import CompileCall, record_call
from tilewright.compiler.request import CompileRequest
from tilewright.frontend.devices import DevicePlacement
from tilewright.frontend.kernel_source import KernelSource
from tilewright.frontend.program import Specialization
from tilewright.language.stubs import EXTENSIONS
from tilewright.machine.model import MachineModel
from tilewright.runtime.ahead import JOBS, CompileJob
from tilewright.runtime.artifact import Artifact
from tilewright.runtime.cache import open_default
from tilewright.runtime.drivers import load_driver
from tilewright.runtime.fingerprint import compiler_fingerprint
from tilewright.runtime.isolation import is_isolated
from tilewright.runtime.kernel import STATISTICS, CompiledKernel, StageTexts
from tilewright.support.collection import collection_paused
from tilewright.support.dataclass import replace
from tilewright.support.errors import InternalError
from tilewright.support.forking import FORK_GATE
from tilewright.support.options import CompileOptions, debug_options, option_names


def make_request(
    source: KernelSource,
    specialization: Specialization,
    options: CompileOptions,
    placement: DevicePlacement | None = None,
    machine: MachineModel | None = None,
) -> CompileRequest:
    """What to compile a specialisation of a kernel with; `machine` None is the placement's own.

    Raises: UnsupportedError for an option that the target does not have.
    """
    record_call(CompileCall(source, specialization, options))
    where = placement or DevicePlacement()
    driver = load_driver(where.target)
    driver.check_options(options)
    names = [name for name in option_names() if name not in driver.ignored_options]
    fields = {name: getattr(options, name) for name in names}
    if machine is None:
        machine = driver.machine(where.device)
    return CompileRequest(
        source.functions,
        source.kernel,
        specialization.with_divisors_from(driver.least_divisor),
        fields,
        where.target,
        machine,
        tuple(EXTENSIONS),
    )


def without_guards(request: CompileRequest) -> CompileRequest:
    """The request for launches that the kernel of another one is not made for."""
    options = request.compile_options.without_guards()
    return replace(request, options={name: getattr(options, name) for name in request.options})


def _compile(request: CompileRequest, key: str) -> Artifact:
    job = JOBS.pop(key, None)
    if job is not None:
        from tilewright.compiler.client import take

        artifact = take(job, request)
        if artifact is not None:
            return artifact
    if is_isolated():
        from tilewright.compiler.worker import compile_in_worker

        return compile_in_worker(request, key)
    from tilewright.compiler.instruments import compile_watched

    return compile_watched(request, key)


@FORK_GATE.work()
@collection_paused()
def build_artifact(request: CompileRequest) -> Artifact:
    """Compile a request, or take what it compiles to from the disk cache."""
    key = request.cache_key(compiler_fingerprint())
    cache = open_default()
    stored = None if debug_options().always_compile else cache.get(key)
    artifact = None if stored is None else Artifact.from_sections(key, stored)
    if artifact is not None:
        STATISTICS.loaded_from_disk += 1
        return artifact
    artifact = _compile(request, key)
    STATISTICS.compiled += 1
    STATISTICS.compile_seconds += float(str(artifact.metadata["compile_seconds"]))
    cache.put(key, artifact.to_sections())
    return artifact


def compile_ahead(request: CompileRequest, num_left: int) -> CompileJob | None:
    """Have a request compiled in another process while this one goes on.

    None where the disk cache has it, or another process would not make it faster; `num_left`
    requests are to be compiled, this one included. `build_artifact` waits for the job.
    """
    key = request.cache_key(compiler_fingerprint())
    if not debug_options().always_compile and open_default().get(key) is not None:
        return None
    from tilewright.compiler.client import submit

    return submit(request, key, num_left)


@FORK_GATE.work()
@collection_paused()
def build_kernel(
    source: KernelSource,
    specialization: Specialization,
    options: CompileOptions,
    placement: DevicePlacement | None = None,
) -> CompiledKernel:
    """Compile a specialisation, or take it from the disk cache, and load it."""
    where = placement or DevicePlacement()
    request = make_request(source, specialization, options, where)
    artifact = build_artifact(request)
    return load_kernel(request, artifact, where.device)


def load_kernel(request: CompileRequest, artifact: Artifact, device: int | None) -> CompiledKernel:
    """The kernel that a request was compiled to, in executable memory of a device."""
    driver = load_driver(request.target)
    loaded = driver.load(artifact, device)

    def produce(stage: str) -> str | bytes:
        from tilewright.compiler.stages import artifact_stage

        return artifact_stage(request, artifact, stage)

    def record() -> tuple[object, ...]:
        key, sections = artifact.key, dict(artifact.to_sections())
        return (load_recorded_kernel, (request.to_bytes(), key, sections, device))

    return CompiledKernel(artifact, loaded, StageTexts(driver.stages, produce), record)


@FORK_GATE.work()
def load_recorded_kernel(
    request: bytes, key: str, sections: Mapping[str, bytes], device: int | None
) -> CompiledKernel:
    """The kernel that a pickle holds, loaded into this process. Raises: InternalError."""
    artifact = Artifact.from_sections(key, sections)
    if artifact is None:
        raise InternalError("the pickle of a compiled kernel is damaged")
    return load_kernel(CompileRequest.from_bytes(request), artifact, device)
