"""A compiled kernel as the user sees it, and what this process compiled so far."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field

from tilewright.runtime.artifact import RESOURCES_SECTION, Artifact
from tilewright.runtime.driver import Grid, LoadedKernel
from tilewright.support.dataclass import dataclass


class StageTexts(Mapping[str, str | bytes]):
    """The text or bytes of every compilation stage, produced when first asked for.

    Printing the IR costs more than compiling it, so nothing is printed ahead of time.
    """

    def __init__(self, names: Sequence[str], produce: Callable[[str], str | bytes]) -> None:
        self._names = tuple(names)
        self._produce = produce
        self._texts: dict[str, str | bytes] = {}

    def __getitem__(self, name: str) -> str | bytes:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._texts:
            self._texts[name] = self._produce(name)
        return self._texts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True)
class CompiledKernel:
    """One kernel compiled for one specialisation and loaded.

    `asm` maps a stage to its text or bytes: `source`, `ttir`, `llir` everywhere; `nests`, `asm`,
    `object` on the CPU; `t1`, `t2`, `ptx`, `cubin`, `sass` on NVIDIA GPUs. `metadata` says what was
    compiled for what; `remarks` are the compiler's notes on slow paths.
    """

    artifact: Artifact
    loaded: LoadedKernel
    asm: StageTexts = field(repr=False)
    # What a pickle keeps: a function and its arguments, which load the kernel in another process.
    record: Callable[[], tuple[object, ...]] | None = field(default=None, repr=False)

    # Triton's clients have a kernel of another class, which is loaded at its first launch.
    is_loaded = True

    def __reduce__(self) -> str | tuple[object, ...]:
        return super().__reduce__() if self.record is None else self.record()

    def __repr__(self) -> str:
        target = self.artifact.metadata["target"]
        return f"<CompiledKernel {self.name} for {target}, key {self.hash[:12]}>"

    @property
    def name(self) -> str:
        """The kernel's name."""
        return str(self.artifact.metadata["name"])

    @property
    def hash(self) -> str:
        """The cache key."""
        return self.artifact.key

    @property
    def metadata(self) -> Mapping[str, object]:
        """What was compiled, for what."""
        return self.artifact.metadata

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the compiler could not do well, and why."""
        found: list[str] = []
        for remarks in (self.metadata.get("remarks", []), self.resources.get("remarks", [])):
            assert isinstance(remarks, list)
            found += map(str, remarks)
        return tuple(dict.fromkeys(found))

    @property
    def resources(self) -> Mapping[str, object]:
        """What the assembler reports: registers, spills, shared memory; empty on the CPU."""
        section = self.artifact.sections.get(RESOURCES_SECTION)
        return {} if section is None else json.loads(section)

    @property
    def n_regs(self) -> int:
        """The registers of a thread; 0 on the CPU."""
        return int(str(self.resources.get("registers", 0)))

    @property
    def n_spills(self) -> int:
        """How many 32-bit words a thread spills to memory; 0 on the CPU."""
        return int(str(self.resources.get("spill_store_bytes", 0))) // 4

    def launch(self, grid: Grid, arguments: Sequence[object], stream: int | None = None) -> None:
        """Run every program of `grid` on the runtime arguments, in signature order.

        `stream` is the handle of a CUDA stream; None is the default one.
        """
        self.loaded.launch(grid, arguments, stream)


@dataclass
class CompileStatistics:
    """How many kernels this process compiled or loaded from the disk cache, and the time."""

    compiled: int = 0
    loaded_from_disk: int = 0
    compile_seconds: float = 0.0


STATISTICS = CompileStatistics()


def compile_statistics() -> CompileStatistics:
    """The statistics of this process, live."""
    return STATISTICS
