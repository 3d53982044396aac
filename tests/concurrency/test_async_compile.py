"""`triton.AsyncCompileMode` under load: many kernels, threads, errors, forks, early exits."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.api.alias import run_script  # puts the alias on the path
from tests.concurrency.test_forks import end_of

import triton  # isort: skip - `alias` has put it on the path
import triton.language as tl  # isort: skip

X = np.zeros(16, np.float32)


@pytest.fixture(autouse=True)
def without_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_DISABLE_CACHE", "1")


def make_kernel():
    @triton.jit
    def scale(x, FACTOR: tl.constexpr):
        at = x + tl.arange(0, 16)
        tl.store(at, tl.load(at) * FACTOR + 1)

    return scale


def make_wrong_kernel():
    @triton.jit
    def wrong(x, N: tl.constexpr):
        tl.store(x + tl.arange(0, N), tl.nothing)

    return wrong


def test_many_kernels_are_compiled_each_once_and_run() -> None:
    kernel = make_kernel()
    with ThreadPoolExecutor(4) as pool, triton.AsyncCompileMode(pool) as mode:
        kernels = [kernel.warmup(X, factor % 8, grid=(1,)) for factor in range(24)]
        assert len(mode.future_kernels) == 8
    assert len({id(each.result()) for each in kernels}) == 8
    for factor in range(8):
        x = np.ones(16, np.float32)
        kernel[(1,)](x, factor)
        np.testing.assert_array_equal(x, factor + 1)


def test_two_threads_have_modes_of_their_own() -> None:
    kernel, failures = make_kernel(), []
    together = threading.Barrier(2)

    def work(first: int) -> None:
        try:
            with ThreadPoolExecutor(2) as pool, triton.AsyncCompileMode(pool) as mode:
                together.wait()
                for factor in range(first, first + 6):
                    kernel.warmup(X, factor, grid=(1,))
                assert len(mode.future_kernels) == 6
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(first,)) for first in (0, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_an_error_reaches_the_end_of_the_block_after_the_other_kernels() -> None:
    kernel, wrong = make_kernel(), make_wrong_kernel()
    with ThreadPoolExecutor(1) as pool:
        mode = triton.AsyncCompileMode(pool)
        with pytest.raises(triton.CompilationError, match=r"^at 2:34:\n.*`nothing`"), mode:
            wrong.warmup(X, 16, grid=(1,))
            others = [kernel.warmup(X, factor, grid=(1,)) for factor in range(4)]
        assert all(future.future.done() for future in mode.future_kernels.values())
        assert [other.name for other in others] == ["scale"] * 4


def test_errors_may_be_ignored() -> None:
    with ThreadPoolExecutor(2) as pool, triton.AsyncCompileMode(pool, ignore_errors=True):
        future = make_wrong_kernel().warmup(X, 16, grid=(1,))
    assert future.result(ignore_errors=True) is None
    with pytest.raises(triton.CompilationError):
        future.result()


def test_an_exception_of_the_block_is_not_hidden_by_that_of_a_kernel() -> None:
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(ZeroDivisionError), triton.AsyncCompileMode(pool):
            make_wrong_kernel().warmup(X, 16, grid=(1,))
            raise ZeroDivisionError
        with triton.AsyncCompileMode(pool):  # the first one is over
            assert make_kernel().warmup(X, 3, grid=(1,)).name == "scale"


def test_modes_do_not_nest_and_the_outer_one_goes_on() -> None:
    with ThreadPoolExecutor(1) as pool, triton.AsyncCompileMode(pool) as outer:
        with pytest.raises(RuntimeError, match="already active"), triton.AsyncCompileMode(pool):
            pass
        make_kernel().warmup(X, 5, grid=(1,))
        assert len(outer.future_kernels) == 1


def test_a_launch_in_the_block_does_not_wait_for_the_queue() -> None:
    kernel, release = make_kernel(), threading.Event()
    with ThreadPoolExecutor(1) as pool, triton.AsyncCompileMode(pool):
        pool.submit(release.wait, 30)
        kernel.warmup(X, 2, grid=(1,))
        x = np.ones(16, np.float32)
        kernel[(1,)](x, 2)
        release.set()
    np.testing.assert_array_equal(x, 3)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_compiles_what_its_parent_had_queued() -> None:
    kernel, release = make_kernel(), threading.Event()
    with ThreadPoolExecutor(1) as pool, triton.AsyncCompileMode(pool):
        pool.submit(release.wait, 60)
        queued = kernel.warmup(X, 2, grid=(1,))
        child = os.fork()
        if child == 0:
            names = [queued.name, kernel.warmup(X, 4, grid=(1,)).name]
            os._exit(0 if names == ["scale"] * 2 else 1)
        status = end_of(child)
        release.set()
    assert status == 0


EXIT = """
import threading, time
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import triton, triton.language as tl

@triton.jit
def scale(x, FACTOR: tl.constexpr):
    at = x + tl.arange(0, 16)
    tl.store(at, tl.load(at) * FACTOR)

pool = ThreadPoolExecutor(2)
mode = triton.AsyncCompileMode(pool)
mode.__enter__()
for factor in range(12):
    scale.warmup(np.zeros(16, np.float32), factor, grid=(1,))
print("leaving", flush=True)
"""


def test_a_program_may_end_with_kernels_in_the_queue(tmp_path: Path) -> None:
    ended = run_script(tmp_path / "leave.py", EXIT, {"TILEWRIGHT_CACHE_DIR": str(tmp_path)})
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "leaving\n", "")
