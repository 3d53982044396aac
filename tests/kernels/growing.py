"""Kernels of any size from source text, run in every way that a kernel can run."""

from __future__ import annotations

import gc
import time
from pathlib import Path

import numpy as np

from benchmarks.compile_growth import emit_for
from benchmarks.growth_programs import Shape, load
from tests.corpus.case import Case
from tests.corpus.threads import run_threads
from tilewright.jit import JITFunction

BLOCK = 64
ELEMENTS = 1024


def grown(shape: Shape, size: int, folder: Path) -> JITFunction:
    """The kernel of a shape."""
    return load(shape(size), folder, f"{shape.__name__}_{size}")


def inputs() -> dict[str, object]:
    """Fresh arguments."""
    x = np.arange(ELEMENTS, dtype=np.int32)
    return {"x": x, "y": np.zeros(ELEMENTS, np.int32), "n": 3}


def compiled(kernel: JITFunction) -> list[int]:
    """What the kernel computes on the CPU."""
    values = inputs()
    kernel[(1,)](**values)
    return values["y"][:BLOCK].tolist()


def interpreted(kernel: JITFunction) -> list[int]:
    """What the reference interpreter computes."""
    values = inputs()
    kernel.interpret[(1,)](**values)
    return values["y"][:BLOCK].tolist()


def simulated(kernel: JITFunction) -> list[int]:
    """What the code for sm_90a computes, in the simulator."""
    case = Case("grown", kernel, (1,), lambda _: inputs(), lambda _: None)
    return run_threads(case)["y"][:BLOCK].tolist()


def seconds(kernel: JITFunction, target: str) -> float:
    """The CPU time of everything before LLVM, without what looking for garbage takes.

    That grows with all that a worker's earlier tests left, and comes when it comes.
    """
    gc.collect()
    gc.disable()
    started = time.process_time()
    try:
        emit_for(kernel, target)
        return time.process_time() - started
    finally:
        gc.enable()
