"""The compile server: one process that has loaded the compiler, and forks itself for each job.

A fork starts in milliseconds where a fresh interpreter takes a second, and dies alone: what kills
or hangs LLVM costs one job. The server has one thread, which is what makes forking safe. It is
`python -m tilewright.compiler.server`, started by `compiler/client.py`; frames come in on stdin
and go out on stdout (`compiler/framing.py`). It ends when stdin does, or after some idle time.
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
from contextlib import redirect_stdout, suppress
from dataclasses import field
from typing import BinaryIO

from xdsl.dialects.builtin import ModuleOp

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
from tilewright.support.options import replace_environment

IDLE_S = 60.0
_TICK_S = 0.1
_READ_BYTES = 1 << 16
_STDERR_BYTES = 2000
# What a job needs from the compiler whatever it is; loaded before the first fork.
_MODULES = ("tilewright.codegen.optimize", "tilewright.targets.{target}.manifest")


@dataclass
class _Job:
    """One forked child: its frames so far, and what it writes to stderr."""

    number: int
    process: int
    pipe: int
    stderr: BinaryIO
    deadline: float
    timeout_s: float
    frames: FrameBuffer = field(default_factory=FrameBuffer)
    is_answered: bool = False


class Server:
    """Reads frames from `source`, runs at most `num_jobs` children, writes frames to `sink`."""

    def __init__(self, source: int, sink: int, num_jobs: int, idle_s: float = IDLE_S) -> None:
        self._source, self._sink = source, sink
        self._num_jobs, self._idle_s = num_jobs, idle_s
        self._incoming = FrameBuffer()
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._running: dict[int, _Job] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(source, selectors.EVENT_READ)

    def run(self) -> None:
        """Serve until nobody asks any more."""
        last_work = time.monotonic()
        while True:
            for key, _ in self._selector.select(_TICK_S):
                if key.fd != self._source:
                    self._read_job(self._running[key.data])
                elif not self._read_source():
                    self._stop_all()
                    return
            now = time.monotonic()
            self._stop_late(now)
            while self._waiting and len(self._running) < self._num_jobs:
                self._start(*self._waiting.popleft())
            if self._running:
                last_work = now
            elif now - last_work > self._idle_s:
                return

    def _send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._sink, view) :]

    def _read_source(self) -> bool:
        data = os.read(self._source, _READ_BYTES)
        for number, kind, body in self._incoming.add(data):
            if kind == COMPILE:
                self._waiting.append((number, body))
            elif kind == CANCEL:
                self._cancel(number)
        return bool(data)

    def _cancel(self, number: int) -> None:
        if number in self._running:
            _kill(self._running[number])
            return
        left = deque(entry for entry in self._waiting if entry[0] != number)
        if len(left) < len(self._waiting):
            self._send(frame(number, FAILURE, b"is not wanted any more"))
        self._waiting = left

    def _start(self, number: int, message: bytes) -> None:
        settings = json.loads(message.partition(b"\n")[0])
        timeout_s = float(settings["timeout_s"])
        stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the job is finished
        read_end, write_end = os.pipe()
        process = os.fork()
        if process == 0:
            os.close(self._sink)
            os.close(self._source)
            _run_child(number, message, write_end, stderr.fileno())
        os.close(write_end)
        # Here as well as in the child, so that it holds whoever comes first.
        with suppress(ProcessLookupError, PermissionError):
            os.setpgid(process, process)
        deadline = time.monotonic() + timeout_s
        self._running[number] = _Job(number, process, read_end, stderr, deadline, timeout_s)
        self._selector.register(read_end, selectors.EVENT_READ, number)

    def _read_job(self, job: _Job) -> None:
        data = os.read(job.pipe, _READ_BYTES)
        for number, kind, body in job.frames.add(data):
            job.is_answered |= kind == ANSWER
            self._send(frame(number, kind, body))
        if not data:
            self._finish(job)

    def _finish(self, job: _Job) -> None:
        """Reap a child that has closed its pipe, and say why if it gave no answer."""
        self._selector.unregister(job.pipe)
        os.close(job.pipe)
        _, status = os.waitpid(job.process, 0)
        del self._running[job.number]
        if not job.is_answered:
            self._send(frame(job.number, FAILURE, _reason(job, status).encode()))
        job.stderr.close()

    def _stop_late(self, now: float) -> None:
        for job in self._running.values():
            if now > job.deadline:
                _kill(job)

    def _stop_all(self) -> None:
        for job in self._running.values():
            _kill(job)


def _kill(job: _Job) -> None:
    """Kill a child with all that it started; its pipe closes, and `_finish` reaps it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(job.process, signal.SIGKILL)


def _reason(job: _Job, status: int) -> str:
    """Why a child ended without an answer, to stand behind the kernel's name."""
    if time.monotonic() > job.deadline:
        return f"took longer than {job.timeout_s:g} s to compile"
    job.stderr.seek(0, os.SEEK_END)
    job.stderr.seek(max(0, job.stderr.tell() - _STDERR_BYTES))
    written = job.stderr.read().decode(errors="replace").strip()
    end = describe_exit(os.waitstatus_to_exitcode(status))
    return f"killed the compiler with {end}" + (f"\n{written}" if written else "")


def _run_child(number: int, message: bytes, pipe: int, stderr: int) -> None:
    """Compile in a process of its own group; never returns."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.dup2(stderr, 2)
    os.dup2(stderr, 1)
    with suppress(BrokenPipeError), os.fdopen(pipe, "wb") as out:
        _answer(number, message, out)
    os._exit(0)


def _answer(number: int, message: bytes, out: BinaryIO) -> None:
    def watch(request: CompileRequest, stage: str, result: StageResult) -> None:
        if stage == "frontend" and isinstance(result, ModuleOp):
            found = effects_by_path(request, argument_effects(result))
            out.write(frame(number, EFFECTS, json.dumps(found).encode()))
            out.flush()

    replace_environment(json.loads(message.partition(b"\n")[0])["environment"])
    with redirect_stdout(io.StringIO()) as printed:
        answer = serve(message, watch)
    out.write(frame(number, PRINTED, printed.getvalue().encode()))
    out.write(frame(number, ANSWER, answer))


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
