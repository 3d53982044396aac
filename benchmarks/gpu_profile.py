"""Why a row is what it is: clock, power and the tensor cores' share of a window of launches.

    python -m benchmarks.gpu_profile                  the windows, ours and the library's
    python -m benchmarks.gpu_profile --stalls         and what warps wait for (Nsight Compute)

A rate is a clock times the share of its cycles in which the tensor cores work. Where a library
has the same share, the rest of the distance is power: both run at the clock that is left. So ours
are those of the choices that are fastest while launches follow one another. Behind the windows
stand bursts of 8 ms, ours and the library's in turn at one clock, by the choice that is fastest so.
"""

from __future__ import annotations

import argparse
import csv
import io
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import torch
from benchmarks import gpu_gradients, gpu_peers
from benchmarks.gpu_schedules import (
    BFLOAT16,
    FLOAT8,
    FLOAT16,
    Operands,
    attention_work,
    product_work,
)
from benchmarks.gpu_timing import (
    Run,
    fastest_hot,
    fastest_in_turn,
    in_turn_hot,
    launch_for,
)

WINDOW_SECONDS, SETTLING_SECONDS = 2.0, 0.7
FLOPS_A_CYCLE = {2: 4096, 1: 8192}
"""Of a multiprocessor, by bytes of an operand. Source: 989 TFLOP/s of 132 at 1.83 GHz (H100)."""
_QUERY = "clocks.sm,power.draw,temperature.gpu"
_SECTIONS = ("SpeedOfLight", "WarpStateStats", "ComputeWorkloadAnalysis", "SchedulerStats")
_STALL = "smsp__average_warps_issue_stalled_"
_ISSUES = "_per_issue_active.ratio"


@dataclass(frozen=True)
class Subject:
    """Ours and the library's launch of one amount of work, in operands of `element_bytes`."""

    tera_flops: float
    ours: Run
    library: Run
    element_bytes: int = 2
    in_turn: Run | None = None
    """Ours beside the library at one clock, where that is another choice."""


@dataclass(frozen=True)
class Window:
    """What a window of launches back to back was: medians of what the driver says."""

    tera_flops_a_second: float
    clock_mhz: float
    watts: float
    celsius: float

    def share(self, element_bytes: int) -> float:
        """The part of all cycles in which the tensor cores work."""
        num_sms = torch.cuda.get_device_properties(0).multi_processor_count
        peak = num_sms * FLOPS_A_CYCLE[element_bytes] * self.clock_mhz * 1e6
        return self.tera_flops_a_second * 1e12 / peak


def _product(size: tuple[int, int, int], operands: Operands) -> Subject:
    work = product_work(size, operands)
    choices = work.schedules["in roles"]
    ours = work.best(gpu_peers.ours(), choices, fastest_hot)
    in_turn = work.best(gpu_peers.ours(), choices, partial(fastest_in_turn, peer=work.library))
    return Subject(work.tera_flops, ours, work.library, operands.dtype.itemsize, in_turn)


def _attention(shape: tuple[int, int, int, int], is_causal: bool) -> Subject:
    work = attention_work(shape, is_causal)
    choices = tuple(c for name in ("nothing said", "in roles") for c in work.schedules[name])
    ours = work.best(gpu_peers.ours(), choices, fastest_hot)
    in_turn = work.best(gpu_peers.ours(), choices, partial(fastest_in_turn, peer=work.library))
    return Subject(work.tera_flops, ours, work.library, in_turn=in_turn)


def _gradients(shape: tuple[int, int, int, int], is_causal: bool) -> Subject:
    forward = gpu_gradients.Forward.of(shape, is_causal)
    batch, heads, length, dim = shape
    flops = 10 * batch * heads * length**2 * dim / 1e12 * (0.5 if is_causal else 1)
    runs = [run for run, _ in gpu_gradients.choices(forward)]
    library = gpu_gradients.cudnn(forward)
    return Subject(flops, fastest_hot(runs), library, in_turn=fastest_in_turn(runs, library))


SUBJECTS: Mapping[str, Callable[[], Subject]] = {
    "matmul bf16 8192x8192x8192": lambda: _product((8192, 8192, 8192), BFLOAT16),
    "matmul bf16 4096x4096x4096": lambda: _product((4096, 4096, 4096), BFLOAT16),
    "matmul bf16 8192x8192x1024": lambda: _product((8192, 8192, 1024), BFLOAT16),
    "matmul fp16 4096x4096x4096": lambda: _product((4096, 4096, 4096), FLOAT16),
    "matmul fp8 8192x8192x8192": lambda: _product((8192, 8192, 8192), FLOAT8),
    "attention (8, 16, 8192, 128)": lambda: _attention((8, 16, 8192, 128), False),
    "attention (4, 32, 4096, 64)": lambda: _attention((4, 32, 4096, 64), False),
    "attention (4, 32, 4096, 128) causal": lambda: _attention((4, 32, 4096, 128), True),
    "backward (8, 16, 8192, 128)": lambda: _gradients((8, 16, 8192, 128), False),
    "backward (4, 32, 4096, 64)": lambda: _gradients((4, 32, 4096, 64), False),
}


def window(run: Run, tera_flops: float) -> Window:
    """Launch back to back for some seconds while the driver is asked for clock and power."""
    launch_for(run, SETTLING_SECONDS)
    command = ["nvidia-smi", f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits", "-lms", "50"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as asked:
        seconds = launch_for(run, WINDOW_SECONDS)
        asked.terminate()
        text = asked.stdout.read() if asked.stdout is not None else ""
    samples = [tuple(map(float, line.split(","))) for line in text.splitlines() if line.strip()]
    clock, watts, celsius = (statistics.median(column) for column in zip(*samples, strict=True))
    return Window(tera_flops / seconds, clock, watts, celsius)


def lines(name: str) -> Iterator[str]:
    """A row of the table for ours, one for the library, taken twice in turn."""
    subject = SUBJECTS[name]()
    for _ in range(2):
        for who, run in (("ours", subject.ours), ("library", subject.library)):
            found = window(run, subject.tera_flops)
            share = found.share(subject.element_bytes)
            yield (
                f"| {name} | {who} | {found.tera_flops_a_second:.0f} | {found.clock_mhz:.0f} "
                f"| {found.watts:.0f} | {found.celsius:.0f} | {share:.1%} |"
            )
    ((median, least, most),) = in_turn_hot([subject.in_turn or subject.ours], subject.library)
    yield f"| {name} | in turn, x the library | {median:.3f} [{least:.3f}, {most:.3f}] | | | | |"


def profiled(name: str) -> None:
    """One launch of ours for Nsight Compute to look at."""
    subject = SUBJECTS[name]()
    subject.ours()
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    subject.ours()
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


def stalls(name: str) -> str:
    """What the longest kernel of a launch says: its clock, its pipes, what its warps wait for."""
    command = ["ncu", "--clock-control", "none", "--profile-from-start", "off", "--csv"]
    command += ["--page", "raw", *(word for s in _SECTIONS for word in ("--section", s))]
    command += [sys.executable, "-m", "benchmarks.gpu_profile", "--child", name]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    table = [row for row in csv.reader(io.StringIO(text)) if len(row) > 10]
    kernels = [dict(zip(table[0], row, strict=False)) for row in table[2:]]
    longest = max(kernels, key=lambda kernel: _number(kernel["gpu__time_duration.sum"]))
    waits = {
        key.removeprefix(_STALL).removesuffix(_ISSUES): _number(value)
        for key, value in longest.items()
        if key.startswith(_STALL) and key.endswith(_ISSUES) and value
    }
    most = sorted(waits.items(), key=lambda item: -item[1])[:6]
    pipes = {
        key: _number(value)
        for key, value in longest.items()
        if ("pipe" in key or "issue_active" in key) and "pct" in key and value
    }
    busy = sorted(pipes.items(), key=lambda item: -item[1])[:6]
    return "\n".join((
        f"{name}: {longest['Kernel Name']}, {longest['gpu__time_duration.sum']} (duration)",
        "  waits, warps for each issue: " + ", ".join(f"{k} {v:.2f}" for k, v in most),
        "  pipes: " + ", ".join(f"{k} {v:.1f} %" for k, v in busy),
    ))  # fmt: skip


def _number(text: str) -> float:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return 0.0


def main() -> None:
    """Print the table, and what warps wait for where that was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_profile", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=tuple(SUBJECTS), default=tuple(SUBJECTS))
    parser.add_argument("--stalls", action="store_true", help="Run Nsight Compute, too.")
    parser.add_argument("--child", choices=tuple(SUBJECTS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        profiled(options.child)
        return
    print("| work | whose | TFLOP/s | MHz | W | °C | tensor cores |\n|---|---|---|---|---|---|---|")
    for name in options.only:
        for line in lines(name):
            print(line, flush=True)
        torch.cuda.empty_cache()
    if options.stalls:
        if shutil.which("ncu") is None:
            sys.exit("ncu (Nsight Compute) is not on PATH")
        for name in options.only:
            print(stalls(name), flush=True)


if __name__ == "__main__":
    main()
