"""Timing with events of a GPU, against a stand-in for `torch.cuda` that keeps a clock."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from tilewright.runtime.cuda_timer import cuda_in_use, sample_graph, sample_on_gpu
from tilewright.support.errors import UnsupportedError
from tilewright.testing import do_bench, do_bench_cudagraph


class Event:
    def __init__(self, cuda):
        self.cuda = cuda

    def record(self):
        self.at = self.cuda.now

    def elapsed_time(self, end):
        return end.at - self.at


class Buffer:
    def __init__(self, cuda, size):
        self.cuda, self.size = cuda, size

    def zero_(self):
        self.cuda.flushed.append(self.size)
        self.cuda.now += self.cuda.flush_ms


class Graph:
    def __init__(self, cuda):
        self.cuda, self.milliseconds = cuda, 0.0

    def replay(self):
        self.cuda.now += self.milliseconds


class Cuda:
    """A GPU whose clock moves when work is launched."""

    def __init__(self):
        self.now, self.flushed, self.calls, self.captured = 0.0, [], 0, None
        self.run_ms, self.flush_ms, self.properties = 2.0, 0.0, SimpleNamespace()

    def launch(self):
        self.calls += 1
        if self.captured is None:
            self.now += self.run_ms
        else:
            self.captured.milliseconds += 2.0

    def current_device(self):
        return 0

    def get_device_properties(self, device):
        return self.properties

    def is_available(self):
        return True

    def is_initialized(self):
        return True

    def synchronize(self):
        pass

    def Event(self, enable_timing):
        return Event(self)

    def ByteTensor(self, size):
        return Buffer(self, size)

    def CUDAGraph(self):
        return Graph(self)

    @contextmanager
    def graph(self, graph):
        self.captured = graph
        yield
        self.captured = None


@pytest.fixture
def cuda(monkeypatch):
    gpu = Cuda()
    monkeypatch.setitem(sys.modules, "torch.cuda", gpu)
    return gpu


def test_runs_are_timed_between_events_and_start_with_a_cold_cache(cuda) -> None:
    times = sample_on_gpu(cuda, cuda.launch, lambda: None, 4.0, 10.0, is_flushed=True)
    assert times == [2.0] * 5
    assert set(cuda.flushed) == {256 << 20}


def test_the_cache_of_the_gpu_is_flushed_by_its_size(cuda) -> None:
    cuda.properties = SimpleNamespace(L2_cache_size=50 << 20)
    sample_on_gpu(cuda, cuda.launch, lambda: None, 4.0, 10.0, is_flushed=True)
    assert set(cuda.flushed) == {100 << 20}


def test_a_measurement_takes_the_time_that_it_was_given_flushes_included(cuda) -> None:
    cuda.run_ms, cuda.flush_ms = 0.005, 0.195
    assert len(sample_on_gpu(cuda, cuda.launch, lambda: None, 25.0, 100.0, True)) == 500
    assert cuda.now < 25 + 100 + 2


def test_what_costs_next_to_nothing_is_not_run_for_ever(cuda) -> None:
    cuda.run_ms = 0.0001
    assert len(sample_on_gpu(cuda, cuda.launch, lambda: None, 25.0, 100.0, False)) == 1000
    assert cuda.calls < 2100


def test_the_cache_of_the_cpu_is_left_alone_on_a_gpu(cuda, monkeypatch) -> None:
    monkeypatch.delattr("tilewright.runtime.timer._cache_flusher")
    assert do_bench(cuda.launch, warmup=2, rep=8) == 2.0


def test_do_bench_uses_the_gpu_that_is_in_use(cuda) -> None:
    assert cuda_in_use() is cuda
    assert do_bench(cuda.launch, warmup=2, rep=8) == 2.0
    assert do_bench(cuda.launch, warmup=2, rep=8, quantiles=[0.5, 0.9]) == [2.0, 2.0]


def test_a_graph_holds_as_many_runs_as_fit_and_is_replayed(cuda) -> None:
    assert sample_graph(cuda.launch, 10.0) == [2.0] * 10
    assert do_bench_cudagraph(cuda.launch, rep=10, return_mode="median") == 2.0


def test_without_a_gpu_a_graph_is_refused_and_do_bench_cudagraph_uses_the_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("torch.cuda", "tilewright.targets.nvidia.driver"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert cuda_in_use() is None
    with pytest.raises(UnsupportedError, match="no GPU"):
        sample_graph(lambda: None, 1.0)
    assert do_bench_cudagraph(lambda: sum(range(2000)), rep=1) > 0
