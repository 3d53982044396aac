"""The process that `startup` measures: one kernel to its result, then a report as JSON.

Run as `python startup_child.py cold|warm KERNEL CACHE_DIRECTORY MONOTONIC_TIME_OF_START`.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np

COMPILER = ("xdsl", "tilewright.compiler.compile", "tilewright.frontend.lower")


def main(mode: str, kernel: str, cache: str, started: str) -> None:
    """Run `kernel` once; in mode `warm` after another kernel has been compiled."""
    os.environ["TILEWRIGHT_CACHE_DIR"] = cache
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    name, run = KERNELS[kernel]
    # Imported here and not above: what a cache hit must import is part of what is measured.
    module = importlib.import_module(f"examples.{name}")
    if mode == "warm":
        importlib.import_module("examples.fused_softmax").softmax(np.ones((4, 100), np.float32))
    before = time.monotonic()
    run(module)
    done = time.monotonic()
    report = {
        "seconds_since_start": done - float(started),
        "cpu_seconds": time.process_time(),
        "compile_seconds": done - before,
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        "compiler": [name for name in COMPILER if name in sys.modules],
    }
    print(json.dumps(report))


def run_add(module: ModuleType) -> None:
    """Vector add."""
    assert module.add(*np.ones((2, 1000), dtype=np.float32))[999] == 2


def run_matmul(module: ModuleType) -> None:
    """The matmul of the examples."""
    assert module.matmul(*np.ones((2, 128, 128), dtype=np.float32))[0, 127] == 128


def run_attention(module: ModuleType) -> None:
    """Attention forward, causal."""
    out, _ = module.forward(*np.ones((3, 1, 128, 64), dtype=np.float32), causal=True)
    assert abs(out[0, 127, 63] - 1) < 1e-5


KERNELS: dict[str, tuple[str, Callable[[ModuleType], None]]] = {
    "vector add": ("vector_add", run_add),
    "matmul": ("matmul", run_matmul),
    "attention": ("fused_attention", run_attention),
}


if __name__ == "__main__":
    main(*sys.argv[1:])
