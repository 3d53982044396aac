"""The compile server: jobs in forked children, and what is left when they go wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import pytest

import tilewright
import tilewright.language as tl
from tests.api.compile_servers import DIE, HANG, server_that
from tilewright.compiler import client
from tilewright.compiler.build import make_request
from tilewright.compiler.framing import ANSWER, FrameBuffer, frame
from tilewright.compiler.request import CompileRequest
from tilewright.frontend.program import Specialization
from tilewright.runtime.ahead import JOBS, CompileJob, drop
from tilewright.runtime.kernel import CompileStatistics
from tilewright.support.errors import InternalError, StaticAssertionFailed
from tilewright.support.options import CompileOptions


@tilewright.jit
def fill(out_ptr, in_ptr, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK < 4096, "too many")
    tl.static_print("a tile of", BLOCK)
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(in_ptr + offsets))


@pytest.fixture(autouse=True)
def cache_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(autouse=True)
def no_history(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a server is worth it depends on how long kernels took before."""
    monkeypatch.setattr(client, "STATISTICS", CompileStatistics())


@pytest.fixture(autouse=True)
def no_jobs() -> Generator[None]:
    yield
    drop(list(JOBS.values()))


@pytest.fixture(autouse=True, scope="module")
def no_servers() -> Generator[None]:
    yield
    client.stop_servers()


def request_for(block: int) -> CompileRequest:
    signature = (("out_ptr", "*fp32"), ("in_ptr", "*fp32"), ("BLOCK", "constexpr"))
    return make_request(
        fill.source, Specialization(signature, {("BLOCK",): block}, {}), CompileOptions()
    )


def submit(block: int, key: str = "") -> tuple[CompileJob, CompileRequest]:
    request = request_for(block)
    job = client.submit(request, key or f"{block:064x}", 100)
    assert job is not None
    return job, request


def test_frames_are_put_together_from_any_pieces() -> None:
    data = frame(1, ANSWER, b"abc") + frame(2, ANSWER) + frame(3, ANSWER, b"x" * 1000)
    buffer = FrameBuffer()
    found = [entry for byte in data for entry in buffer.add(bytes([byte]))]
    assert [(number, len(body)) for number, _, body in found] == [(1, 3), (2, 0), (3, 1000)]


def test_jobs_of_one_server_compile_each_to_its_own_kernel() -> None:
    jobs = [submit(block) for block in (16, 32, 64, 128)]
    for job, request in jobs:
        artifact = client.take(job, request)
        assert artifact is not None and "object" in artifact.sections
        assert artifact.key == job.key
    assert len(client._CLIENTS) == 1


def test_effects_are_known_before_the_answer_or_with_it() -> None:
    job, _ = submit(16)
    job.wait()
    assert job.effects is not None
    assert (job.effects["reads"], job.effects["writes"]) == ([["in_ptr"]], [["out_ptr"]])


def test_one_key_is_one_job() -> None:
    assert submit(16)[0] is submit(16)[0]


def test_what_the_kernel_prints_while_it_is_compiled_is_printed_here(
    capsys: pytest.CaptureFixture[str],
) -> None:
    client.take(*submit(16))
    assert "a tile of 16" in capsys.readouterr().out


def test_an_error_of_the_kernel_is_raised_as_it_is() -> None:
    with pytest.raises(StaticAssertionFailed, match="too many"):
        client.take(*submit(8192))


def test_a_job_that_dies_takes_no_other_with_it() -> None:
    with server_that(DIE, b'"2048"'):
        dying, living = submit(2048), submit(64)
        with pytest.raises(InternalError, match=r"(?s)SIGABRT.*LLVM ERROR: no"):
            client.take(*dying)
        assert client.take(*living) is not None


def test_a_job_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "DEFAULT_TIMEOUT_S", 2.0)
    with server_that(HANG, b'"2048"'):
        hanging, living = submit(2048), submit(64)
        assert client.take(*living) is not None
        with pytest.raises(InternalError, match="took longer than 2 s"):
            client.take(*hanging)


def test_a_job_that_is_dropped_is_ended() -> None:
    with server_that(HANG, b'"2048"'):
        job, _ = submit(2048)
        drop([job])
        job.wait()
        assert JOBS == {}
        assert job.failure is not None


def test_without_its_server_a_job_gives_nothing_and_the_next_one_starts_another() -> None:
    with server_that("os.kill(os.getppid(), 9); time.sleep(600)", b'"2048"'):
        job, request = submit(2048)
        assert client.take(job, request) is None
        assert job.is_lost
        drop([job])
        assert client.take(*submit(64)) is not None


def test_a_server_that_does_not_start_gives_nothing() -> None:
    made = client.Client("cpu", [sys.executable, "-c", "raise SystemExit(3)"])
    client._CLIENTS["cpu"] = (os.getpid(), made)
    job = made.submit(request_for(16), "0" * 64)
    assert client.take(job, request_for(16)) is None


def test_jobs_from_many_threads_all_end() -> None:
    found: list[object] = []

    def work(block: int) -> None:
        found.append(client.take(*submit(block)))

    threads = [threading.Thread(target=work, args=(1 << k,)) for k in range(2, 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6 and all(found)


def test_a_program_that_is_killed_leaves_no_server(tmp_path: Path) -> None:
    code = """
import os, signal, time
from tilewright.compiler import client
from tests.api.compile_servers import HANG, server_that
from tests.concurrency.test_compile_server import submit
with server_that(HANG, b'"2048"') as made:
    submit(2048)
    while not made._jobs:
        time.sleep(0.01)
    print(made._process.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    root = Path(__file__).resolve().parents[2]
    child = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root)},
        cwd=root,
        timeout=300,
    )
    assert child.returncode == -signal.SIGKILL, child.stderr
    pid = int(child.stdout)
    for _ in range(3000):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return
        if state == "Z":
            return
        threading.Event().wait(0.02)
    raise AssertionError(f"the server {pid} is still there")


def test_a_forked_child_has_jobs_of_its_own() -> None:
    with server_that(HANG, b'"2048"'):
        submit(2048)
        child = os.fork()
        if child == 0:
            # The parent's job would never end here: nobody reads what its server sends.
            code = 1
            with suppress(BaseException):
                code = int(JOBS != {} or client.take(*submit(16)) is None)
                client.stop_servers()
            os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
