"""Workers that examine random programs, so that a program may kill or hang its compiler.

    supervisor ── task ──► worker (a process)      a task is a seed or a program
               ◄─ Finding | None ──                a worker that dies is itself the finding

A worker holds one task at a time, so the supervisor knows which program killed it.
"""

from __future__ import annotations

import gc
import multiprocessing
import signal
import time
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from tests.fuzz.generator import generate
from tests.fuzz.oracle import VARIANTS, Finding, examine, examine_briskly, ways_of
from tests.fuzz.program import Program

Task = int | Program
BRISK_WAYS = ("default", *VARIANTS)
# Compiled kernels stay in a process for its life; a new process starts small again.
_TASKS_PER_WORKER = 400
# A worker that starts imports the compiler, torch and a driver before its first program.
_START_SECONDS = 90.0


def variants_of(task: Task, chosen: tuple[str, ...]) -> tuple[str, ...]:
    """What a program is compared with: the chosen variants, else one of all by its seed."""
    seed = task if isinstance(task, int) else task.seed
    return chosen or (VARIANTS[seed % len(VARIANTS)],)


def examine_task(task: Task, chosen: tuple[str, ...], is_brisk: bool) -> Finding | None:
    """Generate the program if need be, run it every way and compare.

    Brisk is one way for a program, the default compilation among them, on one lowering.
    """
    program = generate(task) if isinstance(task, int) else task
    if is_brisk:
        ways = chosen or BRISK_WAYS
        return examine_briskly(program, ways[program.seed % len(ways)])
    more, variants = ways_of(variants_of(task, chosen))
    return examine(program, variants, more)


def _work(connection: Connection, chosen: tuple[str, ...], is_brisk: bool) -> None:
    # A program leaves little garbage in cycles, and looking for it takes a tenth of the time.
    gc.set_threshold(100_000)
    # The supervisor alone answers Ctrl-C.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        try:
            finding = examine_task(task, chosen, is_brisk)
        except Exception as error:
            # What no way is meant to raise is a finding too, and the worker goes on.
            finding = Finding(f"raised: {type(error).__name__}", traceback.format_exc())
        connection.send(finding)


@dataclass
class Worker:
    """A process, the task that it holds and when it must have answered."""

    process: BaseProcess
    connection: Connection
    task: Task | None = None
    deadline: float = 0.0
    num_done: int = 0

    def give(self, task: Task, seconds: float) -> None:
        """Send a task."""
        allowed = seconds if self.num_done else seconds + _START_SECONDS
        self.task, self.deadline = task, time.monotonic() + allowed
        self.connection.send(task)

    def stop(self) -> None:
        """End the process and wait for it."""
        self.process.kill()
        self.process.join()
        self.connection.close()


@dataclass
class Farm:
    """Runs tasks on `jobs` workers; a task may take `seconds`."""

    jobs: int
    variants: tuple[str, ...] = ()
    is_brisk: bool = False
    seconds: float = 60.0
    workers: list[Worker] = field(default_factory=list[Worker])

    def __enter__(self) -> Farm:
        self.workers = [self._start() for _ in range(self.jobs)]
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.stop()

    def _start(self) -> Worker:
        # A fork would inherit locks and compiler state of the supervisor.
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(
            target=_work, args=(theirs, self.variants, self.is_brisk), daemon=True
        )
        process.start()
        theirs.close()
        return Worker(process, ours)

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Finding | None]]:
        """Each task with its finding, in the order in which workers finish."""
        waiting = iter(tasks)
        for worker in self.workers:
            self._feed(worker, waiting)
        while busy := [worker for worker in self.workers if worker.task is not None]:
            soonest = min(worker.deadline for worker in busy)
            ready = wait([w.connection for w in busy], max(0.0, soonest - time.monotonic()))
            for worker in busy:
                is_late = time.monotonic() > worker.deadline
                if worker.connection not in ready and not is_late:
                    continue
                task = worker.task
                assert task is not None
                yield task, self._answer(worker, worker.connection in ready)
                self._feed(worker, waiting)

    def examine(self, task: Task) -> Finding | None:
        """The finding of one task."""
        ((_, finding),) = self.run((task,))
        return finding

    def _feed(self, worker: Worker, waiting: Iterator[Task]) -> None:
        task = next(waiting, None)
        worker.task = None
        if task is None:
            return
        if worker.num_done >= _TASKS_PER_WORKER:
            self._replace(worker)
        worker.give(task, self.seconds)

    def _answer(self, worker: Worker, is_ready: bool) -> Finding | None:
        worker.num_done += 1
        if not is_ready:
            self._replace(worker)
            return Finding("hung", f"no answer in {self.seconds:g} s")
        try:
            return worker.connection.recv()
        except (EOFError, ConnectionError):
            worker.process.join()
            name = _death(worker.process.exitcode)
            self._replace(worker)
            return Finding(f"died: {name}", f"the worker ended with {name}")

    def _replace(self, worker: Worker) -> None:
        worker.stop()
        fresh = self._start()
        worker.process, worker.connection, worker.num_done = fresh.process, fresh.connection, 0


def _death(code: int | None) -> str:
    if code is not None and code < 0:
        return signal.Signals(-code).name
    return f"exit code {code}"
