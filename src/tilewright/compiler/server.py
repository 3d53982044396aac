"""The compile server: one process that has loaded the compiler, and forks itself for jobs.

A fork starts in milliseconds where a fresh interpreter takes a second, and dies alone: what kills
or hangs LLVM costs one job. A fork that has done its job takes the next one, for a warm compiler
is three times as fast as a cold one. The server has one thread, which is what makes forking safe.
It is `python -m tilewright.compiler.server`, started by `compiler/client.py`; frames come in on
stdin and go out on stdout (`compiler/framing.py`). It ends when stdin does, or after some idle
time.
"""

from __future__ import annotations

import gc
import importlib
import io
import json
import os
import selectors
import signal
import sys
import tempfile
import time
from collections import deque
from collections.abc import Mapping
from contextlib import redirect_stdout, suppress
from dataclasses import field
from typing import BinaryIO

from tilewright.analysis.argument_effects import argument_effects
from tilewright.compiler.compile import StageResult, effects_by_path
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
from tilewright.compiler.worker import describe_exit, serve
from tilewright.runtime.fingerprint import usable_cpu_count
from tilewright.support.dataclass import dataclass
from tilewright.support.environment import replace_environment

IDLE_S = 60.0
_TICK_S = 0.1
_READ_BYTES = 1 << 16
_STDERR_BYTES = 2000
# What a job needs from the compiler whatever it is; loaded before the first fork.
_MODULES = ("tilewright.codegen.optimize", "tilewright.targets.{target}.manifest")


@dataclass
class _Fork:
    """One child: where it takes jobs and gives frames, and the job that it has (None: idle)."""

    process: int
    jobs: int
    frames: int
    stderr: BinaryIO
    number: int | None = None
    timeout_s: float = 0.0
    deadline: float = 0.0
    buffer: FrameBuffer = field(default_factory=FrameBuffer)


class Server:
    """Reads frames from `source`, runs at most `num_forks` children, writes frames to `sink`."""

    def __init__(self, source: int, sink: int, num_forks: int, idle_s: float = IDLE_S) -> None:
        self._source, self._sink = source, sink
        self._num_forks, self._idle_s = num_forks, idle_s
        self._incoming = FrameBuffer()
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._forks: dict[int, _Fork] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(source, selectors.EVENT_READ)

    def run(self) -> None:
        """Serve until nobody asks any more."""
        last_work = time.monotonic()
        while True:
            for key, _ in self._selector.select(_TICK_S):
                if key.fd != self._source:
                    self._read_fork(self._forks[key.fd])
                elif not self._read_source():
                    self._kill_all()
                    return
            now = time.monotonic()
            for fork in self._forks.values():
                if fork.number is not None and now > fork.deadline:
                    _kill(fork)
            while self._waiting and self._hand_out(*self._waiting[0]):
                self._waiting.popleft()
            if any(fork.number is not None for fork in self._forks.values()):
                last_work = now
            elif now - last_work > self._idle_s:
                self._kill_all()
                return

    def _send(self, data: bytes) -> None:
        _write(self._sink, data)

    def _read_source(self) -> bool:
        data = os.read(self._source, _READ_BYTES)
        for number, kind, body in self._incoming.add(data):
            if kind == COMPILE:
                self._waiting.append((number, body))
            elif kind == CANCEL:
                self._cancel(number)
        return bool(data)

    def _cancel(self, number: int) -> None:
        for fork in self._forks.values():
            if fork.number == number:
                _kill(fork)
        left = deque(entry for entry in self._waiting if entry[0] != number)
        if len(left) < len(self._waiting):
            self._send(frame(number, FAILURE, b"is not wanted any more"))
        self._waiting = left

    def _hand_out(self, number: int, message: bytes) -> bool:
        """Give a job to an idle child, or a new one; whether there was one."""
        fork = next((fork for fork in self._forks.values() if fork.number is None), None)
        if fork is None:
            if len(self._forks) >= self._num_forks:
                return False
            fork = self._fork()
        settings = json.loads(message.partition(b"\n")[0])
        fork.number, fork.timeout_s = number, float(settings["timeout_s"])
        fork.deadline = time.monotonic() + fork.timeout_s
        # A child that has died meanwhile closes its end, which `_finish` hears of.
        with suppress(BrokenPipeError):
            _write(fork.jobs, frame(number, COMPILE, message))
        return True

    def _fork(self) -> _Fork:
        stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the child has ended
        jobs, jobs_end = os.pipe()
        frames, frames_end = os.pipe()
        process = os.fork()
        if process == 0:
            # Whoever holds an end of another's pipe keeps it from seeing the other side go.
            others = [fd for fork in self._forks.values() for fd in (fork.jobs, fork.frames)]
            for fd in (*others, self._sink, self._source, jobs_end, frames):
                os.close(fd)
            _serve_jobs(jobs, frames_end, stderr.fileno())
        os.close(jobs)
        os.close(frames_end)
        # Here as well as in the child, so that it holds whoever comes first.
        with suppress(ProcessLookupError, PermissionError):
            os.setpgid(process, process)
        fork = self._forks[frames] = _Fork(process, jobs_end, frames, stderr)
        self._selector.register(frames, selectors.EVENT_READ)
        return fork

    def _read_fork(self, fork: _Fork) -> None:
        data = os.read(fork.frames, _READ_BYTES)
        for number, kind, body in fork.buffer.add(data):
            self._send(frame(number, kind, body))
            if kind == ANSWER:
                fork.number = None
        if not data:
            self._finish(fork)

    def _finish(self, fork: _Fork) -> None:
        """Reap a child that has closed its pipe, and say why if it owed an answer."""
        del self._forks[fork.frames]
        self._selector.unregister(fork.frames)
        os.close(fork.frames)
        os.close(fork.jobs)
        _, status = os.waitpid(fork.process, 0)
        if fork.number is not None:
            self._send(frame(fork.number, FAILURE, _reason(fork, status).encode()))
        fork.stderr.close()

    def _kill_all(self) -> None:
        for fork in self._forks.values():
            _kill(fork)


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _kill(fork: _Fork) -> None:
    """Kill a child with all that it started; its pipe closes, and `_finish` reaps it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(fork.process, signal.SIGKILL)


def _reason(fork: _Fork, status: int) -> str:
    """Why a child ended without an answer, to stand behind the kernel's name."""
    if time.monotonic() > fork.deadline:
        return f"took longer than {fork.timeout_s:g} s to compile"
    fork.stderr.seek(0, os.SEEK_END)
    fork.stderr.seek(max(0, fork.stderr.tell() - _STDERR_BYTES))
    written = fork.stderr.read().decode(errors="replace").strip()
    end = describe_exit(os.waitstatus_to_exitcode(status))
    return f"killed the compiler with {end}" + (f"\n{written}" if written else "")


def _serve_jobs(jobs: int, frames: int, stderr: int) -> None:
    """Compile what comes, in a process of its own group; never returns."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.dup2(stderr, 2)
    os.dup2(stderr, 1)
    buffer = FrameBuffer()
    with suppress(BrokenPipeError), os.fdopen(frames, "wb") as out:
        while data := os.read(jobs, _READ_BYTES):
            for number, _, message in buffer.add(data):
                # What an earlier job wrote is no reason for the end of this one.
                os.lseek(stderr, 0, os.SEEK_SET)
                os.ftruncate(stderr, 0)
                _answer(number, message, out)
    os._exit(0)


def _answer(number: int, message: bytes, out: BinaryIO) -> None:
    def watch(request: CompileRequest, stage: str, result: StageResult) -> None:
        if stage == "frontend" and not isinstance(result, str | Mapping):
            found = effects_by_path(request, argument_effects(result))
            out.write(frame(number, EFFECTS, json.dumps(found).encode()))
            out.flush()

    replace_environment(json.loads(message.partition(b"\n")[0])["environment"])
    with redirect_stdout(io.StringIO()) as printed:
        answer = serve(message, watch)
    out.write(frame(number, PRINTED, printed.getvalue().encode()))
    out.write(frame(number, ANSWER, answer))
    out.flush()


def main() -> None:
    """Load the compiler for the target that is named, and serve."""
    # Ctrl-C in a terminal reaches every process; the one that is interrupted decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What a library prints must not get between the frames.
    sink = os.dup(1)
    os.dup2(2, 1)
    for name in _MODULES:
        importlib.import_module(name.format(target=sys.argv[-1]))
    # Pages that the collector does not touch stay shared with every child.
    gc.collect()
    gc.freeze()
    Server(0, sink, usable_cpu_count()).run()


if __name__ == "__main__":
    main()
