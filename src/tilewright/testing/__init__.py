"""What tests and benchmarks of kernels use: comparison, timing, reports."""

from __future__ import annotations

from tilewright.runtime.timer import do_bench, do_bench_cudagraph
from tilewright.testing.compare import assert_close
from tilewright.testing.report import Benchmark, Mark, perf_report

__all__ = ["Benchmark", "Mark", "assert_close", "do_bench", "do_bench_cudagraph", "perf_report"]
