"""The client of the compile server: jobs submitted by a tuner, their answers taken by a launch.

One server a process and target, started when it is first of use. A thread reads what it sends.
Where there is no `fork`, or the server does not start, there are no jobs and everything is
compiled in this process.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from tilewright.compiler.framing import (
    ANSWER,
    CANCEL,
    COMPILE,
    EFFECTS,
    FAILURE,
    PRINTED,
    FrameBuffer,
    frame,
)
from tilewright.compiler.request import CompileRequest
from tilewright.compiler.worker import (
    DEFAULT_MEMORY_BYTES,
    DEFAULT_TIMEOUT_S,
    name_reproducer,
    read_answer,
    search_paths,
    start_command,
)
from tilewright.frontend.devices import HOST_TARGETS
from tilewright.runtime.ahead import JOBS, CompileJob
from tilewright.runtime.artifact import Artifact
from tilewright.runtime.fingerprint import usable_cpu_count
from tilewright.runtime.isolation import is_isolated
from tilewright.runtime.kernel import STATISTICS
from tilewright.support.environment import environment
from tilewright.support.errors import InternalError

SERVER_MODULE = "tilewright.compiler.server"
_READ_BYTES = 1 << 16
_END_S = 2.0
# What starting a server costs, and what a kernel takes that nobody has measured yet.
_START_S = 1.0
_UNKNOWN_COMPILE_S = 0.3


class Client:
    """One server and the jobs that it works on."""

    def __init__(self, target: str, command: Sequence[str] | None = None) -> None:
        self._target = target
        self._news = threading.Condition()
        self._jobs: dict[int, CompileJob] = {}
        self._count = 0
        self._process = subprocess.Popen(
            [*(command or start_command(SERVER_MODULE)), target],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # One thread: BLAS libraries start their own, which a fork would lose.
            env={**environment(), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._read, daemon=True, name="tilewright-compile")
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the server takes jobs."""
        return self._process.poll() is None

    def submit(self, request: CompileRequest, key: str) -> CompileJob:
        """Have a request compiled, under its cache key."""
        with self._lock:
            self._count += 1
            number = self._count
            is_on_host = self._target in HOST_TARGETS
            job = CompileJob(key, self._news, is_on_host, lambda: self._cancel(number))
            self._jobs[number] = job
            self._write(number, COMPILE, _message(request, key))
        return job

    def close(self) -> None:
        """End the server, and wait until it has gone."""
        self._close_input()
        if threading.current_thread() is not self._thread:
            self._thread.join(_END_S)

    def _close_input(self) -> None:
        assert self._process.stdin is not None
        with suppress(OSError, ValueError):
            self._process.stdin.close()

    def _cancel(self, number: int) -> None:
        with self._lock:
            self._write(number, CANCEL)

    def _write(self, number: int, kind: int, data: bytes = b"") -> None:
        pipe = self._process.stdin
        assert pipe is not None
        try:
            pipe.write(frame(number, kind, data))
            pipe.flush()
        except (OSError, ValueError):
            self._lose()

    def _read(self) -> None:
        assert self._process.stdout is not None
        frames = FrameBuffer()
        with self._process.stdout as output:
            while data := os.read(output.fileno(), _READ_BYTES):
                with self._news:
                    for number, kind, body in frames.add(data):
                        self._take(number, kind, body)
                    self._news.notify_all()
        self._close_input()
        self._process.wait()
        self._lose()

    def _take(self, number: int, kind: int, body: bytes) -> None:
        job = self._jobs.get(number)
        if job is None:
            return
        if kind == EFFECTS:
            job.effects = json.loads(body)
        elif kind == PRINTED:
            job.printed = body.decode(errors="replace")
        elif kind == ANSWER:
            job.answer = body
        elif kind == FAILURE:
            job.failure = body.decode(errors="replace")
        if job.is_done:
            del self._jobs[number]

    def _lose(self) -> None:
        """The server is gone: nothing that was not answered will be."""
        with self._news:
            for job in self._jobs.values():
                job.failure, job.is_lost = "lost the compile server", True
            self._jobs.clear()
            self._news.notify_all()


def _message(request: CompileRequest, key: str) -> bytes:
    settings = {
        "key": key,
        "memory_bytes": DEFAULT_MEMORY_BYTES,
        "timeout_s": DEFAULT_TIMEOUT_S,
        "keeps_reproducer": True,
        "environment": environment(),
        "paths": search_paths(request),
    }
    return json.dumps(settings).encode() + b"\n" + request.to_bytes()


# By target, with the process that started it: a forked child must not write to it.
_CLIENTS: Final[dict[str, tuple[int, Client]]] = {}
_clients_lock = threading.Lock()
atexit.register(lambda: stop_servers())  # it is defined below


def submit(request: CompileRequest, key: str, num_left: int) -> CompileJob | None:
    """Have a request compiled while the caller goes on; None where that is not worth it.

    `num_left` is how many kernels the caller has to compile, this one included.
    """
    known = JOBS.get(key)
    if known is not None:
        return known
    if not hasattr(os, "fork") or not _is_worth_it(request.target, num_left):
        return None
    client = _client(request.target)
    if client is None:
        return None
    job = client.submit(request, key)
    JOBS[key] = job
    return job


def _is_worth_it(target: str, num_left: int) -> bool:
    if is_isolated() or _has_server(target):
        return True
    if usable_cpu_count() < 2 or num_left < 2:
        return False
    if target not in HOST_TARGETS:
        return True
    count = STATISTICS.compiled
    seconds = STATISTICS.compile_seconds / count if count else _UNKNOWN_COMPILE_S
    return num_left * seconds > 2 * _START_S


def _has_server(target: str) -> bool:
    owner, client = _CLIENTS.get(target, (0, None))
    return client is not None and owner == os.getpid() and client.is_alive


def _client(target: str) -> Client | None:
    with _clients_lock:
        if not _has_server(target):
            try:
                _CLIENTS[target] = (os.getpid(), Client(target))
            except OSError:
                return None
        return _CLIENTS[target][1]


def take(job: CompileJob, request: CompileRequest) -> Artifact | None:
    """What a job gives, waiting for it; None when the server was lost on the way.

    Raises: what the compiler raised; `InternalError` when the job died or hung.
    """
    job.wait()
    if job.printed:
        print(job.printed, end="")
    if job.answer is not None:
        return read_answer(job.answer, request.name, job.key)
    if job.is_lost:
        return None
    error = InternalError(f"{request.name}() {job.failure}")
    name_reproducer(error, request)
    raise error


def stop_servers() -> None:
    """End the servers of this process; the next job starts one again."""
    with _clients_lock:
        for owner, client in _CLIENTS.values():
            if owner == os.getpid():
                client.close()
        _CLIENTS.clear()


def _forget_servers() -> None:
    """In a forked child: the servers and their jobs are the parent's."""
    global _clients_lock
    _clients_lock = threading.Lock()
    _CLIENTS.clear()
    JOBS.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_servers)
