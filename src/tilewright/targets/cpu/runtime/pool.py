"""The native thread pool as Python sees it: a state block, a kernel's record, life and death."""

from __future__ import annotations

import ctypes
import os
import weakref

from tilewright.machine.cpus import LINE_BYTES
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError, InvalidGrid
from tilewright.targets.cpu.runtime.pool_layout import (
    GRID_TOO_LARGE,
    OUT_OF_MEMORY,
    PARTICIPANT_BYTES,
    POOL_FIELDS,
    POOL_HEADER_BYTES,
    RECORD_FIELDS,
)

# Long enough to bridge two launches from a Python loop, short enough not to matter. Chosen, not
# measured: who spins too short sleeps, and is woken.
SPIN_NS = 50_000


class KernelRecord(ctypes.Structure):
    """What the pool keeps of one compiled kernel; it must outlive every launch.

    Kernel ABI: `void kernel(ptr args, ptr grid, i64 begin, i64 end, ptr context)`. `args` is
    an array of 8-byte slots, `grid` three i32, programs are linear ids with axis 0 fastest,
    `context` is `{ptr scratch, ptr status, i64 worker_index, ptr launch}`. `scratch` is
    page-aligned, `arena_bytes` long and not initialised (null for 0 bytes).

    Units: `program_ns` is the estimated time of one program, negative while unknown; `alone_ns`
    that of one that runs atomics alone.
    """

    _fields_ = (
        ("kernel", ctypes.c_void_p),
        ("arena_bytes", ctypes.c_int64),
        ("program_ns", ctypes.c_double),
        ("status", ctypes.c_void_p),
        ("pool", ctypes.c_void_p),
        ("flags", ctypes.c_int64),
        ("alone_ns", ctypes.c_double),
    )

    # By definition: a bit of the flags. Ignore the estimate and use every thread: for kernels
    # whose programs wait on each other, and for tests.
    ALWAYS_PARALLEL = 1
    # The kernel has atomics: its launches do not run beside one that runs them alone. It may do
    # that itself: it has code for it, and waits for nobody.
    HAS_ATOMICS, MAY_BE_ALONE = 2, 4


@dataclass(frozen=True)
class PoolFunctions:
    """The addresses of the pool's native entry points."""

    run: int
    close: int
    reset: int


class ThreadPool:
    """A pool of `num_threads` participants: the launching thread and the native workers.

    The workers start with the first launch that is worth them. `cpus` are the CPUs that the
    workers are pinned to, one each (empty: not pinned). A forked child gets fresh, unpinned
    workers on its first launch. The state block is never freed: a worker that is on its way
    out may still read it.
    """

    def __init__(
        self, functions: PoolFunctions, num_threads: int, cpus: tuple[int, ...] = ()
    ) -> None:
        if num_threads < 1:
            raise ValueError(f"a pool needs at least one thread, got {num_threads}")
        self.num_threads = num_threads
        self._run = ctypes.CFUNCTYPE(
            ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
        )(functions.run)
        self._close = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(functions.close)
        # No GIL release around this one: it runs in a child that has a single thread.
        self._reset = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(functions.reset)
        self._state = _allocate_state(num_threads, cpus)
        _reset_after_fork(self)

    @property
    def address(self) -> int:
        """The address of the pool's native state."""
        return self._state

    @property
    def num_workers(self) -> int:
        """How many native workers exist at the moment."""
        return ctypes.c_int32.from_address(self._state + POOL_FIELDS["alive"]).value

    def make_record(
        self, kernel: int, arena_bytes: int = 0, status: int | None = None, flags: int = 0
    ) -> KernelRecord:
        """A launch record for the kernel at address `kernel`, to be run by this pool."""
        return KernelRecord(kernel, arena_bytes, -1.0, status, self._state, flags, -1.0)

    def run(self, record: KernelRecord, args: int, grid: tuple[int, int, int]) -> None:
        """Run every program of `grid` once; `args` is the address of the argument slots.

        Raises: MemoryError, InvalidGrid (more than 2^63 programs).
        """
        sizes = (ctypes.c_int32 * 3)(*grid)
        raise_for(self._run(ctypes.addressof(record), args, ctypes.addressof(sizes)))

    def close(self) -> None:
        """End the workers; later launches run on the launching thread."""
        self._close(self._state)

    def reset_after_fork(self) -> None:
        """Forget the parent's workers and locks."""
        self._reset(self._state)


def raise_for(code: int) -> None:
    """Raise what a result of the native `pool_run` stands for."""
    if code == OUT_OF_MEMORY:
        raise MemoryError("no memory for the scratch arena of a kernel")
    if code == GRID_TOO_LARGE:
        raise InvalidGrid("the grid has more than 2^63 programs")


def _allocate_state(num_threads: int, cpus: tuple[int, ...]) -> int:
    """The address of a new, zeroed, cache-line-aligned pool state with its configuration."""
    size = POOL_HEADER_BYTES + PARTICIPANT_BYTES * num_threads + LINE_BYTES
    state = leak(ctypes.create_string_buffer(size))
    state = -(-state // LINE_BYTES) * LINE_BYTES
    configuration = {
        "num_threads": num_threads,
        "spin_ns": SPIN_NS,
        "num_cpus": len(cpus),
        "cpus": leak((ctypes.c_int64 * max(1, len(cpus)))(*cpus)),
    }
    for name, value in configuration.items():
        ctypes.c_int64.from_address(state + POOL_FIELDS[name]).value = value
    ctypes.c_int32.from_address(state + POOL_FIELDS["is_pinned"]).value = int(bool(cpus))
    return state


def leak(buffer: ctypes.Array[ctypes.c_char] | ctypes.Array[ctypes.c_int64]) -> int:
    """The address of `buffer`, which from here on lives as long as the process."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(buffer))
    return ctypes.addressof(buffer)


def _reset_after_fork(pool: ThreadPool) -> None:
    """Have `pool` reset in every forked child, without keeping it alive."""
    reference = weakref.ref(pool)

    def reset() -> None:
        alive = reference()
        if alive is not None:
            alive.reset_after_fork()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=reset)


def _check_record_layout() -> None:
    for name, offset in RECORD_FIELDS.items():
        if getattr(KernelRecord, name).offset != offset:
            raise InternalError(f"KernelRecord.{name} is not where the native code reads it")


_check_record_layout()
