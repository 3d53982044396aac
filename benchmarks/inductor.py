"""torch.compile on the CPU: kernels that Inductor writes for `triton`, beside its own C++.

The graphs are those of the acceptance tests. A row for each says how many times as fast our
kernels are as the C++ ones; the geometric mean has the bar. One more row is the price of a
launch through `triton` over one of our own.
"""

from __future__ import annotations

import importlib
import math
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType

import numpy as np

import tilewright
from benchmarks.harness import (
    Pairs,
    Row,
    empty_caches,
    measure_alone,
    measure_pairs,
    show_seconds,
)
from benchmarks.launches import SIZE, launch_microseconds, scaled_add_kernel
from benchmarks.peers import MISSING, load_torch

FAMILY = "inductor"
THREADS = (1,)
BAR = 1.0
PAIRS = 9
LAUNCH_BAR_MICROSECONDS = 1.0
ALIAS = Path(tilewright.__file__).parent / "_alias"


def rows(threads: int) -> Iterator[Row]:
    """The launch, each graph, and the geometric mean over the graphs."""
    use_alias()
    yield launch_row(threads)
    # Choices of Inductor's tuner outlive the code that they were measured with.
    with empty_caches("TORCHINDUCTOR_CACHE_DIR", "TILEWRIGHT_CACHE_DIR"):
        yield from graph_rows(threads)


def graph_rows(threads: int) -> Iterator[Row]:
    """Each graph, and the geometric mean."""
    torch = load_torch(threads)
    if torch is None:
        yield Row(FAMILY, "geometric mean", threads, None, bar=BAR, note=MISSING)
        return
    ratios: list[float] = []
    for name, fn, inputs, is_dynamic in graphs(torch):
        row = compare(torch, threads, name, fn, inputs, is_dynamic)
        yield row
        if row.value is not None:
            ratios.append(row.value)
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        note = f"over {len(ratios)} graphs"
        yield Row(FAMILY, "geometric mean", threads, mean, bar=BAR, note=note)


def use_alias() -> None:
    """Make `import triton` find Tilewright, here and in the processes that torch starts."""
    sys.path.insert(0, str(ALIAS))
    rest = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ALIAS), rest)))


def graphs(torch: ModuleType) -> Iterator[tuple[str, FunctionType, list[object], bool]]:
    """Name, function and inputs of each graph without gradients."""
    listed = importlib.import_module("tests.torch.graphs").GRAPHS
    for graph in listed:
        if not graph.is_trained:
            torch.manual_seed(0)
            yield graph.name, graph.fn, list(graph.inputs()), graph.is_dynamic


def compare(
    torch: ModuleType,
    threads: int,
    name: str,
    fn: FunctionType,
    inputs: list[object],
    is_dynamic: bool,
) -> Row:
    """One graph compiled twice, once for each backend."""
    calls = [compiled(torch, fn, inputs, is_dynamic, backend) for backend in ("triton", "cpp")]
    ours, peer = calls
    if ours is None or peer is None:
        missing = "C++ compiler" if ours is not None else "our"
        return Row(FAMILY, name, threads, None, note=f"no {missing} version")
    with torch.inference_mode():
        pairs: Pairs = measure_pairs(ours, peer, PAIRS)
    return Row(
        *(FAMILY, name, threads, pairs.ratio),
        ours=show_seconds(pairs.ours_seconds),
        peer=f"C++ {show_seconds(pairs.peer_seconds)}",
        note=pairs.note,
    )


def compiled(
    torch: ModuleType,
    fn: FunctionType,
    inputs: list[object],
    is_dynamic: bool,
    backend: str,
) -> Callable[[], object] | None:
    """A call of the compiled graph, or None where the backend cannot compile it."""
    config = importlib.import_module("torch._inductor.config")
    # A cache of Inductor's keeps generated code by graph, not by the backend that wrote it.
    with config.patch(cpu_backend=backend, compile_threads=1, force_disable_caches=True):
        # What is compiled is kept by code object, whatever the settings were.
        code = fn.__code__.replace(co_name=f"{fn.__name__}_{backend}")
        own = FunctionType(code, fn.__globals__, code.co_name)
        call = torch.compile(own, dynamic=is_dynamic or None)
        try:
            with torch.inference_mode():
                call(*inputs)
        except torch._dynamo.exc.TorchDynamoException as error:
            print(f"{fn.__name__} on {backend}: {error}", file=sys.stderr)
            return None
    return lambda: call(*inputs)


def launch_row(threads: int) -> Row:
    """What `import triton` adds to the host time of a launch."""
    triton = importlib.import_module("triton")
    through_alias = triton.jit(scaled_add_kernel.fn)
    x, y, out = np.ones((3, SIZE), dtype=np.float32)

    def run() -> None:
        for _ in range(1000):
            through_alias[(1,)](x, y, out, SIZE, 2.0, BLOCK=SIZE)

    ours = launch_microseconds([x, y, out])
    added = measure_alone(run) * 1e3 - ours
    note = f"over {ours:.2f} µs of tilewright.jit"
    return Row(
        FAMILY, "launch through triton, added", threads, added, "µs", LAUNCH_BAR_MICROSECONDS,
        note=note,
    )  # fmt: skip
