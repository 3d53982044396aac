"""Compile time against the size of a program, for the CPU and for sm_90a without a GPU.

Beside programs that grow stand some that people have (`long_kernels`): their times as they are.

`python -m benchmarks.compile_growth [shape …]` prints every size; the family measures the
largest size of each shape and the exponent of its growth (1 is linear, 2 quadratic).
"""

from __future__ import annotations

import math
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.growth_programs import SHAPES, Shape, load
from benchmarks.harness import Row
from benchmarks.long_kernels import LONG_KERNELS
from tilewright.compiler.compile import to_schedule, to_tiles
from tilewright.compiler.request import CompileRequest
from tilewright.jit import JITFunction
from tilewright.runtime.drivers import load_driver
from tilewright.support.errors import TilewrightError
from tilewright.support.options import option_names
from tilewright.targets.nvidia.host import named_machine
from tilewright.targets.nvidia.ptx import to_ptx
from tilewright.targets.target import load_target

FAMILY = "growth"
THREADS = (1,)
TARGETS = ("cpu", "sm_90a")
ELEMENTS = 1 << 15
LIMIT_SECONDS = 15.0
"""A shape is not doubled again once a size took this long."""


@dataclass(frozen=True)
class Sample:
    """The CPU seconds of one compile: our stages, and LLVM's."""

    size: int
    ours: float
    llvm: float

    @property
    def seconds(self) -> float:
        """Both together."""
        return self.ours + self.llvm


def rows(threads: int) -> Iterator[Row]:
    """Every row of this family."""
    for target in TARGETS:
        for name in SHAPES:
            yield growth_row(name, target, measure(name, target))
        for name in LONG_KERNELS:
            yield long_row(name, target, measure_long(name, target))


def growth_row(name: str, target: str, samples: Sequence[Sample]) -> Row:
    """The largest size of a shape, with how it grew."""
    last = samples[-1]
    work = f"compile for {target}, {last.size} {name}"
    note = f"LLVM {last.llvm:.3g} s; grows with size to the power {exponent(samples):.2f}"
    return Row(FAMILY, work, 1, last.seconds, "s", note=note)


def long_row(name: str, target: str, sample: Sample) -> Row:
    """The compile time of a kernel as people have it."""
    note = f"LLVM {sample.llvm:.3g} s of {sample.size} lines"
    return Row(FAMILY, f"compile for {target}, {name}", 1, sample.seconds, "s", note=note)


def measure_long(name: str, target: str) -> Sample:
    """A compile of a long kernel, after one that warms the process; its size is lines of text."""
    long = LONG_KERNELS[name]
    emit(long.kernel, long.arguments(), target)
    started = time.process_time()
    request, text = emit(long.kernel, long.arguments(), target)
    middle = time.process_time()
    assemble(request, text)
    return Sample(text.count("\n"), middle - started, time.process_time() - middle)


def exponent(samples: Sequence[Sample]) -> float:
    """The slope of log time over log size between the last two samples."""
    if len(samples) < 2:
        return math.nan
    (before, last) = samples[-2:]
    return math.log(last.seconds / before.seconds) / math.log(last.size / before.size)


def measure(name: str, target: str, is_shown: bool = False) -> list[Sample]:
    """The samples of one shape, smallest first, after a compile that warms the process."""
    shape, sizes = SHAPES[name]
    compile_size(shape, 2 if sizes[0] < 1024 else sizes[0], target)
    samples: list[Sample] = []
    for size in sizes:
        samples.append(compile_size(shape, size, target))
        if is_shown:
            one = samples[-1]
            print(f"  {size:6d} {one.ours:8.3f} s + LLVM {one.llvm:8.3f} s", flush=True)
        if samples[-1].seconds > LIMIT_SECONDS:
            break
    return samples


def compile_size(shape: Shape, size: int, target: str) -> Sample:
    """Compile one kernel, past every cache."""
    with tempfile.TemporaryDirectory() as folder:
        kernel = load(shape(size), Path(folder), f"grown_{shape.__name__}_{size}")
        started = time.process_time()
        request, text = emit_for(kernel, target)
        middle = time.process_time()
        assemble(request, text)
        return Sample(size, middle - started, time.process_time() - middle)


def emit_for(kernel: JITFunction, target: str) -> tuple[CompileRequest, str]:
    """The request of a grown kernel for a target, and its LLVM text."""
    num_more = len(kernel.source.parameters) - 3
    values = (np.zeros(ELEMENTS, np.int32), np.zeros(ELEMENTS, np.int32), 3)
    names = (parameter.name for parameter in kernel.source.parameters)
    return emit(kernel, dict(zip(names, (*values, *range(2, 2 + num_more)), strict=True)), target)


def emit(
    kernel: JITFunction, arguments: Mapping[str, object], target: str
) -> tuple[CompileRequest, str]:
    """The request of a kernel called with `arguments` for a target, and its LLVM text."""
    call = kernel.specialize_call((), arguments)
    is_cpu = target == "cpu"
    request = CompileRequest(
        kernel.source.functions,
        kernel.source.kernel,
        call.specialization,
        {name: getattr(call.options, name) for name in option_names()},
        "cpu" if is_cpu else "nvidia",
        load_driver("cpu").machine() if is_cpu else named_machine(target),
    )
    manifest = load_target(request.target)
    scheduled = to_schedule(request, manifest, to_tiles(request, manifest, None), None)
    return request, manifest.emit(scheduled, request.machine, request.compile_options)


def assemble(request: CompileRequest, text: str) -> None:
    """What LLVM does with the text: an object, or PTX."""
    if request.target == "nvidia":
        to_ptx(text, request.machine)
    else:
        load_target(request.target).assemble(text, request.machine, request.compile_options)


def main(names: Sequence[str]) -> None:
    """Print the growth of the shapes whose names begin with one of `names`; all by default."""
    for name in SHAPES:
        if names and not name.startswith(tuple(names)):
            continue
        for target in TARGETS:
            print(f"{name}, {target}", flush=True)
            try:
                samples = measure(name, target, is_shown=True)
                print(f"  to the power {exponent(samples):.2f}", flush=True)
            except (TilewrightError, RecursionError) as error:
                print(f"  {type(error).__name__}: {str(error).splitlines()[0]}", flush=True)
    for name in LONG_KERNELS:
        if names and not name.startswith(tuple(names)):
            continue
        for target in TARGETS:
            one = measure_long(name, target)
            print(f"{name}, {target}: {one.ours:.3f} s + LLVM {one.llvm:.3f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
