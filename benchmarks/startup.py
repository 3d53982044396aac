"""Fresh processes: import, a cache hit, cold and warm compilation, memory.

Each sample is a process of its own; times run from the moment before it is started, so that
they hold the start of Python and the import of NumPy.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.harness import QuietMachine, Row
from benchmarks.startup_child import KERNELS as CHILD_KERNELS

FAMILY = "start"
THREADS = (2,)
SAMPLES = 9
KERNELS = tuple(CHILD_KERNELS)
COLD_BARS = {"vector add": 0.4, "matmul": 0.8, "attention": 1.5}
WARM_BARS = {"vector add": 0.05, "matmul": 0.3, "attention": 0.8}
IMPORT = """import sys, time
started = time.perf_counter()
import tilewright
print(time.perf_counter() - started)"""


def rows(threads: int) -> Iterator[Row]:
    """Every row of this family."""
    yield Row(FAMILY, "import tilewright", threads, import_seconds(), "s", 0.1)
    yield cache_hit_row(threads)
    peak_megabytes = 0.0
    for kernel in KERNELS:
        reports = fresh_reports("cold", kernel)
        work = f"cold compile in a fresh process to the result, {kernel}"
        value = median_of(reports, "seconds_since_start")
        yield Row(FAMILY, work, threads, value, "s", COLD_BARS[kernel], note=cpu_note(reports))
        peak_megabytes = median_of(reports, "peak_megabytes")
    work = f"peak memory while compiling {KERNELS[-1]}"
    yield Row(FAMILY, work, threads, peak_megabytes, "MB", 400)
    for kernel in KERNELS:
        value = median_of(fresh_reports("warm", kernel), "compile_seconds")
        work = f"compile in a warm process, {kernel}"
        yield Row(FAMILY, work, threads, value, "s", WARM_BARS[kernel])


def import_seconds() -> float:
    """The import alone, without the start of Python."""
    wait, times = QuietMachine(), []
    for _ in range(SAMPLES + 1):
        wait.until_quiet()
        command = [sys.executable, "-c", IMPORT]
        times.append(float(subprocess.check_output(command, text=True, env=environment())))
    return statistics.median(times[1:])


def cache_hit_row(threads: int) -> Row:
    """A kernel that an earlier process compiled."""
    with tempfile.TemporaryDirectory() as cache:
        run_child("cold", "vector add", cache)
        wait, reports = QuietMachine(), []
        for _ in range(SAMPLES):
            wait.until_quiet()
            reports.append(run_child("cold", "vector add", cache))
    loaded = sorted({str(name) for report in reports for name in as_list(report["compiler"])})
    seconds = median_of(reports, "seconds_since_start")
    note = f"imports {', '.join(loaded)}" if loaded else "without xdsl and the compiler"
    note = f"{note}; {cpu_note(reports)}"
    value = None if loaded else seconds
    ours = f"{seconds:.3g} s" if loaded else ""
    work = "cache hit in a fresh process to the result"
    return Row(FAMILY, work, threads, value, "s", 0.2, ours=ours, note=note)


def fresh_reports(mode: str, kernel: str) -> list[dict[str, object]]:
    """What fresh processes report, each with an empty cache."""
    wait, reports = QuietMachine(), []
    for _ in range(SAMPLES):
        wait.until_quiet()
        with tempfile.TemporaryDirectory() as cache:
            reports.append(run_child(mode, kernel, cache))
    return reports


def median_of(reports: Sequence[dict[str, object]], measure: str) -> float:
    """The median of one figure of the reports."""
    return statistics.median(as_float(report[measure]) for report in reports)


def cpu_note(reports: Sequence[dict[str, object]]) -> str:
    """The CPU time, which other work on the machine disturbs less than the wall time."""
    return f"CPU time {median_of(reports, 'cpu_seconds'):.3g} s"


def run_child(mode: str, kernel: str, cache: str) -> dict[str, object]:
    """What `startup_child` reports of one run."""
    script = Path(__file__).with_name("startup_child.py")
    command = [sys.executable, str(script), mode, kernel, cache, repr(time.monotonic())]
    return json.loads(subprocess.check_output(command, text=True, env=environment()))


def environment() -> dict[str, str]:
    """This environment, but Python may keep compiled modules, as it does for users.

    Without them every process compiles every source file anew, which doubles a cold start.
    """
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def as_float(value: object) -> float:
    """A number of the report."""
    assert isinstance(value, int | float), value
    return float(value)


def as_list(value: object) -> list[object]:
    """A list of the report."""
    assert isinstance(value, list), value
    return value
