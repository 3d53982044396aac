"""`do_bench`: how long a function takes, by a few rules that make the figure repeatable.

Each run is timed on its own and starts with cold caches: a buffer as large as the last-level
cache is written in between. How many runs fit into the time that the caller grants is estimated
first, with that write included, so a call takes about `warmup + rep` milliseconds whatever the
function costs. In a program that uses a GPU, events of the GPU take the place of the host's clock,
and its cache that of the CPU's.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from tilewright.runtime.cuda_timer import cuda_in_use, sample_graph, sample_on_gpu, torch_in_use
from tilewright.support.errors import InvalidOption

_SYSFS_CACHE = Path("/sys/devices/system/cpu/cpu0/cache")
_DEFAULT_CACHE_BYTES = 32 << 20
# Servers share a last-level cache of hundreds of megabytes between many cores; to write all of
# it takes longer than most kernels, and this much already fills what is private to a core.
_MAX_FLUSH_BYTES = 16 << 20
_NUM_ESTIMATES = 5
# What costs nothing to run, without a flush, is not run millions of times.
_MAX_SAMPLES = 100_000
_SUMMARIES: dict[str, Callable[[Sequence[float]], float]] = {
    "min": min,
    "max": max,
    "mean": lambda times: sum(times) / len(times),
    "median": lambda times: quantile(times, 0.5),
}


class HasGradient(Protocol):
    """A tensor whose gradient is dropped between two runs."""

    grad: object


def do_bench(
    fn: Callable[[], object],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Iterable[HasGradient] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
    *,
    flush_cache: bool = True,
    prepare: Callable[[], object] | None = None,
) -> float | list[float]:
    """The time of one call of `fn`.

    `grad_to_none` names tensors whose `.grad` is dropped before each run. With `quantiles`
    the result is a list of these quantiles (one number for one quantile); else `return_mode`
    chooses `min`, `max`, `mean`, `median` or `all`. `prepare` runs before each call, untimed.

    *Units*: `warmup` and `rep` are the time to spend, and the result is, in milliseconds.

    Raises: `InvalidOption` for another `return_mode` or a quantile outside of 0 to 1.
    """
    _check_summary("do_bench", quantiles, return_mode)
    gradients = tuple(grad_to_none or ())

    def reset() -> None:
        if prepare is not None:
            prepare()
        _drop_gradients(gradients)

    cuda = cuda_in_use()
    if cuda is not None:
        times = sample_on_gpu(cuda, fn, reset, warmup, rep, flush_cache)
        return _summary(times, quantiles, return_mode)
    flush = _cache_flusher() if flush_cache else _do_nothing
    return _summary(_sample(fn, reset, flush, warmup, rep), quantiles, return_mode)


def do_bench_cudagraph(
    fn: Callable[[], object],
    rep: float = 20,
    grad_to_none: Iterable[HasGradient] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> float | list[float]:
    """The time of one call of `fn` without the host's share: its launches run as a CUDA graph.

    Where no GPU is in use through torch there is no graph, and the result is that of `do_bench`.
    *Units*: milliseconds. Raises: as `do_bench`.
    """
    _check_summary("do_bench_cudagraph", quantiles, return_mode)
    if torch_in_use() is None:
        return do_bench(fn, 0, rep, grad_to_none, quantiles, return_mode)
    _drop_gradients(tuple(grad_to_none or ()))
    return _summary(sample_graph(fn, rep), quantiles, return_mode)


def _drop_gradients(tensors: Iterable[HasGradient]) -> None:
    for tensor in tensors:
        tensor.grad = None


def _check_summary(name: str, quantiles: Sequence[float] | None, return_mode: str) -> None:
    if return_mode != "all" and return_mode not in _SUMMARIES:
        raise InvalidOption(
            f"{name}(): return_mode is {return_mode!r}",
            hint=f"pass one of {', '.join(repr(m) for m in (*_SUMMARIES, 'all'))}",
        )
    if any(not 0 <= q <= 1 for q in quantiles or ()):
        raise InvalidOption(f"{name}(): quantiles are {list(quantiles or ())}, not all in 0 to 1")


def _summary(
    times: list[float], quantiles: Sequence[float] | None, return_mode: str
) -> float | list[float]:
    """The quantiles asked for, else what `return_mode` names."""
    if quantiles is not None:
        found = [quantile(times, q) for q in quantiles]
        return found[0] if len(found) == 1 else found
    return times if return_mode == "all" else _SUMMARIES[return_mode](times)


def _sample(
    fn: Callable[[], object],
    reset: Callable[[], object],
    flush: Callable[[], object],
    warmup_ms: float,
    rep_ms: float,
) -> list[float]:
    """The milliseconds of each run of `fn`, in order, after the warm-up."""

    def run_round() -> None:
        reset()
        flush()
        fn()

    fn()  # the first call may compile
    round_ms = _estimate(run_round, warmup_ms + rep_ms)
    for _ in range(min(_MAX_SAMPLES, int(warmup_ms / round_ms))):
        reset()
        fn()
    times: list[float] = []
    for _ in range(min(_MAX_SAMPLES, max(1, int(rep_ms / round_ms)))):
        reset()
        flush()
        run_started = time.perf_counter()
        fn()
        times.append(1e3 * (time.perf_counter() - run_started))
    return times


def _estimate(run_round: Callable[[], object], limit_ms: float) -> float:
    """The milliseconds of one round: a run with what goes before it."""
    started, spent_ms, count = time.perf_counter(), 0.0, 0
    while count < _NUM_ESTIMATES and spent_ms <= limit_ms:
        run_round()
        count += 1
        spent_ms = 1e3 * (time.perf_counter() - started)
    return max(spent_ms / count, 1e-6)


def quantile(values: Sequence[float], q: float) -> float:
    """The `q`-quantile of `values`, linear between the two nearest.

    *Example*

    >>> quantile([1.0, 2.0, 4.0], 0.75)
    3.0
    """
    ordered = sorted(values)
    position = q * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def _do_nothing() -> None:
    pass


def _cache_flusher() -> Callable[[], None]:
    """A function that replaces what the caches hold by a buffer of its own."""
    size_bytes = min(last_level_cache_bytes(), _MAX_FLUSH_BYTES)
    # Half is read and half is written: together they are as large as asked for.
    source, buffer = bytes(size_bytes // 2), bytearray(size_bytes // 2)

    def flush() -> None:
        buffer[:] = source

    return flush


@functools.cache
def last_level_cache_bytes() -> int:
    """The size of the largest cache that one core sees, 32 MiB where nothing tells."""
    try:
        sizes = [path.read_text("ascii").strip() for path in _SYSFS_CACHE.glob("index*/size")]
    except (OSError, UnicodeDecodeError):
        sizes = []
    scale = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    known = [int(s[:-1]) * scale[s[-1]] for s in sizes if s[:-1].isdigit() and s[-1] in scale]
    return max(known, default=_DEFAULT_CACHE_BYTES)
