"""The MLIR driver: kernels as stock MLIR lowers them, on the CPU's pool of threads.

It is no way to speed, but a second one to a result, which shares with the CPU target the
language's front and nothing of its schedule.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.machine.model import MachineModel
from tilewright.runtime.artifact import Artifact
from tilewright.runtime.cache import DiskCache, open_default
from tilewright.runtime.fingerprint import compiler_fingerprint
from tilewright.runtime.launcher import SLOW_PATH
from tilewright.support.options import CompileOptions, runtime_options
from tilewright.targets.cpu.driver import CpuDriver, CpuKernel
from tilewright.targets.mlir.executable import compile_object, executable_text, lowered, object_key
from tilewright.targets.mlir.schedule import with_schedule
from tilewright.targets.mlir.tools import find_tools

_OBJECT = "object"


class MlirDriver:
    """Lowers kernels with the MLIR of this machine, and launches them on its CPU."""

    slow_path: object = SLOW_PATH
    stages = ("source", "ttir", "mlir", "memref", "llvm")
    ignored_options = CpuDriver.ignored_options | {"count_cycles"}
    least_divisor = CpuDriver.least_divisor

    def __init__(self, cache: DiskCache | None) -> None:
        self._cache = cache
        self._cpu = CpuDriver(cache)

    def machine(self, device: int | None = None) -> MachineModel:
        """The host: what is compiled runs there, though the text is the same for every machine."""
        return self._cpu.machine(device)

    def check_options(self, options: CompileOptions) -> None:
        """Take all: the options that a CPU has no use for are ignored."""

    def device(self, addresses: Sequence[int]) -> int:
        """The one CPU there is."""
        return 0

    def stream(self, given: object, arrays: Sequence[object], device: int) -> int | None:
        """None: a launch has ended when it returns."""
        return None

    def pending_fault(self) -> None:
        """None: a kernel of the CPU raises what it does wrong."""

    def load(self, artifact: Artifact, device: int | None = None) -> CpuKernel:
        """Lower a kernel's text, or take the object from the cache, and link it.

        Raises: MlirToolNotFound, MlirToolVersion, MlirToolFailed.
        """
        tools, machine = find_tools(), self.machine()
        text = artifact.sections["mlir"].decode()
        if runtime_options().mlir_schedule == "cpu":
            text = with_schedule(text)
        key = object_key(text, tools, machine, compiler_fingerprint())
        stored = None if self._cache is None else self._cache.get(key)
        if stored is None:
            code = executable_text(lowered(text, tools), artifact.metadata)
            stored = {_OBJECT: compile_object(code, machine)}
            if self._cache is not None:
                self._cache.put(key, stored)
        return self._cpu.load(Artifact(artifact.key, artifact.metadata, stored))


def make_driver() -> MlirDriver:
    """The MLIR driver over the default cache."""
    return MlirDriver(open_default())
