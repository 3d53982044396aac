"""Kernels that are being compiled in other processes, ahead of the launch that needs them.

A tuner submits all of its configurations and times those that are ready. Whoever compiles a
kernel of the same cache key in the meantime waits for the job instead.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Final

ArgumentPath = Sequence[str | int]


class CompileJob:
    """One kernel on its way; filled in by whoever compiles it, under `news`.

    `effects` are its `reads` and `writes` (paths of arguments), known long before its `answer`.
    `failure` says why there will be none; `is_lost` is a failure that says nothing about the
    kernel. `printed` is what compiling it wrote to standard output.
    """

    def __init__(
        self, key: str, news: threading.Condition, is_on_host: bool, cancel: Callable[[], object]
    ) -> None:
        self.key = key
        self.news = news
        self.is_on_host = is_on_host
        self.cancel = cancel
        self.effects: Mapping[str, Sequence[ArgumentPath]] | None = None
        self.answer: bytes | None = None
        self.failure: str | None = None
        self.is_lost = False
        self.printed = ""

    @property
    def is_done(self) -> bool:
        """Whether there is an answer or none will come."""
        return self.answer is not None or self.failure is not None

    @property
    def is_analysed(self) -> bool:
        """Whether what the kernel reads and writes is known, or will not be."""
        return self.effects is not None or self.is_done

    def wait(self) -> None:
        """Return when the job is done. *Undefined* for a job that nobody works on."""
        with self.news:
            while not self.is_done:
                # Without a limit Ctrl-C would wait as well.
                self.news.wait(_PATIENCE_S)


_PATIENCE_S = 0.1
# The jobs of this process that nobody has taken yet, by cache key.
JOBS: Final[dict[str, CompileJob]] = {}


def wait_for_news(jobs: Sequence[CompileJob]) -> None:
    """Wait a little, or until something happens to one of the jobs, which share a condition."""
    with jobs[0].news:
        jobs[0].news.wait(_PATIENCE_S)


def drop(jobs: Sequence[CompileJob]) -> None:
    """Let nobody wait for these jobs, and stop the work on those that are not done."""
    for job in jobs:
        if JOBS.get(job.key) is job:
            del JOBS[job.key]
        if not job.is_done:
            job.cancel()
