"""Programs that use a GPU without torch are timed by the driver's events, on a fake GPU."""

from __future__ import annotations

import gc
import sys
from dataclasses import dataclass, field

import pytest

from tests.unit.targets.nvidia.fake_cuda import FakeCuda
from tilewright.runtime.cuda_timer import cuda_in_use
from tilewright.targets.nvidia import event_timer
from tilewright.targets.nvidia.driver import NvidiaDriver
from tilewright.testing import do_bench, do_bench_cudagraph


@dataclass
class ClockedCuda(FakeCuda):
    """A GPU whose launches are queued, and take time when their turn comes."""

    now: float = 0.0
    run_ms: float = 2.0
    events: dict[int, float] = field(default_factory=dict)
    memory: dict[int, int] = field(default_factory=dict)
    flushed: list[int] = field(default_factory=list)
    streams: set[int] = field(default_factory=set)

    def run(self) -> None:
        self.now += self.run_ms

    def synchronize(self) -> None:
        self.calls.append(("synchronize",))

    def create_event(self) -> int:
        self.events[len(self.calls)] = -1.0
        self.calls.append(("create_event",))
        return len(self.calls) - 1

    def destroy_event(self, event: int) -> None:
        del self.events[event]

    def record_event(self, event: int, stream: int) -> None:
        self.events[event] = self.now
        self.streams.add(stream)

    def elapsed_milliseconds(self, start: int, end: int) -> float:
        assert self.calls[-1] == ("synchronize",)
        return self.events[end] - self.events[start]

    def allocate(self, size_bytes: int) -> int:
        self.memory[4096] = size_bytes
        return 4096

    def free(self, address: int) -> None:
        del self.memory[address]

    def fill(self, address: int, size_bytes: int, stream: int) -> None:
        assert self.memory[address] == size_bytes
        self.flushed.append(size_bytes)
        self.now += 0.5


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> ClockedCuda:
    fake = ClockedCuda(context=100)
    fake.attributes[38] = 50 << 20
    driver = NvidiaDriver(None, fake)
    monkeypatch.setattr(event_timer, "load_driver", lambda target: driver)
    for name in ("torch.cuda", "torch", "cupy"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return fake


def test_a_kernel_is_timed_by_events_and_starts_with_a_cold_l2(cuda: ClockedCuda) -> None:
    assert do_bench(cuda.run, warmup=5, rep=25, return_mode="all") == [2.0] * 10
    assert set(cuda.flushed) == {100 << 20} and cuda.streams == {0}


def test_events_and_memory_are_given_back(cuda: ClockedCuda) -> None:
    do_bench(cuda.run, warmup=2, rep=8)
    gc.collect()
    assert cuda.events == {} and cuda.memory == {}


def test_without_a_graph_the_events_still_tell(cuda: ClockedCuda) -> None:
    assert do_bench_cudagraph(cuda.run, rep=10) == 2.0


def test_a_program_that_used_no_gpu_has_the_clock_of_the_host(
    cuda: ClockedCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cuda_in_use() is not None
    cuda.context = 0
    assert cuda_in_use() is None
    monkeypatch.setattr(event_timer, "load_driver", lambda target: NvidiaDriver(None))
    assert cuda_in_use() is None
    monkeypatch.delitem(sys.modules, "tilewright.targets.nvidia.driver")
    assert cuda_in_use() is None
