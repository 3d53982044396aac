"""Fresh processes: import, a cache hit, cold and warm compilation, memory.

Each sample is a process of its own; times run from the moment before it is started, so that
they hold the start of Python and the import of NumPy.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import Row
from benchmarks.startup_child import KERNELS

FAMILY = "start"
THREADS = (2,)
SAMPLES = 9
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
    for kernel in KERNELS:
        seconds = median_of("cold", kernel, "seconds_since_start")
        work = f"cold compile in a fresh process to the result, {kernel}"
        yield Row(FAMILY, work, threads, seconds, "s", COLD_BARS[kernel])
    for kernel in KERNELS:
        seconds = median_of("warm", kernel, "compile_seconds")
        work = f"compile in a warm process, {kernel}"
        yield Row(FAMILY, work, threads, seconds, "s", WARM_BARS[kernel])
    megabytes = median_of("cold", "attention", "peak_megabytes")
    yield Row(FAMILY, "peak memory while compiling attention", threads, megabytes, "MB", 400)


def import_seconds() -> float:
    """The import alone, without the start of Python."""
    command = [sys.executable, "-c", IMPORT]
    times = [float(subprocess.check_output(command, text=True)) for _ in range(SAMPLES + 1)]
    return statistics.median(times[1:])


def cache_hit_row(threads: int) -> Row:
    """A kernel that an earlier process compiled."""
    with tempfile.TemporaryDirectory() as cache:
        run_child("cold", "vector add", cache)
        reports = [run_child("cold", "vector add", cache) for _ in range(SAMPLES)]
    loaded = sorted({str(name) for report in reports for name in as_list(report["compiler"])})
    seconds = statistics.median(as_float(report["seconds_since_start"]) for report in reports)
    note = f"imports {', '.join(loaded)}" if loaded else "without xdsl and the compiler"
    value = None if loaded else seconds
    ours = f"{seconds:.3g} s" if loaded else ""
    work = "cache hit in a fresh process to the result"
    return Row(FAMILY, work, threads, value, "s", 0.2, ours=ours, note=note)


def median_of(mode: str, kernel: str, measure: str) -> float:
    """The median of what fresh processes with an empty cache report."""
    values = []
    for _ in range(SAMPLES):
        with tempfile.TemporaryDirectory() as cache:
            values.append(as_float(run_child(mode, kernel, cache)[measure]))
    return statistics.median(values)


def run_child(mode: str, kernel: str, cache: str) -> dict[str, object]:
    """What `startup_child` reports of one run."""
    script = Path(__file__).with_name("startup_child.py")
    command = [sys.executable, str(script), mode, kernel, cache, repr(time.monotonic())]
    return json.loads(subprocess.check_output(command, text=True))


def as_float(value: object) -> float:
    """A number of the report."""
    assert isinstance(value, int | float), value
    return float(value)


def as_list(value: object) -> list[object]:
    """A list of the report."""
    assert isinstance(value, list), value
    return value
