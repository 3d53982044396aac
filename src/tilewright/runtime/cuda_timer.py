"""Timing on a GPU through torch's events: for programs that use torch with CUDA.

A program without torch is timed by the clock of the host, which a launch does not wait for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol, cast

from tilewright.support.errors import UnsupportedError

# What is written between two runs: more than the last-level cache of any GPU.
_FLUSH_BYTES = 256 << 20
_NUM_ESTIMATES = 5
_NUM_REPLAYS = 10


class _Event(Protocol):
    def record(self) -> None: ...
    def elapsed_time(self, end: _Event) -> float: ...


class _Graph(Protocol):
    def replay(self) -> None: ...


class _Buffer(Protocol):
    def zero_(self) -> object: ...


class Cuda(Protocol):
    """The part of `torch.cuda` that timing uses."""

    def is_available(self) -> bool:
        """Whether there is a GPU."""
        ...

    def is_initialized(self) -> bool:
        """Whether the program has used it."""
        ...

    def synchronize(self) -> None:
        """Wait for all work."""
        ...

    def Event(self, enable_timing: bool) -> _Event:
        """A point in a stream."""
        ...

    def CUDAGraph(self) -> _Graph:
        """An empty graph of launches."""
        ...

    def graph(self, graph: _Graph) -> AbstractContextManager[object]:
        """A block whose launches become the graph."""
        ...

    def ByteTensor(self, size: int) -> _Buffer:
        """Memory on the GPU."""
        ...


def cuda_in_use() -> Cuda | None:
    """`torch.cuda` in a program that has used a GPU through torch, else None."""
    module = cast("Cuda | None", sys.modules.get("torch.cuda"))
    return module if module is not None and module.is_available() and _started(module) else None


def _started(cuda: Cuda) -> bool:
    return cuda.is_initialized()


def sample_on_gpu(
    cuda: Cuda,
    fn: Callable[[], object],
    reset: Callable[[], object],
    warmup_ms: float,
    rep_ms: float,
    is_flushed: bool,
) -> list[float]:
    """The milliseconds of each run of `fn` between two events, after the warm-up."""
    flush = cuda.ByteTensor(_FLUSH_BYTES if is_flushed else 1).zero_
    fn()
    cuda.synchronize()
    round_ms = max(_elapsed(cuda, lambda: _repeat(fn, _NUM_ESTIMATES)) / _NUM_ESTIMATES, 1e-3)
    _repeat(fn, int(warmup_ms / round_ms))
    count = max(1, int(rep_ms / round_ms))
    pairs = [(cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)) for _ in range(count)]
    for start, end in pairs:
        reset()
        flush()
        start.record()
        fn()
        end.record()
    cuda.synchronize()
    return [start.elapsed_time(end) for start, end in pairs]


def sample_graph(fn: Callable[[], object], rep_ms: float) -> list[float]:
    """The milliseconds of a run of `fn` inside a CUDA graph, for each of some replays.

    Raises: UnsupportedError where torch sees no GPU.
    """
    cuda = cuda_in_use()
    if cuda is None:
        raise UnsupportedError(
            "there is no GPU to capture a graph on",
            hint="time with do_bench, which works everywhere",
        )
    fn()
    cuda.synchronize()
    round_ms = max(_elapsed(cuda, lambda: _repeat(fn, _NUM_ESTIMATES)) / _NUM_ESTIMATES, 1e-3)
    count = max(1, int(rep_ms / round_ms))
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        _repeat(fn, count)
    cuda.synchronize()
    return [_elapsed(cuda, graph.replay) / count for _ in range(_NUM_REPLAYS)]


def _elapsed(cuda: Cuda, run: Callable[[], object]) -> float:
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    start.record()
    run()
    end.record()
    cuda.synchronize()
    return start.elapsed_time(end)


def _repeat(fn: Callable[[], object], count: int) -> None:
    for _ in range(count):
        fn()
