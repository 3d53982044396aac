"""Kernels that Triton's clients compile first and launch later, on a fake GPU."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.api.alias import ALIAS
from tests.unit.targets.nvidia.fake_cuda import FakeCuda, FakeTensor
from tilewright.runtime.drivers import load_driver
from tilewright.targets.nvidia import driver as driver_module
from tilewright.targets.nvidia.driver import NvidiaDriver

import triton  # isort: skip - `alias` has put it on the path
import triton.language as tl  # isort: skip

pytestmark = pytest.mark.ptxas


@triton.jit
def doubled_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2, mask=mask)


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCuda]:
    """A fake GPU behind the driver of this process, on which somebody works on stream 5."""
    assert ALIAS.is_dir()
    fake = FakeCuda(num_params=3)
    monkeypatch.setattr(driver_module, "make_driver", lambda: NvidiaDriver(None, fake))
    monkeypatch.setattr(driver_module, "stream_getter", lambda arrays: lambda device: 5)
    load_driver.cache_clear()
    yield fake
    load_driver.cache_clear()


def test_a_compiled_kernel_runs_on_the_current_stream_unless_one_is_given(cuda: FakeCuda) -> None:
    x, out = FakeTensor(0x1000), FakeTensor(0x2000)
    kernel = doubled_kernel.warmup(x, out, 1000, BLOCK=256, grid=(1,))
    for stream in (None, None, 9, None):
        kernel[(4,)](x, out, 1000, 256, stream=stream)
    assert [launch.stream for launch in cuda.launches] == [5, 5, 9, 5]
    assert {launch.words for launch in cuda.launches} == {(0x1000, 0x2000, 1000)}


def test_the_warm_up_of_a_loaded_kernel_is_remembered(
    cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, out = FakeTensor(0x1000), FakeTensor(0x2000)
    kernel = doubled_kernel.warmup(x, out, 1000, BLOCK=256, num_warps=8, grid=(1,))
    assert not kernel.is_loaded
    kernel._init_handles()
    assert doubled_kernel.warmup(x, out, 1000, BLOCK=256, num_warps=8, grid=(1,)) is kernel
    monkeypatch.setattr(type(doubled_kernel), "specialize_call", None)
    assert doubled_kernel.warmup(x, out, 1000, BLOCK=256, num_warps=8, grid=(1,)) is kernel
    assert not cuda.launches
