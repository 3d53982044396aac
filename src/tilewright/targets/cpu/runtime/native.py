"""The native runtime of the CPU target: pool and launcher, compiled once and cached on disk."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import platform
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import llvmlite.binding as llvm

from tilewright.codegen.launch_calls import PYTHON_EXTERNALS
from tilewright.codegen.link import LoadedCode, load_object
from tilewright.codegen.optimize import LAUNCH_PIPELINE, compile_module
from tilewright.codegen.whitelist import CPU_WHITELIST
from tilewright.runtime.launch_table import Guard
from tilewright.runtime.launcher import SLOW_PATH, Launch, LauncherFactory, always_slow
from tilewright.runtime.object_layout import has_known_object_layout
from tilewright.support.errors import InternalError
from tilewright.support.forking import ThreadLock
from tilewright.targets.cpu.host import available_parallelism, host_machine, usable_cpus
from tilewright.targets.cpu.runtime.fault_ir import FAULT_SYMBOLS, fault_text, handles_faults
from tilewright.targets.cpu.runtime.faults import FaultReports
from tilewright.targets.cpu.runtime.launcher_ir import CPU_LAUNCHER_SYMBOLS, cpu_launcher_text
from tilewright.targets.cpu.runtime.platform_ir import LINUX_EXTERNALS
from tilewright.targets.cpu.runtime.pool import KernelRecord, PoolFunctions, ThreadPool
from tilewright.targets.cpu.runtime.pool_ir import POOL_SYMBOLS, pool_text
from tilewright.targets.cpu.runtime.pool_layout import pool_constants

_SYMBOLS = POOL_SYMBOLS + CPU_LAUNCHER_SYMBOLS
_WHITELIST = CPU_WHITELIST.extended(LINUX_EXTERNALS + PYTHON_EXTERNALS)


class SectionCache(Protocol):
    """A store of named byte sections by key; it may forget anything at any time."""

    def get(self, key: str) -> Mapping[str, bytes] | None:
        """The sections stored under `key`, or None."""
        ...

    def put(self, key: str, sections: Mapping[str, bytes]) -> object:
        """Store sections under `key`."""
        ...


class NativeRuntime:
    """The loaded pool and launcher code, and the pool that kernels run on."""

    def __init__(self, cache: SectionCache | None = None, num_threads: int | None = None) -> None:
        self._code = _load_code(cache)
        addresses = self._code.addresses
        self._functions = PoolFunctions(
            addresses["pool_run"], addresses["pool_close"], addresses["pool_reset"]
        )
        self._factory = self._make_factory() if has_known_object_layout() else None
        self._watch_interrupts(addresses["handle_interrupts_of_python"])
        self.faults = FaultReports(addresses) if _handles_faults() else None
        self._launch_raw = self._factory and self._factory.bare("launch_raw")
        num_threads = num_threads or available_parallelism()
        self.pool = self.make_pool(num_threads, _pinning_cpus(num_threads))

    def _watch_interrupts(self, address: int) -> None:
        """Let SIGINT stop a running grid."""
        watch = ctypes.PYFUNCTYPE(None, ctypes.c_int64, ctypes.py_object)(address)
        main_thread = threading.main_thread().ident or 0
        # An address as C's signed word; the function is of this module, which stays.
        watch(ctypes.c_int64(main_thread).value, interrupt_launch)

    def _make_factory(self) -> LauncherFactory:
        addresses = {name: self._code.addresses[name] for name in CPU_LAUNCHER_SYMBOLS}
        return LauncherFactory(addresses, self._code)

    def make_pool(self, num_threads: int, cpus: tuple[int, ...] = ()) -> ThreadPool:
        """Another pool of its own; pinned to `cpus`, or not pinned."""
        return ThreadPool(self._functions, num_threads, cpus)

    def make_launcher(
        self,
        guards: Sequence[Guard],
        record: KernelRecord,
        on_status: Callable[[], object] | None = None,
        keepalive: object = None,
    ) -> Launch:
        """A guarded native callable for one compiled kernel (see `LauncherFactory.make`)."""
        if self._factory is None:
            return always_slow
        if record.status and on_status is None:
            raise InternalError("a record with a status address needs a status handler")
        return self._factory.make(guards, record, on_status, keepalive)

    def launch_raw(self, record: KernelRecord, grid: tuple[int, int, int], slots: bytes) -> None:
        """Launch with argument slots that are packed already (8 bytes each).

        Raises: MemoryError, InvalidGrid, ValueError for a grid that is not three sizes
        below 2^31. The status word is the caller's to check.
        """
        if self._launch_raw is None:
            buffer = ctypes.create_string_buffer(slots, len(slots))
            self.pool.run(record, ctypes.addressof(buffer), grid)
            return
        if self._launch_raw(ctypes.addressof(record), *grid, slots) is SLOW_PATH:
            raise ValueError(f"the grid {grid} is not three sizes from 0 to 2^31-1")


def interrupt_launch() -> None:
    """Raise on a thread whose grid runs when Ctrl-C raises on the main one: both shall end.

    Raises: KeyboardInterrupt, where Python's own handler of SIGINT is in place.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        raise KeyboardInterrupt


def native_runtime(
    cache: SectionCache | None = None, num_threads: int | None = None
) -> NativeRuntime:
    """The native runtime of this process; the first call decides the cache and the threads."""
    with _creation_lock:
        if not _created:
            _created.append(NativeRuntime(cache, num_threads))
        return _created[0]


# One runtime a process is the point: its threads and its code are the process's.
_creation_lock = ThreadLock()
_created: list[NativeRuntime] = []
_imported_in_pid = os.getpid()


def _pinning_cpus(num_threads: int) -> tuple[int, ...]:
    """The CPUs to pin a first pool's workers to; none where pinning would do harm.

    A forked process shares the machine with its parent and its siblings, and more threads
    than CPUs have to be moved about by the kernel.
    """
    cpus = usable_cpus()
    is_forked = os.getpid() != _imported_in_pid
    return () if is_forked or num_threads > len(cpus) else cpus


def module_text() -> str:
    """The LLVM text of pool, launcher and handler of faults for this machine."""
    architecture = platform.machine()
    pool = pool_text(architecture, sys.platform == "linux")
    faults = fault_text(architecture) if _handles_faults() else ""
    return pool + faults + cpu_launcher_text(pool_constants())


def _handles_faults() -> bool:
    return handles_faults(platform.machine(), sys.platform == "linux")


def _load_code(cache: SectionCache | None) -> LoadedCode:
    text = module_text()
    key = _cache_key(text)
    stored = None if cache is None else cache.get(key)
    if stored is not None and "object" in stored:
        # A cached object that does not link is as good as none.
        with contextlib.suppress(InternalError):
            return _link(stored["object"])
    host = host_machine()
    # Level 0 of the back end is three times as fast and costs a launch 10 ns, the passes that
    # are left out cost nothing that can be measured (0.82 µs a launch with them and without).
    compiled = compile_module(
        text,
        host.arch,
        host.features,
        whitelist=_WHITELIST,
        passes=LAUNCH_PIPELINE,
        opt_level=0,
    )
    if cache is not None:
        cache.put(key, {"object": compiled.object})
    return _link(compiled.object)


def _link(object_bytes: bytes) -> LoadedCode:
    faults = FAULT_SYMBOLS if _handles_faults() else ()
    code = load_object(object_bytes, *_SYMBOLS, *faults)
    code.keep_forever()
    return code


def _cache_key(text: str) -> str:
    host = host_machine()
    parts = (text, host.triple, host.arch, *host.features, *map(str, llvm.llvm_version_info))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
