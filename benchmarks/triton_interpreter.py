"""The same kernels under Triton's own interpreter mode, in a Python that has `triton`.

Triton does not compile for CPUs; `TRITON_INTERPRET=1` runs a kernel there with NumPy. The child
below serves `import tilewright` with Triton, so that both sides run the same source.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.harness import Row, show_seconds
from examples import fused_attention, fused_softmax, layer_norm, matmul, vector_add

FAMILY = "triton interpreter"
SAMPLES = 3
CHILD = """
import os, runpy, sys
os.environ["TRITON_INTERPRET"] = "1"
import numpy, torch, triton
from triton.runtime.interpreter import InterpretedFunction

class Function(InterpretedFunction):
    def __getitem__(self, grid):
        run = super().__getitem__(grid)
        def tensor(x):
            return torch.from_numpy(x) if isinstance(x, numpy.ndarray) else x
        return lambda *args, **kwargs: run(*map(tensor, args), **kwargs)

triton.jit = Function
sys.modules["tilewright"] = triton
sys.modules["tilewright.language"] = triton.language
sys.argv = ["benchmarks.triton_interpreter"]
runpy.run_module("benchmarks.triton_interpreter", run_name="__main__")
"""


def measure(python: str) -> list[dict[str, object]]:
    """Rows that compare compiled kernels with the interpreter of the Triton in `python`."""
    theirs = _times([python, "-c", CHILD])
    ours = _times([sys.executable, "-m", "benchmarks.triton_interpreter"])
    rows = []
    for work, seconds in ours.items():
        row = Row(
            *(FAMILY, work, os.cpu_count() or 1, theirs[work] / seconds),
            ours=show_seconds(seconds),
            peer=f"Triton's interpreter {show_seconds(theirs[work])}",
        )
        rows.append(row.to_json())
    return rows


def _times(command: list[str]) -> dict[str, float]:
    root = Path(__file__).resolve().parents[1]
    text = subprocess.check_output(command, text=True, cwd=root)
    return json.loads(text.splitlines()[-1])


def workloads() -> dict[str, Callable[[], object]]:
    """What both sides run: the examples, on data of moderate size."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 1024, 1024), dtype=np.float32)
    weight, bias = rng.standard_normal((2, 1024), dtype=np.float32)
    q, k, v = rng.standard_normal((3, 2, 512, 64), dtype=np.float32)
    a, b = rng.standard_normal((2, 512, 512), dtype=np.float32)
    return {
        "vector add f32 2^20": lambda: vector_add.add(x.ravel(), y.ravel(), 4096),
        "softmax f32 1024×1024": lambda: fused_softmax.softmax(x),
        "layer norm f32 1024×1024": lambda: layer_norm.forward(x, weight, bias),
        "matmul f32 512³": lambda: matmul.matmul(a, b),
        "attention f32 (2, 512, 64)": lambda: fused_attention.forward(q, k, v, causal=False),
    }


def main() -> None:
    """Print the median seconds of each workload as JSON."""
    medians = {}
    for work, run in workloads().items():
        run()
        times = []
        for _ in range(SAMPLES):
            started = time.perf_counter()
            run()
            times.append(time.perf_counter() - started)
        medians[work] = statistics.median(times)
    print(json.dumps(medians))


if __name__ == "__main__":
    main()
