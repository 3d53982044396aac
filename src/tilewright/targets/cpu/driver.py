"""The CPU driver: links cached objects and launches them on the native pool.

Imported on the first launch, also on a cache hit, so it imports llvmlite's binding and
neither xDSL nor the compiler.
"""

from __future__ import annotations

import ctypes
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from tilewright.codegen.link import LoadedCode, load_object
from tilewright.machine.model import MachineModel
from tilewright.runtime.arguments import guard_of
from tilewright.runtime.artifact import Artifact
from tilewright.runtime.cache import DiskCache, open_default
from tilewright.runtime.driver import FastLaunch, Grid, LoadedKernel, ParameterGuard
from tilewright.runtime.launcher import SLOW_PATH, pack_slot
from tilewright.support.dataclass import dataclass, replace
from tilewright.support.errors import UnsupportedError
from tilewright.support.options import CompileOptions, runtime_options
from tilewright.targets.cpu.host import host_machine, usable_cpus
from tilewright.targets.cpu.runtime.amx_permission import is_amx_permitted
from tilewright.targets.cpu.runtime.cycle_counts import COUNTS_SYMBOL, KernelCounts, note_counts
from tilewright.targets.cpu.runtime.native import NativeRuntime, native_runtime
from tilewright.targets.cpu.runtime.pool import KernelRecord
from tilewright.targets.cpu.runtime.status import Site, StatusRecord, fault_of

KERNEL_SYMBOL = "tilewright_kernel"
# A virtual machine sees its host's whole cache and owns a share: results of 256 MB on a host
# with 260 MB of it ran 1.2-1.5 times faster past the cache. Measured on 2 CPUs of such a machine,
# 2026-11-21.
_L3_SHARE_BYTES = 16 << 20


@dataclass(frozen=True)
class CpuKernel:
    """One kernel linked into this process, with its launch record."""

    code: LoadedCode
    record: KernelRecord
    types: tuple[str, ...]
    runtime: NativeRuntime
    name: str
    sites: tuple[Site, ...] = ()
    status: StatusRecord | None = None
    has_prints: bool = False

    def launch(self, grid: Grid, arguments: Sequence[object], stream: int | None = None) -> None:
        """Run every program of `grid`; arguments in signature order, arrays by their address."""
        slots = b"".join(
            pack_slot(type_, value) for type_, value in zip(self.types, arguments, strict=True)
        )
        if not self.has_prints:
            self.runtime.launch_raw(self.record, grid, slots)
        else:
            assert self.status is not None
            with printing_to_stdout(self.status):
                self.runtime.launch_raw(self.record, grid, slots)
        self.check_status()

    def check_status(self) -> None:
        """Raise what the launch reported, and clear the record. Raises: KernelFault."""
        if self.status is None or self.status.word == 0:
            return
        fault = fault_of(self.status, list(self.sites), self.name)
        self.status.word = 0
        raise fault

    def fast_launcher(
        self,
        parameters: Sequence[ParameterGuard],
        arguments: Sequence[object],
        others: Sequence[LoadedKernel] = (),
    ) -> FastLaunch | None:
        """The guarded native launcher for arguments like these, or None."""
        if self.has_prints:
            return None
        guards = [guard_of(p, value) for p, value in zip(parameters, arguments, strict=True)]
        kept = [guard for guard in guards if guard is not None]
        if len(kept) < len(guards):
            return None
        on_status = None if self.status is None else self.check_status
        return self.runtime.make_launcher(kept, self.record, on_status, self.code)


@contextmanager
def printing_to_stdout(status: StatusRecord) -> Generator[None]:
    """Let the kernel print to Python's standard output, through a file where that is no file."""
    number = _standard_output()
    if number is not None:
        status.print_file = number
        yield
        return
    with tempfile.TemporaryFile() as file:
        status.print_file = file.fileno()
        yield
        file.seek(0)
        sys.stdout.write(file.read().decode(errors="replace"))


def _standard_output() -> int | None:
    """The descriptor behind `sys.stdout`, flushed; None in a notebook or under capture."""
    try:
        sys.stdout.flush()
        return sys.stdout.fileno()
    except (OSError, ValueError, AttributeError):
        return None


class CpuDriver:
    """Loads and launches kernels on this machine's CPU."""

    slow_path: object = SLOW_PATH
    stages = ("source", "ttir", "nests", "llir", "asm", "object")
    ignored_options = frozenset(
        (
            *("num_warps", "num_stages", "num_ctas", "maxnreg", "cluster_dims"),
            *("launch_cooperative_grid", "launch_pdl", "ptx_options", "descriptors", "plan"),
            *("num_consumer_groups", "num_buffers_warp_spec", "schedule"),
            "loop_schedule",
            *("reg_dec_producer", "reg_inc_consumer"),
            *("bulk_access", "may_overlap", "deadlock_seconds", "jitter"),
        )
    )

    # Vectors of this machine begin anywhere: what is smaller changes no access.
    least_divisor = 16

    def __init__(self, cache: DiskCache | None) -> None:
        self._cache = cache

    def machine(self, device: int | None = None) -> MachineModel:
        """The features of the host that decide what is compiled."""
        host = host_machine()
        own_bytes = min(host.l3_bytes, _L3_SHARE_BYTES * len(usable_cpus()))
        return replace(host, l3_bytes=own_bytes, host_l3_bytes=host.l3_bytes)

    def check_options(self, options: CompileOptions) -> None:
        """Take all: the options that a CPU has no use for are ignored."""

    def device(self, addresses: Sequence[int]) -> int:
        """The one CPU there is."""
        return 0

    def stream(self, given: object, arrays: Sequence[object], device: int) -> int | None:
        """None: a launch on the CPU has ended when it returns, whatever stream it is given."""
        return None

    def pending_fault(self) -> None:
        """None: a kernel of the CPU raises what it does wrong."""

    def load(self, artifact: Artifact, device: int | None = None) -> CpuKernel:
        """Link the object of an artifact and make its launch record.

        Raises: UnsupportedError for code that uses AMX where the system does not permit it; its
        first tile instruction would end the process.
        """
        if artifact.metadata.get("uses_amx") and not is_amx_permitted():
            raise UnsupportedError(
                "this kernel was compiled for AMX, which this process may not use",
                hint="compile it here: without AMX it takes vectors. Linux refuses AMX where a "
                "thread has a signal stack too small for it, and under some sandboxes",
            )
        code = _linked(artifact)
        options = runtime_options()
        runtime = native_runtime(self._cache, options.num_threads)
        if options.reports_faults and runtime.faults is not None:
            runtime.faults.note(artifact, code, KERNEL_SYMBOL)
        arena_bytes = int(str(artifact.metadata.get("arena_bytes", 0)))
        metadata = artifact.metadata
        sites, slots = metadata.get("sites", []), metadata["slots"]
        assert isinstance(sites, list) and isinstance(slots, list)
        has_prints = bool(metadata.get("has_prints"))
        status = StatusRecord() if sites or has_prints else None
        address = None if status is None else ctypes.addressof(status)
        flags = _atomic_flags(metadata.get("atomics", []))
        return CpuKernel(
            code,
            runtime.pool.make_record(code.addresses[KERNEL_SYMBOL], arena_bytes, address, flags),
            tuple(map(str, slots)),
            runtime,
            str(metadata["name"]),
            tuple(Site.from_json(site) for site in sites),
            status,
            has_prints,
        )


def _linked(artifact: Artifact) -> LoadedCode:
    """The code of an artifact in this process, with what it counts."""
    num_parts = int(str(artifact.metadata.get("num_counted", 0)))
    counts = (COUNTS_SYMBOL,) if num_parts else ()
    code = load_object(artifact.sections["object"], KERNEL_SYMBOL, *counts)
    if num_parts:
        note_counts(KernelCounts(artifact.key, code, num_parts))
    return code


def _atomic_flags(atomics: object) -> int:
    """The flags of a launch record for what the compiler says of a kernel's atomics."""
    assert isinstance(atomics, list)
    flags = {"any": KernelRecord.HAS_ATOMICS, "alone": KernelRecord.MAY_BE_ALONE}
    return sum(flags[name] for name in atomics)


def make_driver() -> CpuDriver:
    """The CPU driver over the default cache."""
    return CpuDriver(open_default())
