"""Compiling in a child process, and what is left when a compile goes wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import tilewright
import tilewright.language as tl
from tilewright.compiler import instruments, worker
from tilewright.compiler.build import make_request
from tilewright.compiler.compile import compile_request
from tilewright.compiler.reproducer import (
    DIED,
    Reproducer,
    ReproducerStore,
    ReproducerWarning,
    read_reproducer,
    tell_of_orphans,
)
from tilewright.compiler.request import CompileRequest
from tilewright.compiler.worker import compile_in_worker, decode_error, describe_exit, encode_error
from tilewright.frontend.devices import DevicePlacement
from tilewright.frontend.program import Specialization
from tilewright.support.errors import DotShapeMismatch, InternalError, StaticAssertionFailed
from tilewright.support.options import CompileOptions
from tilewright.support.source import Span

ROOT = Path(worker.__file__).resolve().parents[2]
KEY = "0" * 64


@tilewright.jit
def store_one(out_ptr, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK < 4096, "too many")
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, 1.0)


@pytest.fixture(autouse=True)
def cache_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def request_() -> CompileRequest:
    return request_for(16)


def request_for(block: int) -> CompileRequest:
    specialization = Specialization(
        (("out_ptr", "*fp32"), ("BLOCK", "constexpr")), {("BLOCK",): block}
    )
    return make_request(store_one.source, specialization, CompileOptions(), DevicePlacement())


def test_worker_compiles_to_the_artifact_that_this_process_gets(request_: CompileRequest) -> None:
    there, here = compile_in_worker(request_, KEY), compile_request(request_, KEY)
    assert there.key == KEY
    assert there.sections == dict(here.sections)
    assert there.metadata["name"] == "store_one"


def test_an_error_of_the_kernel_arrives_with_its_place(request_: CompileRequest) -> None:
    with pytest.raises(StaticAssertionFailed, match="too many") as caught:
        compile_in_worker(request_for(8192), KEY)
    assert caught.value.span.file == __file__


def test_errors_keep_all_parts_on_the_way() -> None:
    place = Span("kernel.py", 3, 5, 9, "f")
    error = DotShapeMismatch(
        "K differs", hint="transpose", types={"a": "tile"}, span=place, chain=(place,), source="x"
    )
    again = decode_error(encode_error(error))
    assert type(again) is DotShapeMismatch
    assert str(again) == str(error)


def run_child(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers run `code` in place of the compiler."""
    monkeypatch.setattr(worker, "START", textwrap.dedent(code))


def test_a_child_that_dies_is_an_internal_error_with_its_signal(
    request_: CompileRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_child("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", monkeypatch)
    with pytest.raises(InternalError, match=r"died on store_one\(\) with signal 11 \(SIGSEGV\)"):
        compile_in_worker(request_, KEY)


def test_a_child_that_exits_is_an_internal_error_with_what_it_wrote(
    request_: CompileRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_child("import sys; sys.stderr.write('LLVM ERROR: no'); sys.exit(7)", monkeypatch)
    with pytest.raises(InternalError, match=r"(?s)exit status 7.*LLVM ERROR: no"):
        compile_in_worker(request_, KEY)


def test_a_child_that_writes_nonsense_is_an_internal_error(
    request_: CompileRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_child("print('hello')", monkeypatch)
    with pytest.raises(InternalError, match="gave no answer"):
        compile_in_worker(request_, KEY)


def test_a_child_that_hangs_is_killed_with_its_children(
    request_: CompileRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    note = tmp_path / "pid"
    run_child(
        f"""
        import pathlib, subprocess, time
        child = subprocess.Popen(["sleep", "600"])
        pathlib.Path({str(note)!r}).write_text(str(child.pid))
        time.sleep(600)
        """,
        monkeypatch,
    )
    with pytest.raises(InternalError, match=r"took longer than 8 s"):
        compile_in_worker(request_, KEY, timeout_s=8.0)
    assert is_gone(int(note.read_text()))


def is_gone(pid: int) -> bool:
    """Whether a process ends within a minute."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            status = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return True
        if status.rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.01)
    return False


def test_the_memory_limit_ends_the_child_and_not_the_caller(request_: CompileRequest) -> None:
    with pytest.raises(InternalError, match=r"died|memory"):
        compile_in_worker(request_, KEY, memory_bytes=1 << 20)


def test_exit_codes_are_told_in_words() -> None:
    assert describe_exit(3) == "exit status 3"
    assert describe_exit(-signal.SIGKILL) == "signal 9 (SIGKILL)"
    assert describe_exit(-99) == "signal 99"


def test_a_reproducer_round_trips(request_: CompileRequest) -> None:
    made = Reproducer(request_, "frontend", "K differs", {"python": "3"})
    assert Reproducer.from_bytes(made.to_bytes()) == made
    assert Reproducer.from_bytes(made.to_bytes()).request.to_bytes() == request_.to_bytes()


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"format": "x"}', b"\xff", b"[" * 100_000])
def test_bytes_that_are_no_reproducer_are_refused(data: bytes) -> None:
    with pytest.raises(InternalError, match="no reproducer"):
        Reproducer.from_bytes(data)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InternalError, match="cannot be read: No such file"):
        read_reproducer(tmp_path / "none")


def test_an_unexpected_error_becomes_internal_and_leaves_a_reproducer(
    request_: CompileRequest, monkeypatch: pytest.MonkeyPatch, cache_dir: Path
) -> None:
    def broken(request: CompileRequest, key: str, observe: instruments.Observers) -> None:
        observe("frontend", "")
        raise KeyError("lost")

    monkeypatch.setattr(instruments, "compile_request", broken)
    with pytest.raises(InternalError, match="failed after stage `frontend`: KeyError: 'lost'") as e:
        instruments.compile_watched(request_, KEY)
    path = cache_dir / "reproducers/store_one-000000000000.reproducer"
    assert f"tilewright replay {path}" in str(e.value)
    kept = read_reproducer(path)
    assert kept.stage == "frontend"
    assert kept.request.to_bytes() == request_.to_bytes()
    assert {"tilewright", "llvmlite", "xdsl"} <= set(kept.versions)


def test_an_error_of_the_kernel_leaves_no_file(cache_dir: Path) -> None:
    with pytest.raises(StaticAssertionFailed):
        instruments.compile_watched(request_for(8192), KEY)
    assert list((cache_dir / "reproducers").iterdir()) == []


def test_no_cache_directory_means_no_reproducer_and_no_failure(
    request_: CompileRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_DISABLE_CACHE", "1")
    assert instruments.compile_watched(request_, KEY).key == KEY


def test_a_directory_that_cannot_be_made_is_no_failure(
    request_: CompileRequest, cache_dir: Path
) -> None:
    cache_dir.parent.mkdir(exist_ok=True)
    cache_dir.write_text("a file")
    assert instruments.compile_watched(request_, KEY).key == KEY
    assert ReproducerStore(cache_dir / "sub").write(Reproducer(request_, "", "", {}), KEY) is None


def test_a_process_that_dies_leaves_a_breadcrumb_that_the_next_one_adopts(
    request_: CompileRequest, cache_dir: Path
) -> None:
    code = """
    import os, pathlib, sys
    from tilewright.compiler.reproducer import ReproducerStore
    from tilewright.compiler.request import CompileRequest
    request = CompileRequest.from_bytes(sys.stdin.buffer.read())
    with ReproducerStore(pathlib.Path(sys.argv[1])).breadcrumb(request, "0" * 64):
        os._exit(9)
    """
    directory = cache_dir / "reproducers"
    command = [sys.executable, "-c", textwrap.dedent(code), str(directory)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    child = subprocess.run(command, input=request_.to_bytes(), env=env, check=False)
    assert child.returncode == 9
    with pytest.warns(ReproducerWarning, match="tilewright replay .*store_one-000000000000"):
        tell_of_orphans(directory)
    (path,) = directory.iterdir()
    kept = read_reproducer(path)
    assert kept.message == DIED
    assert kept.request.to_bytes() == request_.to_bytes()


def test_a_breadcrumb_of_a_living_compile_is_left_alone(
    request_: CompileRequest, tmp_path: Path
) -> None:
    store = ReproducerStore(tmp_path / "reproducers")
    with store.breadcrumb(request_, KEY):
        (path,) = store.directory.iterdir()
        assert store.adopt_orphans() == []
        assert path.exists()
    assert list(store.directory.iterdir()) == []
