"""A child that is forked while another thread compiles can compile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.support.forking import ForkGate, ThreadLock

LIMIT_S = 120.0


@tilewright.jit
def grow(x, out, N: tl.constexpr, SCALE: tl.constexpr):
    at = tl.arange(0, N)
    y = tl.load(x + at)
    for _ in tl.static_range(6):
        y = tl.exp(y * SCALE) + 1
    tl.store(out + at, y)


def compile_with(scale: int) -> None:
    x = np.zeros(16, np.float32)
    grow[(1,)](x, np.zeros(16, np.float32), N=16, SCALE=scale)


def end_of(child: int) -> int | None:
    """The exit status of a child; None when it does not end."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_forked_while_a_thread_compiles_compiles_too(monkeypatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_DISABLE_CACHE", "1")
    stopped, started = threading.Event(), threading.Event()

    def work() -> None:
        scale = 1
        while not stopped.is_set():
            compile_with(scale)
            started.set()
            scale += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert started.wait(LIMIT_S)
        for number in range(6):
            child = os.fork()
            if child == 0:
                compile_with(10_000 + number)
                os._exit(0)
            assert end_of(child) == 0
    finally:
        stopped.set()
        thread.join()


def test_a_child_forked_while_a_thread_launches_first_launches_too(tmp_path) -> None:
    """The thread imports what a launch needs: a child would find those modules locked."""
    script = Path(__file__).with_name("forked_first_launch.py")
    variables = {**os.environ, "TILEWRIGHT_CACHE_DIR": str(tmp_path), "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, str(script)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["statuses", "0"], done.stderr


@pytest.mark.parametrize("depth", [1, 3])
def test_a_fork_waits_for_the_work_of_others_and_not_for_its_own(depth) -> None:
    gate, order, inside = ForkGate(), [], threading.Event()

    def work() -> None:
        with gate.work():
            inside.set()
            time.sleep(0.1)
            order.append("worked")

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait()
    with gate.work(), gate.work():
        for _ in range(depth):
            gate.before_fork()
        order.append("forked")
        for _ in range(depth):
            gate.after_in_parent()
    thread.join()
    assert order == ["worked", "forked"]
    with gate.work():
        pass


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_finds_a_lock_open_that_another_thread_holds() -> None:
    lock, held, over = ThreadLock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            over.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        with lock, lock:
            os._exit(0)
    status = end_of(child)
    over.set()
    thread.join()
    assert status == 0


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_that_is_forked_under_a_lock_holds_it_and_opens_it() -> None:
    lock = ThreadLock()
    with lock:
        child = os.fork()
        if child == 0:
            with lock:
                pass
    if child == 0:
        thread = threading.Thread(target=lock.__enter__, daemon=True)
        thread.start()
        thread.join(LIMIT_S)
        os._exit(int(thread.is_alive()))
    assert end_of(child) == 0


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_that_is_forked_while_a_thread_tunes_tunes_too() -> None:
    tuning, over = threading.Event(), threading.Event()
    parent = os.getpid()

    def bench(call, quantiles) -> float:
        tuning.set()
        if os.getpid() == parent:
            over.wait()
        call()
        return 1.0

    configs = [tilewright.Config({"SCALE": scale}) for scale in (1, 2)]
    tuner = tilewright.autotune(configs, key=["N"], do_bench=bench, cache_results=False)(grow)
    x, out = np.zeros(16, np.float32), np.zeros(16, np.float32)
    thread = threading.Thread(target=lambda: tuner[(1,)](x, out, N=16))
    thread.start()
    tuning.wait()
    child = os.fork()
    if child == 0:
        tuner[(1,)](x[:8], out[:8], N=8)
        os._exit(0 if (out[:8] > 0).all() else 1)
    status = end_of(child)
    over.set()
    thread.join()
    assert status == 0
