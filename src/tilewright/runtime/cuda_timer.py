"""Timing on a GPU by events: torch's in programs that use it with CUDA, else the driver's.

The clock of the host would tell how long a launch takes, which does not wait for the kernel.
"""

from __future__ import annotations

import importlib
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
    """The part of `torch.cuda` that timing uses, which our own driver serves too."""

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

    def ByteTensor(self, size: int) -> _Buffer:
        """Memory on the GPU."""
        ...


class TorchCuda(Cuda, Protocol):
    """The part of `torch.cuda` beyond that."""

    def is_available(self) -> bool:
        """Whether there is a GPU."""
        ...

    def is_initialized(self) -> bool:
        """Whether the program has used it."""
        ...

    def CUDAGraph(self) -> _Graph:
        """An empty graph of launches."""
        ...

    def graph(self, graph: _Graph) -> AbstractContextManager[object]:
        """A block whose launches become the graph."""
        ...


class _EventTimers(Protocol):
    def timer_in_use(self) -> Cuda | None: ...


# What times by our own driver; only a driver that was loaded can have launched anything.
_DRIVER, _EVENT_TIMERS = (
    "tilewright.targets.nvidia.driver",
    "tilewright.targets.nvidia.event_timer",
)


def torch_in_use() -> TorchCuda | None:
    """`torch.cuda` in a program that has used a GPU through torch, else None."""
    module = cast("TorchCuda | None", sys.modules.get("torch.cuda"))
    if module is None or not module.is_available():
        return None
    return module if module.is_initialized() else None


def cuda_in_use() -> Cuda | None:
    """What times work on the GPU that this program has used, else None."""
    torch = torch_in_use()
    if torch is not None or _DRIVER not in sys.modules:
        return torch
    timers = cast("_EventTimers", importlib.import_module(_EVENT_TIMERS))
    return timers.timer_in_use()


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
    cuda = torch_in_use()
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
