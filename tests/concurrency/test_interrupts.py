"""Ctrl-C ends a running grid: at once, as KeyboardInterrupt, and the next launch works."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import tilewright

LIMIT_S = 20.0
# Kernels that never end by themselves, and a small one that shows that the pool is whole.
KERNELS = """
import gc, os, signal, sys, threading, time
import numpy as np
import tilewright
import tilewright.language as tl

@tilewright.jit
def waits(p):
    while tl.atomic_add(p, 0) == 0:
        pass

@tilewright.jit
def counts(p, n):
    total = 0
    for i in range(n):
        for j in range(n):
            total += tl.load(p + ((i ^ j) & 15))
    tl.store(p, total)

@tilewright.jit
def tiles(p, n, B: tl.constexpr):
    at = tl.arange(0, B)
    x = tl.zeros([B, B], tl.float32)
    for i in range(n):
        for j in range(n):
            x = tl.dot(x + i, x + j) * 0.5
    tl.store(p + at[:, None] * B + at[None, :], x)

@tilewright.jit
def stores(p):
    tl.store(p + tl.program_id(0) % 16, tl.program_id(1) + 1)

@tilewright.jit
def add_one(x, o):
    i = tl.program_id(0)
    tl.store(o + i, tl.load(x + i) + 1)

i32, f32 = np.zeros(4096, np.int32), np.zeros(4096, np.float32)
LAUNCHES = {
    "waits": lambda: waits[(1,)](i32),
    "waits on all threads": lambda: waits[(64,)](i32),
    "counts": lambda: counts[(1,)](i32, 2**31 - 1),
    "counts on all threads": lambda: counts[(2**20,)](i32, 2**31 - 1),
    "tiles": lambda: tiles[(2**20,)](f32, 2**31 - 1, B=64),
    "stores": lambda: stores[(2**31 - 1, 2**16)](i32),
}

def check_pool():
    x, o = np.zeros(1000, np.float32), np.zeros(1000, np.float32)
    add_one[(1000,)](x, o)
    assert (o == 1).all()

def interrupt_after(seconds):
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()
    return time.monotonic() + seconds

check_pool()
# Python drops an exception that comes while an object dies, and compiles let many die: first all.
for kernel, args in ((waits, (i32,)), (counts, (i32, 2**31 - 1)), (stores, (i32,))):
    kernel.warmup(*args)
tiles.warmup(f32, 2**31 - 1, B=64)
gc.collect()
"""


def run(script: str, timeout_s: float = 300.0) -> str:
    """What a script prints after the kernels above; it must end by itself, well."""
    source = Path(tilewright.__file__).parents[1]
    text = f"import sys; sys.path.insert(0, {str(source)!r})\n{KERNELS}{textwrap.dedent(script)}"
    path = Path(run_directory) / "script.py"
    path.write_text(text)
    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, timeout=timeout_s, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


run_directory = ""


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "run_directory", str(tmp_path))


@pytest.fixture(autouse=True)
def listening() -> Iterator[None]:
    """Children of a shell's background job inherit that Ctrl-C is ignored; not these."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("threads", ["1", "2"])
def test_an_interrupt_ends_every_kind_of_grid(threads, monkeypatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", threads)
    printed = run(
        """
        for name, launch in LAUNCHES.items():
            for _ in range(2):
                due = interrupt_after(0.3)
                try:
                    launch()
                except KeyboardInterrupt:
                    print(time.monotonic() - due)
                    check_pool()
        """
    )
    times = [float(line) for line in printed.splitlines()]
    assert len(times) == 2 * 6 and max(times) < LIMIT_S, times


def test_an_interrupt_is_seen_after_somebody_set_the_handler_anew() -> None:
    printed = run(
        """
        for _ in range(3):  # as a notebook does for each cell
            signal.signal(signal.SIGINT, signal.default_int_handler)
            time.sleep(0.05)
            due = interrupt_after(0.3)
            try:
                LAUNCHES["counts"]()
            except KeyboardInterrupt:
                print(time.monotonic() - due)
        """
    )
    times = [float(line) for line in printed.splitlines()]
    assert len(times) == 3 and max(times) < LIMIT_S, times


def test_an_interrupt_is_seen_however_soon_after_the_handler_was_set() -> None:
    printed = run(
        """
        waits.warmup(i32)
        for step in range(40):
            signal.signal(signal.SIGINT, signal.default_int_handler)
            try:
                interrupt_after(0.0001 * step)
                waits[(1,)](i32)
            except KeyboardInterrupt:
                print("stopped")
            time.sleep(0.001)
        """
    )
    assert printed == "stopped\n" * 40


def test_a_handler_that_does_not_raise_lets_the_grid_go_on() -> None:
    printed = run(
        """
        seen = []
        def note(*_):
            seen.append(time.monotonic())
            i32[0] = 1  # what the kernel waits for
        signal.signal(signal.SIGINT, note)
        waits.warmup(i32)
        due = interrupt_after(0.3)
        waits[(1,)](i32)
        assert len(seen) == 1 and seen[0] - due < 20, seen
        i32[0] = 0
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            interrupt_after(0.3)
            waits[(1,)](i32)
        except KeyboardInterrupt:
            print("stopped")
        """
    )
    assert printed == "stopped\n"


def test_an_interrupt_ends_the_grids_of_other_threads_too() -> None:
    printed = run(
        """
        ended, gone = [], threading.Semaphore(0)  # `join` takes an interrupted thread for ended
        def work():
            try:
                waits[(4,)](i32)
            except KeyboardInterrupt:
                ended.append(threading.current_thread().name)
            gone.release()
        waits.warmup(i32)
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        interrupt_after(0.3)
        try:
            for thread in threads:
                thread.join()
        except KeyboardInterrupt:
            print("main")
        assert all([gone.acquire(timeout=60) for _ in threads]) and len(ended) == 3
        check_pool()
        # What was handled is not a reason to stop what starts later.
        later = threading.Thread(target=check_pool)
        later.start()
        later.join()
        print("end")
        """
    )
    assert printed == "main\nend\n"


def test_an_interrupt_that_is_ignored_stays_ignored() -> None:
    printed = run(
        """
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        interrupt_after(0.2)
        counts[(1,)](i32, 20000)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        time.sleep(0.3)
        print("end")
        """
    )
    assert printed == "end\n"


def test_an_interrupt_ends_a_grid_in_a_forked_child() -> None:
    printed = run(
        """
        child = os.fork()
        if child == 0:
            interrupt_after(0.3)
            try:
                LAUNCHES["counts on all threads"]()
            except KeyboardInterrupt:
                check_pool()
                os._exit(3)
            os._exit(4)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    )
    assert printed == "3\n"


def test_an_uncaught_interrupt_ends_the_process_by_its_signal(tmp_path: Path) -> None:
    source = Path(tilewright.__file__).parents[1]
    text = f"import sys; sys.path.insert(0, {str(source)!r})\n{KERNELS}"
    path = tmp_path / "script.py"
    path.write_text(f"{text}\ninterrupt_after(0.3)\nLAUNCHES['tiles']()\n")
    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, timeout=300, check=False
    )
    assert done.returncode == -signal.SIGINT
    assert b"KeyboardInterrupt" in done.stderr


def test_a_loop_over_scalars_gives_what_it_gave_at_the_ends_of_the_integers() -> None:
    import numpy as np

    for start, stop, step in RANGES:
        out = np.zeros(2, np.int64)
        sum_range[(1,)](out, start, stop, STEP=step)
        expected = range(start, stop, step)
        assert out.tolist() == [len(expected), sum(expected)], (start, stop, step)


RANGES = [
    *((0, n, 1) for n in (0, 1, 63, 64, 65, 1023, 1024, 1025, 4097)),
    *((5, n, 7) for n in (5, 6, 12, 7 * 1024 + 5, 7 * 1024 + 6, 50_000)),
    *((2**31 - 1 - n, 2**31 - 1, 1) for n in (0, 1, 1024, 3000)),
    *((-(2**31), -(2**31) + n, 1) for n in (0, 1, 1024, 3000)),
    *((-5, 3000, 1), (-3000, 2, 3)),
]


@tilewright.jit
def sum_range(out, start, stop, STEP: tilewright.language.constexpr):
    count = tilewright.language.full([], 0, tilewright.language.int64)
    total = tilewright.language.full([], 0, tilewright.language.int64)
    for i in range(start, stop, STEP):
        count += 1
        total += i
    tilewright.language.store(out, count)
    tilewright.language.store(out + 1, total)
