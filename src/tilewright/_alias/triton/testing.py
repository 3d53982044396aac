"""`triton.testing`: timing, reports and comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tilewright.runtime.timer import HasGradient
from tilewright.testing import Benchmark, Mark, assert_close, do_bench, perf_report


def do_bench_cudagraph(
    fn: Callable[[], object],
    rep: float = 20,
    grad_to_none: Iterable[HasGradient] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> float | list[float]:
    """`do_bench` without warm-up: a CPU has no graphs to launch."""
    return do_bench(fn, 0, rep, grad_to_none, quantiles, return_mode)


__all__ = ["Benchmark", "Mark", "assert_close", "do_bench", "do_bench_cudagraph", "perf_report"]
