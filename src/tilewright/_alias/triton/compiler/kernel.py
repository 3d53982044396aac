"""`CompiledKernel`: a kernel compiled for one specialisation, as Triton's clients see it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from tilewright.compiler.request import CompileRequest
from tilewright.runtime.artifact import Artifact
from tilewright.runtime.driver import LoadedKernel
from tilewright.runtime.drivers import load_driver
from tilewright.runtime.kernel import RESOURCES_SECTION
from tilewright.support.errors import (
    UnsupportedError,
)
from tilewright.support.forking import FORK_GATE

from .. import knobs
from ..backends.compiler import GPUTarget
from .kernel_launcher import Launcher, Run

if TYPE_CHECKING:
    from .source import ASTSource


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
        self.run = Launcher(request, self.artifact, self.module, self.device).run
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
