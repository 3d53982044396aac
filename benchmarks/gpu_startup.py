"""Fresh processes on the GPU machine: the first result from a hot cache, cold compilation.

A child starts CUDA first, then runs one kernel of `gpu_kernels.py` to its first result and
reports the seconds in between. Triton's child does the same with its own cache.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import Row

FAMILY = "gpu start"
SAMPLES = 3
HOT_BAR_SECONDS = 0.5
KERNELS = ("add", "matmul", "attention")
CHILD = Path(__file__).with_name("gpu_startup_child.py")


def rows() -> Iterator[Row]:
    """Hot and cold starts; a cold one is beside Triton's."""
    with tempfile.TemporaryDirectory() as cache:
        first_result("ours", "add", cache)
        hot = statistics.median(first_result("ours", "add", cache) for _ in range(SAMPLES))
    yield Row(FAMILY, "hot cache, fresh process, to the result", 1, hot, "s", HOT_BAR_SECONDS)
    for kernel in KERNELS:
        ours, theirs = (cold_seconds(who, kernel) for who in ("ours", "theirs"))
        shown = f"{ours:.2f} s", f"{theirs:.2f} s"
        work = f"cold compile in a fresh process to the result, {kernel}"
        yield Row(FAMILY, work, 1, theirs / ours, "x", 1.0, *shown)


def cold_seconds(who: str, kernel: str) -> float:
    """The median over fresh processes with empty caches."""
    times: list[float] = []
    for _ in range(SAMPLES):
        with tempfile.TemporaryDirectory() as cache:
            times.append(first_result(who, kernel, cache))
    return statistics.median(times)


def first_result(who: str, kernel: str, cache: str) -> float:
    """Seconds from CUDA's start to the first result of a kernel in a fresh process."""
    command = [sys.executable, str(CHILD), who, kernel, cache]
    return float(json.loads(subprocess.check_output(command, text=True))["seconds"])
