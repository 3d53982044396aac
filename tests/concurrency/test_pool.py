"""The native thread pool: every program once, progress, nesting, forks, exits."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from tilewright.codegen.link import LoadedCode, load_object
from tilewright.codegen.optimize import compile_module
from tilewright.support.errors import InvalidGrid
from tilewright.targets.cpu.host import available_parallelism, host_machine, usable_cpus
from tilewright.targets.cpu.runtime.native import NativeRuntime, native_runtime
from tilewright.targets.cpu.runtime.pool import KernelRecord, PoolFunctions, ThreadPool
from tilewright.targets.cpu.runtime.pool_ir import POOL_SYMBOLS, pool_text

# Each kernel loops over its programs; args[0] is the address of one i64 per program.
LOOP = """
define void @NAME(ptr %args, ptr %grid, i64 %begin, i64 %end, ptr %context) {
entry:
  %data = load ptr, ptr %args
  br label %loop
loop:
  %i = phi i64 [%begin, %entry], [%i.next, %NEXT]
  %at = getelementptr i64, ptr %data, i64 %i
BODY
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""

# count: data[i] += 1.
COUNT = "  %old = atomicrmw add ptr %at, i64 1 monotonic"

# chain: wait until data[i-1] is at least 1, then data[i] += 1.
CHAIN = """
  %first = icmp eq i64 %i, 0
  br i1 %first, label %go, label %wait
wait:
  %before.at = getelementptr i64, ptr %at, i64 -1
  %before = load atomic i64, ptr %before.at acquire, align 8
  %ready = icmp sgt i64 %before, 0
  br i1 %ready, label %go, label %wait
go:
  %old = atomicrmw add ptr %at, i64 1 release
"""

# uneven: program i spins args[1] times if i is 0, once otherwise; data[i] = worker + 1.
UNEVEN = """
  %length.at = getelementptr i64, ptr %args, i64 1
  %length = load i64, ptr %length.at
  %is.first = icmp eq i64 %i, 0
  %times = select i1 %is.first, i64 %length, i64 1
  br label %spin
spin:
  %k = phi i64 [0, %loop], [%k.next, %spin]
  %k.next = add i64 %k, 1
  %seen = load volatile i64, ptr %at
  %again = icmp slt i64 %k.next, %times
  br i1 %again, label %spin, label %store
store:
  %worker.at = getelementptr i64, ptr %context, i64 2
  %worker = load i64, ptr %worker.at
  %stamp = add i64 %worker, 1
  store i64 %stamp, ptr %at
"""

# call: args[1] is a function that is called with i; then data[i] += 1.
CALL = """
  %function.at = getelementptr i64, ptr %args, i64 1
  %function = load ptr, ptr %function.at
  call void %function(i64 %i)
  %old = atomicrmw add ptr %at, i64 1 monotonic
"""

# scratch: fill 4096 bytes of scratch with i, data[i] = last word + 1, aligned or 0.
SCRATCH = """
  %scratch = load ptr, ptr %context
  br label %fill
fill:
  %k = phi i64 [0, %loop], [%k.next, %fill]
  %word = getelementptr i64, ptr %scratch, i64 %k
  store volatile i64 %i, ptr %word
  %k.next = add i64 %k, 1
  %unfilled = icmp slt i64 %k.next, 512
  br i1 %unfilled, label %fill, label %check
check:
  %address = ptrtoint ptr %scratch to i64
  %low = and i64 %address, 63
  %aligned = icmp eq i64 %low, 0
  %last.at = getelementptr i64, ptr %scratch, i64 511
  %last = load volatile i64, ptr %last.at
  %plus = add i64 %last, 1
  %stamp = select i1 %aligned, i64 %plus, i64 0
  store i64 %stamp, ptr %at
"""

BODIES = {
    "count": (COUNT, "loop"),
    "chain": (CHAIN, "go"),
    "uneven": (UNEVEN, "store"),
    "call": (CALL, "loop"),
    "scratch": (SCRATCH, "check"),
}


@pytest.fixture(scope="module")
def kernels() -> LoadedCode:
    text = "".join(
        LOOP.replace("NAME", name).replace("BODY", body).replace("%NEXT", f"%{last}")
        for name, (body, last) in BODIES.items()
    )
    host = host_machine()
    return load_object(compile_module(text, host.arch, host.features).object, *BODIES)


@pytest.fixture(scope="module")
def runtime() -> NativeRuntime:
    return native_runtime()


@pytest.fixture
def make_pool(runtime: NativeRuntime) -> Iterator[Callable[[int], ThreadPool]]:
    pools: list[ThreadPool] = []

    def make(num_threads: int) -> ThreadPool:
        pools.append(runtime.make_pool(num_threads))
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()


def launch(
    pool: ThreadPool, record: KernelRecord, data: np.ndarray, *rest: int, grid: int = 0
) -> None:
    args = (ctypes.c_int64 * (1 + len(rest)))(data.ctypes.data, *rest)
    pool.run(record, ctypes.addressof(args), (grid or len(data), 1, 1))


def parallel(
    pool: ThreadPool, kernels: LoadedCode, name: str, arena_bytes: int = 0
) -> KernelRecord:
    return pool.make_record(
        kernels.addresses[name], arena_bytes, flags=KernelRecord.ALWAYS_PARALLEL
    )


@pytest.mark.parametrize("num_threads", [1, 2, 4])
def test_every_program_runs_exactly_once_in_each_of_many_launches(make_pool, kernels, num_threads):
    pool = make_pool(num_threads)
    record = parallel(pool, kernels, "count")
    data = np.zeros(37, np.int64)
    num_launches = 50_000 if num_threads == 2 else 5_000
    args = (ctypes.c_int64 * 1)(data.ctypes.data)
    for _ in range(num_launches):
        pool.run(record, ctypes.addressof(args), (37, 1, 1))
    assert (data == num_launches).all()


def test_programs_of_all_three_axes_run(make_pool, kernels):
    pool = make_pool(2)
    data = np.zeros(2 * 3 * 5, np.int64)
    args = (ctypes.c_int64 * 1)(data.ctypes.data)
    pool.run(parallel(pool, kernels, "count"), ctypes.addressof(args), (2, 3, 5))
    assert (data == 1).all()


def test_an_empty_grid_runs_nothing(make_pool, kernels):
    pool = make_pool(2)
    data = np.zeros(4, np.int64)
    args = (ctypes.c_int64 * 1)(data.ctypes.data)
    pool.run(parallel(pool, kernels, "count"), ctypes.addressof(args), (4, 0, 1))
    assert not data.any()


def test_a_grid_beyond_63_bits_is_refused(make_pool, kernels):
    pool = make_pool(2)
    data = np.zeros(4, np.int64)
    args = (ctypes.c_int64 * 1)(data.ctypes.data)
    with pytest.raises(InvalidGrid, match="programs"):
        most = (1 << 31) - 1
        pool.run(parallel(pool, kernels, "count"), ctypes.addressof(args), (most, most, most))
    assert not data.any()


def test_three_python_threads_may_launch_at_once(make_pool, kernels):
    pool = make_pool(2)
    record = parallel(pool, kernels, "count")
    data = [np.zeros(8, np.int64) for _ in range(3)]

    def hammer(mine: np.ndarray) -> None:
        for _ in range(4_000):
            launch(pool, record, mine)

    threads = [threading.Thread(target=hammer, args=(mine,)) for mine in data]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((mine == 4_000).all() for mine in data)


@pytest.mark.parametrize("num_threads", [1, 2, 4])
def test_a_kernel_may_launch_a_kernel(make_pool, kernels, num_threads):
    pool = make_pool(num_threads)
    inner = parallel(pool, kernels, "count")
    data, inner_data = np.zeros(6, np.int64), np.zeros(9, np.int64)
    callback = ctypes.CFUNCTYPE(None, ctypes.c_int64)(lambda i: launch(pool, inner, inner_data))
    address = ctypes.cast(callback, ctypes.c_void_p).value or 0
    launch(pool, parallel(pool, kernels, "call"), data, address)
    assert (data == 1).all()
    assert (inner_data == len(data)).all()


@pytest.mark.parametrize("num_threads", [1, 2, 4])
def test_a_program_may_wait_for_the_program_before_it(make_pool, kernels, num_threads):
    pool = make_pool(num_threads)
    record = parallel(pool, kernels, "chain")
    for _ in range(20):
        data = np.zeros(50, np.int64)
        launch(pool, record, data)
        assert (data == 1).all()


def test_a_chain_completes_when_all_workers_are_kept_from_running(make_pool, kernels):
    """The workers and the launcher share one CPU, where the launcher is the last to be run."""
    pool = make_pool(4)
    mask = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(mask)})
    try:
        for _ in range(3):
            data = np.zeros(20, np.int64)
            launch(pool, parallel(pool, kernels, "chain"), data)
            assert (data == 1).all()
    finally:
        os.sched_setaffinity(0, mask)


def test_a_launch_does_not_wait_for_workers_that_never_start(make_pool, kernels):
    """A chain that is launched while every worker is held inside another pool's job."""
    pool = make_pool(3)
    outer = np.zeros(3, np.int64)
    inner_data = np.zeros(30, np.int64)
    inner = parallel(pool, kernels, "chain")

    def work(index: int) -> None:
        if index == 0:
            launch(pool, inner, inner_data)

    callback = ctypes.CFUNCTYPE(None, ctypes.c_int64)(work)
    address = ctypes.cast(callback, ctypes.c_void_p).value or 0
    launch(pool, parallel(pool, kernels, "call"), outer, address)
    assert (inner_data == 1).all()


def test_idle_participants_steal_from_a_slow_range(make_pool, kernels):
    pool = make_pool(2)
    record = parallel(pool, kernels, "uneven")
    data = np.zeros(64, np.int64)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        # Program 0 takes ~50 ms; the other half of range 0 is the worker's to steal.
        launch(pool, record, data, 50_000_000)
        assert data.all()
        if (data[1:32] == 2).all():
            return
        data[:] = 0
    pytest.fail("the worker never took over the range behind the slow program")


@pytest.mark.parametrize("num_threads", [1, 3])
def test_each_program_has_its_own_scratch(make_pool, kernels, num_threads):
    pool = make_pool(num_threads)
    record = parallel(pool, kernels, "scratch", arena_bytes=4096)
    data = np.zeros(200, np.int64)
    for _ in range(50):
        data[:] = 0
        launch(pool, record, data)
        assert (data == np.arange(200) + 1).all()


def test_scratch_grows_with_the_kernel(make_pool, kernels):
    pool = make_pool(2)
    data = np.zeros(50, np.int64)
    for arena_bytes in (4096, 4097, 1 << 20, 8192):
        launch(pool, parallel(pool, kernels, "scratch", arena_bytes), data)
        assert (data == np.arange(50) + 1).all()
        data[:] = 0


def test_nested_launches_deeper_than_the_shared_arenas_have_scratch(make_pool, kernels):
    pool = make_pool(2)
    nest = parallel(pool, kernels, "call", arena_bytes=64)
    leaf = parallel(pool, kernels, "scratch", arena_bytes=4096)
    data, leaf_data = np.zeros(1, np.int64), np.zeros(5, np.int64)
    depth = 0

    def descend(_: int) -> None:
        nonlocal depth
        depth += 1
        if depth < 12:
            launch(pool, nest, data, address)
        else:
            launch(pool, leaf, leaf_data)

    callback = ctypes.CFUNCTYPE(None, ctypes.c_int64)(descend)
    address = ctypes.cast(callback, ctypes.c_void_p).value or 0
    launch(pool, nest, data, address)
    assert (leaf_data == np.arange(5) + 1).all()


def test_an_arena_that_cannot_be_had_is_a_memory_error(make_pool, kernels):
    pool = make_pool(2)
    data = np.zeros(5, np.int64)
    with pytest.raises(MemoryError):
        launch(pool, parallel(pool, kernels, "count", arena_bytes=1 << 60), data)
    assert not data.any()
    launch(pool, parallel(pool, kernels, "count", arena_bytes=64), data)
    assert (data == 1).all()


def test_small_work_wakes_nobody(make_pool, kernels):
    pool = make_pool(4)
    record = pool.make_record(kernels.addresses["count"])
    record.program_ns = 10.0
    data = np.zeros(100, np.int64)
    for _ in range(10):
        launch(pool, record, data)
    assert pool.num_workers == 0
    assert (data == 10).all()


def test_the_estimate_follows_the_work(make_pool, kernels):
    pool = make_pool(1)
    record = pool.make_record(kernels.addresses["count"])
    data = np.zeros(1000, np.int64)
    for _ in range(40):
        launch(pool, record, data)
    assert 0 < record.program_ns < 1_000


def test_closing_ends_the_workers_and_later_launches_run_inline(make_pool, kernels):
    pool = make_pool(3)
    record = parallel(pool, kernels, "count")
    data = np.zeros(9, np.int64)
    launch(pool, record, data)
    assert pool.num_workers == 2
    pool.close()
    assert pool.num_workers == 0
    launch(pool, record, data)
    assert (data == 2).all()


def test_a_forked_child_launches_with_workers_of_its_own(make_pool, kernels):
    pool = make_pool(3)
    record = parallel(pool, kernels, "count")
    data = np.zeros(40, np.int64)
    launch(pool, record, data)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            for _ in range(100):
                launch(pool, record, data)
            if (data == 101).all() and pool.num_workers == 2:
                code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    launch(pool, record, data)
    assert (data == 2).all()


def test_a_child_forked_while_a_job_runs_can_launch(make_pool, kernels):
    pool = make_pool(2)
    record = parallel(pool, kernels, "call")
    data, child_data = np.zeros(2, np.int64), np.zeros(8, np.int64)
    inside, leave = threading.Semaphore(0), threading.Event()

    def hold(_: int) -> None:
        inside.release()
        assert leave.wait(120)

    callback = ctypes.CFUNCTYPE(None, ctypes.c_int64)(hold)
    address = ctypes.cast(callback, ctypes.c_void_p).value or 0
    thread = threading.Thread(target=launch, args=(pool, record, data, address))
    thread.start()
    # Both: Python's child waits for ever for a thread that was about to enter Python (3.11).
    assert inside.acquire(timeout=120) and inside.acquire(timeout=120)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            for _ in range(10):
                launch(pool, parallel(pool, kernels, "count"), child_data)
            code = 0 if (child_data == 10).all() else 2
        finally:
            os._exit(code)
    status = os.waitpid(pid, 0)[1]
    leave.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 0
    assert (data == 1).all()


def test_the_interpreter_exits_cleanly_right_after_a_launch():
    program = textwrap.dedent(
        """
        import ctypes
        from tilewright.codegen.optimize import compile_module
        from tilewright.targets.cpu.host import host_machine
        from tilewright.codegen.link import load_object
        from tilewright.targets.cpu.runtime.native import native_runtime
        host = host_machine()
        text = "define void @k(ptr %a, ptr %g, i64 %b, i64 %e, ptr %c) {\\n  ret void\\n}\\n"
        code = load_object(compile_module(text, host.arch, host.features).object, "k")
        pool = native_runtime(num_threads=4).pool
        record = pool.make_record(code.address, flags=1)
        for _ in range(100):
            pool.run(record, 0, (64, 1, 1))
        print("done")
        """
    )
    for _ in range(3):
        result = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=300
        )
        assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")


def test_a_worker_makes_room_for_the_launching_thread(runtime, kernels):
    cpus = usable_cpus()
    pool = runtime.make_pool(2, cpus)
    record = parallel(pool, kernels, "call")
    data = np.zeros(2, np.int64)
    meeting = threading.Barrier(2)
    workers: set[int] = set()

    def meet(_: int) -> None:
        workers.add(threading.get_native_id())
        meeting.wait(120)

    callback = ctypes.CFUNCTYPE(None, ctypes.c_int64)(meet)
    address = ctypes.cast(callback, ctypes.c_void_p).value or 0
    launch(pool, record, data, address)
    (worker,) = workers - {threading.get_native_id()}
    (home,) = os.sched_getaffinity(worker)
    mask = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {home})
        launch(pool, record, data, address)
        assert len(os.sched_getaffinity(worker)) == 1
        assert (os.sched_getaffinity(worker) != {home}) == (len(cpus) > 1)
    finally:
        os.sched_setaffinity(0, mask)
        pool.close()


def test_a_system_without_known_threads_runs_every_launch_inline(kernels):
    host = host_machine()
    compiled = compile_module(pool_text("unknown", is_linux=False), host.arch, host.features)
    code = load_object(compiled.object, *POOL_SYMBOLS)
    functions = PoolFunctions(*(code.addresses[symbol] for symbol in POOL_SYMBOLS))
    pool = ThreadPool(functions, 4)
    data = np.zeros(50, np.int64)
    launch(pool, parallel(pool, kernels, "scratch", arena_bytes=5000), data)
    assert (data == np.arange(50) + 1).all()
    data[:] = 0
    launch(pool, parallel(pool, kernels, "chain"), data)
    assert (data == 1).all()
    assert pool.num_workers == 0
    pool.close()


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_the_pool_compiles_for_both_linux_architectures(architecture):
    triple = f"{architecture}-unknown-linux-gnu"
    text = pool_text(architecture, is_linux=True)
    assert compile_module(text, "generic", (), triple).object.startswith(b"\x7fELF")


def test_a_pool_needs_a_thread(runtime):
    with pytest.raises(ValueError, match="at least one"):
        runtime.make_pool(0)


def test_parallelism_is_within_the_affinity_mask():
    assert 1 <= available_parallelism() <= len(os.sched_getaffinity(0))
