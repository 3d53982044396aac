"""Timing on a GPU through torch's events: for programs that use torch with CUDA.

A program without torch is timed by the clock of the host, which a launch does not wait for.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol, cast

from tilewright.support.errors import UnsupportedError

# What is written between two runs where nothing tells the size of the GPU's last-level cache: more
# than any has. Else twice its size, so that lines of the kernel's arrays are surely replaced.
_FLUSH_BYTES = 256 << 20
_FLUSH_SHARE = 2
_NUM_ESTIMATES = 5
# More runs than this make a median no better, and two events each are kept until the end.
_MAX_SAMPLES = 1000
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

    def current_device(self) -> int:
        """The number of the GPU that work goes to."""
        ...

    def get_device_properties(self, device: int) -> object:
        """What is known of a GPU; `L2_cache_size` in bytes where torch is new enough."""
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


def _memory(cuda: Cuda, size_bytes: int) -> _Buffer:
    with warnings.catch_warnings():
        # torch recommends another constructor since 2.10, which older ones do not have here.
        warnings.simplefilter("ignore", UserWarning)
        return cuda.ByteTensor(size_bytes)


def sample_on_gpu(
    cuda: Cuda,
    fn: Callable[[], object],
    reset: Callable[[], object],
    warmup_ms: float,
    rep_ms: float,
    is_flushed: bool,
) -> list[float]:
    """The milliseconds of each run of `fn` between two events, after the warm-up.

    A round is `reset`, with `is_flushed` a flush of the GPU's cache, and `fn`; so many rounds run
    as fit into `rep_ms`, at most 1000.
    """
    flush = _memory(cuda, _flush_bytes(cuda)).zero_ if is_flushed else _do_nothing

    def run_round() -> None:
        reset()
        flush()
        fn()

    fn()
    cuda.synchronize()
    round_ms = max(
        _elapsed(cuda, lambda: _repeat(run_round, _NUM_ESTIMATES)) / _NUM_ESTIMATES, 1e-3
    )
    _repeat(run_round, min(_MAX_SAMPLES, int(warmup_ms / round_ms)))
    count = min(_MAX_SAMPLES, max(1, int(rep_ms / round_ms)))
    pairs = [(cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)) for _ in range(count)]
    for start, end in pairs:
        reset()
        flush()
        start.record()
        fn()
        end.record()
    cuda.synchronize()
    return [start.elapsed_time(end) for start, end in pairs]


def _flush_bytes(cuda: Cuda) -> int:
    properties = cuda.get_device_properties(cuda.current_device())
    size = getattr(properties, "L2_cache_size", 0)
    return _FLUSH_SHARE * size if type(size) is int and size > 0 else _FLUSH_BYTES


def _do_nothing() -> None:
    pass


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
