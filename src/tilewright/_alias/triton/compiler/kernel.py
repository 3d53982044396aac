"""`CompiledKernel`: a kernel compiled for one specialisation, as Triton's clients see it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from tilewright.compiler.request import CompileRequest
from tilewright.frontend.devices import HOST_TARGETS
from tilewright.frontend.passing import (
    ParameterFacts,
    check_writable,
    memory_bounds,
    runtime_values,
    stored_paths,
)
from tilewright.frontend.program import ArgumentPath, TupleType
from tilewright.runtime.artifact import Artifact
from tilewright.runtime.driver import FastLaunch, LoadedKernel
from tilewright.runtime.drivers import load_driver
from tilewright.runtime.kernel import RESOURCES_SECTION
from tilewright.runtime.launch_numbers import fits
from tilewright.support.errors import (
    MissingArgument,
    TilewrightError,
    UnexpectedArgument,
    UnsupportedError,
)
from tilewright.support.forking import FORK_GATE

from .. import knobs
from ..backends.compiler import GPUTarget
from ..runtime.raising import as_launch_raises

if TYPE_CHECKING:
    from .source import ASTSource

_MAX_LAUNCHERS = 4
Run = Callable[..., None]


class AsmDict(Mapping[str, str | bytes]):
    """The text of each stage of a kernel, and its binary; made when first asked for."""

    def __init__(self, request: bytes, artifact: Artifact, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._request = request
        self._artifact = artifact
        self._texts: dict[str, str | bytes] = {}

    def __getitem__(self, name: str) -> str | bytes:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._texts:
            from tilewright.compiler.stages import artifact_stage  # loads the compiler

            request = CompileRequest.from_bytes(self._request)
            self._texts[name] = artifact_stage(request, self._artifact, name)
        return self._texts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class LazyDict:
    """Values for launch hooks, some of them computed only when a hook asks."""

    def __init__(self, data: Mapping[str, object]) -> None:
        self.data = dict(data)
        self.extras: list[tuple[Callable[..., Mapping[str, object]], tuple[object, ...]]] = []

    def get(self) -> dict[str, object]:
        """All values."""
        for function, args in self.extras:
            self.data.update(function(*args))
        self.extras.clear()
        return self.data

    def add(self, func: Callable[..., Mapping[str, object]], args: tuple[object, ...]) -> None:
        """Add what `func(*args)` returns, called when the values are asked for."""
        self.extras.append((func, args))


class CompiledKernel:
    """A kernel compiled for one specialisation.

    Everything but `module`, `function` and `run` is data that can be pickled; those three are
    made by `_init_handles`, in the process that launches.
    """

    def __init__(
        self,
        src: ASTSource,
        request: CompileRequest,
        artifact: Artifact,
        target: GPUTarget,
        device: int | None = None,
    ) -> None:
        self.src = src
        self.device = device
        self.artifact = artifact
        self.hash = artifact.key
        self.name = request.name
        self._is_constant = tuple(parameter.is_constexpr for parameter in src.fn.params)
        self.request = request.to_bytes()
        self.asm = AsmDict(self.request, artifact, load_driver(request.target).stages)
        self.metadata = _metadata(request, artifact, target)
        self.packed_metadata = (
            self.metadata.num_warps,
            self.metadata.num_ctas,
            self.metadata.shared,
        )
        self.module: LoadedKernel | None = None
        self.function: int | None = None
        self.run: Run | None = None
        resources = _resources(artifact)
        # A program on a CPU has all registers of its core.
        self.n_regs = int(str(resources.get("registers", request.machine.num_registers)))
        self.n_spills = int(str(resources.get("spill_store_bytes", 0))) // 4
        self.n_max_threads = 1024

    def __repr__(self) -> str:
        return f"<CompiledKernel {self.name} for {self.metadata.target}, key {self.hash[:12]}>"

    def __getstate__(self) -> dict[str, object]:
        """Everything but what is loaded into this process."""
        return {**self.__dict__, "module": None, "function": None, "run": None}

    def _init_handles(self) -> None:
        """Load the kernel into this process."""
        if self.module is not None:
            return
        group = dict.fromkeys(self.artifact.sections, "")
        knobs.runtime.kernel_load_start_hook(None, None, self.name, group, self.hash)
        request = CompileRequest.from_bytes(self.request)
        with FORK_GATE.work():
            self.module = load_driver(request.target).load(self.artifact, self.device)
        self.function = id(self.module)
        self.run = _Launcher(request, self.artifact, self.module, self.device).run
        knobs.runtime.kernel_load_end_hook(self.module, self.function, self.name, group, self.hash)

    @property
    def is_loaded(self) -> bool:
        """Whether the kernel is loaded into this process."""
        return self.module is not None

    @property
    def loaded(self) -> LoadedKernel:
        """The kernel in executable memory."""
        self._init_handles()
        assert self.module is not None
        return self.module

    @property
    def kernel(self) -> bytes:
        """The binary."""
        sections = self.artifact.sections
        return sections.get("cubin") or sections["object"]

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the compiler could not do well, and why."""
        remarks = self.artifact.metadata.get("remarks", [])
        assert isinstance(remarks, list)
        return tuple(str(remark) for remark in remarks)

    def launch(
        self,
        grid: tuple[int, int, int],
        arguments: Sequence[object],
        stream: int | None = None,
    ) -> None:
        """Run every program of `grid` on the runtime arguments, in signature order."""
        self.loaded.launch(grid, arguments, stream)

    def launch_metadata(
        self, grid: tuple[int, ...], stream: object, *args: object
    ) -> LazyDict | None:
        """What launch hooks get: name, function, stream, and what the author adds."""
        if not knobs.runtime.launch_enter_hook:
            return None
        self._init_handles()
        found = LazyDict({"name": self.name, "function": self.function, "stream": stream})
        describe = getattr(self.src.fn, "launch_metadata", None)
        if describe is not None:
            named = dict(zip(self.src.fn.arg_names, args, strict=False))
            found.add(describe, (grid, self.metadata, named))
        return found

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        """The launcher over `grid`; it takes the arguments with all constants, or with none."""
        self._init_handles()
        extents = (*grid, 1, 1)[:3]
        is_constant = self._is_constant
        values = is_constant.count(False)

        def launch(*args: object, stream: object = None) -> None:
            assert self.run is not None
            if len(args) == values < len(is_constant):
                given = iter(args)
                args = tuple(None if is_left_out else next(given) for is_left_out in is_constant)
            self.run(*extents, stream, self.function, self.packed_metadata, None, None, None, *args)

        return launch


class _Launcher:
    """Launches one compiled kernel; `run` keeps a native launcher for each kind of arguments."""

    def __init__(
        self, request: CompileRequest, artifact: Artifact, module: LoadedKernel, device: int | None
    ) -> None:
        self._kernel = request.name
        self._request, self._artifact, self._device = request, artifact, device
        self._stored = stored = stored_paths(artifact.metadata)
        self._otherwise: LoadedKernel | None = None
        self._specialization = request.specialization
        self._names = tuple(name for name, _ in request.specialization.signature)
        self._module = module
        self._has_streams = request.target not in HOST_TARGETS
        self._is_checked = bool(request.options.get("checked"))
        self._facts = None if self._is_checked else _facts(request, stored)
        self.run = self._make_run()

    def _make_run(self) -> Run:
        launchers: list[FastLaunch] = []
        slow, has_streams = self._launch_slowly, self._has_streams
        current_stream = self._current_stream

        def run(
            grid_0: int,
            grid_1: int,
            grid_2: int,
            stream: object,
            function: object,
            packed_metadata: object,
            launch_metadata: object,
            launch_enter_hook: Callable[[object], object] | None,
            launch_exit_hook: Callable[[object], object] | None,
            *args: object,
        ) -> None:
            if launch_enter_hook:
                launch_enter_hook(launch_metadata)
            if has_streams:
                args = (*args, current_stream() if stream is None else stream)
            for launch in launchers:
                if launch(grid_0, grid_1, grid_2, *args) is None:
                    break
            else:
                slow(launchers, (grid_0, grid_1, grid_2), args)
            if launch_exit_hook:
                launch_exit_hook(launch_metadata)

        return run

    def _launch_slowly(
        self, launchers: list[FastLaunch], grid: tuple[int, int, int], args: tuple[object, ...]
    ) -> None:
        """Launch, and keep a native launcher for arguments like these."""
        try:
            named = self._named(args)
        except TilewrightError as error:
            raise as_launch_raises(error) from None
        check_writable(self._kernel, self._stored, named)
        values = runtime_values(self._specialization, named)
        is_fit = fits(self._artifact.metadata, grid, values)
        other = None if is_fit else self._without_guards()
        if self._facts is not None:
            others = () if other is None else (other,)
            launcher = self._module.fast_launcher(self._facts, args, others)
            if launcher is not None:
                launchers.insert(0, launcher)
                del launchers[_MAX_LAUNCHERS:]
        stream = int(str(args[-1])) if self._has_streams else None
        if self._is_checked:
            values.extend(memory_bounds(self._specialization, named))
        if 0 not in grid:
            (other or self._module).launch(grid, values, stream)

    def _current_stream(self) -> int:
        """The stream that this thread works on: a launch that names none goes there."""
        driver = load_driver(self._request.target)
        device = driver.device(()) if self._device is None else self._device
        return driver.stream(None, (), device) or 0

    def _without_guards(self) -> LoadedKernel:
        """The kernel for launches that this one is not made for, compiled when one comes."""
        if self._otherwise is None:
            from tilewright.compiler.build import build_artifact, without_guards

            request = without_guards(self._request)
            with FORK_GATE.work():
                driver = load_driver(request.target)
                self._otherwise = driver.load(build_artifact(request), self._device)
        return self._otherwise

    def _named(self, args: tuple[object, ...]) -> dict[str, object]:
        """The arguments by name, constants included.

        Raises: MissingArgument, UnexpectedArgument.
        """
        given = args[:-1] if self._has_streams else args
        if len(given) < len(self._names):
            missing = self._names[len(given)]
            raise MissingArgument(
                f"{self._kernel}(): the argument `{missing}` is missing",
                argument=missing,
                hint="a compiled kernel takes every parameter by position, constants included: "
                + ", ".join(f"`{name}`" for name in self._names),
            )
        if len(given) > len(self._names):
            raise UnexpectedArgument(
                f"{self._kernel}() takes {len(self._names)} arguments but {len(given)} were given",
                hint="the parameters are " + ", ".join(f"`{name}`" for name in self._names),
            )
        return dict(zip(self._names, given, strict=True))


def _facts(request: CompileRequest, stored: frozenset[ArgumentPath]) -> list[ParameterFacts] | None:
    """What the native launcher checks: types, and the alignment that was promised."""
    facts: list[ParameterFacts] = []
    slot = 0
    specialization = request.specialization
    for name, type_ in specialization.signature:
        if isinstance(type_, TupleType) or type_.startswith("tensordesc"):
            return None
        if type_ == "constexpr":
            facts.append(ParameterFacts(type_, None, None, False))
            continue
        is_promised = type_.startswith("*") and (name,) in specialization.divisibility
        is_stored = (name,) in stored
        facts.append(ParameterFacts(type_, slot, True if is_promised else None, True, is_stored))
        slot += 1
    if request.target not in HOST_TARGETS:
        facts.append(ParameterFacts("i64", slot, None, True))  # the stream
    return facts


def _resources(artifact: Artifact) -> Mapping[str, object]:
    """What the assembler reported; nothing on the CPU."""
    section = artifact.sections.get(RESOURCES_SECTION)
    return {} if section is None else json.loads(section)


# Scripts divide by it; a program on a CPU takes nothing that others could run out of.
_LEAST_BYTES = 1


class KernelMetadata(NamedTuple):
    """What a kernel was compiled for and what it needs."""

    name: str
    hash: str
    target: GPUTarget
    num_warps: int
    num_stages: int
    num_ctas: int
    cluster_dims: tuple[int, int, int]
    shared: int
    warp_size: int
    debug: bool
    backend_name: str
    launch_pdl: bool
    launch_cooperative_grid: bool


def _metadata(request: CompileRequest, artifact: Artifact, target: GPUTarget) -> KernelMetadata:
    options = request.options
    return KernelMetadata(
        name=request.name,
        hash=artifact.key,
        target=target,
        num_warps=int(options.get("num_warps") or 1),
        num_stages=int(options.get("num_stages") or 1),
        num_ctas=int(options.get("num_ctas") or 1),
        cluster_dims=_cluster(options.get("cluster_dims")),
        shared=int(str(artifact.metadata.get("shared_bytes", _LEAST_BYTES))),
        warp_size=target.warp_size,
        debug=bool(options.get("debug")),
        backend_name=target.backend,
        launch_pdl=bool(options.get("launch_pdl")),
        launch_cooperative_grid=bool(options.get("launch_cooperative_grid")),
    )


def _cluster(given: object) -> tuple[int, int, int]:
    """The ctas of a cluster along each axis of the grid."""
    if not isinstance(given, tuple | list):
        return (1, 1, 1)
    x, y, z = (int(str(extent)) for extent in cast("Sequence[object]", given))
    return (x, y, z)


def refuse_ir_source(path: str) -> UnsupportedError:
    """The error for a kernel that is given as a file of IR."""
    return UnsupportedError(
        f"compile(): kernels in the IR file {path} cannot be compiled",
        hint="compile the jit function itself: ASTSource(fn, signature, constexprs, attrs)",
    )
