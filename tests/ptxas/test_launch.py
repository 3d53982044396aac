"""From a kernel through ptxas to a launch on a fake GPU: every stage, and both paths."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.targets.nvidia.fake_cuda import FakeCuda, FakeTensor
from tilewright.frontend.devices import DeviceMismatch
from tilewright.runtime.drivers import load_driver
from tilewright.runtime.hooks import LAUNCH_HOOKS, LaunchInfo
from tilewright.support.errors import TilewrightError, UnsupportedError
from tilewright.targets.nvidia import driver as driver_module
from tilewright.targets.nvidia.driver import NvidiaDriver
from tilewright.targets.nvidia.errors import ResourcesExceeded

pytestmark = pytest.mark.ptxas

BLOCK = 256


def make_kernel():
    @tilewright.jit
    def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr = BLOCK):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask)
        tl.store(out_ptr + offsets, x + tl.load(y_ptr + offsets, mask=mask), mask=mask)

    return add


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCuda]:
    """A fake GPU behind the driver of this process."""
    fake = FakeCuda(num_params=4)
    monkeypatch.setattr(driver_module, "make_driver", lambda: NvidiaDriver(None, fake))
    load_driver.cache_clear()
    yield fake
    load_driver.cache_clear()


def tensors(device: int = 0) -> list[FakeTensor]:
    return [FakeTensor(0x1000 * number, device=device) for number in (1, 2, 3)]


def test_cuda_tensors_run_on_the_gpu_with_their_arguments(cuda: FakeCuda) -> None:
    kernel = make_kernel()[(4,)](*tensors(), 1000)
    (launch,) = cuda.launches
    assert (launch.grid, launch.block) == ((4, 1, 1), (128, 1, 1))
    assert launch.words == (0x1000, 0x2000, 0x3000, 1000)
    assert kernel.metadata["target"] == "nvidia"


def test_the_second_launch_is_native_and_the_same(cuda: FakeCuda) -> None:
    add = make_kernel()
    for _ in range(2):
        add[(4,)](*tensors(), 1000)
    slow, fast = cuda.launches
    assert slow == fast
    (shape,) = add._shapes.values()
    assert len(shape.launchers) == 1


def test_options_of_a_launch_are_those_of_the_kernel_on_the_native_path(cuda: FakeCuda) -> None:
    add = make_kernel()
    for num_warps in (8, 8, 2, 2, 8):
        add[(4,)](*tensors(), 1000, num_warps=num_warps)
    assert [launch.block[0] for launch in cuda.launches] == [256, 256, 64, 64, 256]
    assert len(add._kernels) == 2


def test_a_stream_of_the_launch_changes_no_kernel(cuda: FakeCuda) -> None:
    add = make_kernel()
    for stream in (5, 6, 7):
        add[(4,)](*tensors(), 1000, stream=stream)
    assert [launch.stream for launch in cuda.launches] == [5, 6, 7]
    assert len(add._kernels) == 1


def test_cpu_and_gpu_live_in_one_process(cuda: FakeCuda) -> None:
    add = make_kernel()
    x = np.arange(1000, dtype=np.float32)
    out = np.zeros_like(x)
    for _ in range(2):
        add[(4,)](x, x, out, 1000)
        add[(4,)](*tensors(), 1000)
    np.testing.assert_array_equal(out, 2 * x)
    assert len(cuda.launches) == 2


def test_each_gpu_has_its_kernel(cuda: FakeCuda) -> None:
    add = make_kernel()
    for device in (0, 1, 0, 1):
        add[(4,)](*tensors(device), 1000)
    assert [launch.function for launch in cuda.launches] == [170, 171, 170, 171]


def test_host_and_cuda_arrays_together_are_refused(cuda: FakeCuda) -> None:
    x, y, _ = tensors()
    with pytest.raises(DeviceMismatch, match="`out_ptr` is in host memory, but `x_ptr`"):
        make_kernel()[(4,)](x, y, np.zeros(1000, np.float32), 1000)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"checked": True}, UnsupportedError, "checked on the CPU only"),
        ({"num_ctas": 2}, UnsupportedError, "a program runs on one cta"),
        ({"num_warps": 64}, ResourcesExceeded, "num_warps=32 or fewer"),
        ({"cluster_dims": (8, 4, 1)}, ResourcesExceeded, "at most 16"),
    ],
)
def test_options_that_no_gpu_has_are_refused_before_compiling(
    cuda: FakeCuda, options: dict[str, object], error: type[TilewrightError], text: str
) -> None:
    with pytest.raises(error, match=text):
        make_kernel()[(4,)](*tensors(), 1000, **options)
    assert cuda.launches == []


def test_every_stage_can_be_read(cuda: FakeCuda) -> None:
    kernel = make_kernel()[(4,)](*tensors(), 1000)
    stages = ("source", "ttir", "t1", "t2", "llir", "ptx", "cubin", "sass")
    assert tuple(kernel.asm) == stages
    assert "tt.load" in kernel.asm["ttir"] and "tt.load" in kernel.asm["t1"]
    assert ".visible .entry add(" in kernel.asm["ptx"]
    assert "ptx_kernel" in kernel.asm["llir"]
    assert kernel.asm["cubin"][:4] == b"\x7fELF"
    assert kernel.n_regs > 0 and kernel.n_spills == 0


def test_launch_hooks_see_every_launch(cuda: FakeCuda) -> None:
    add, seen = make_kernel(), []

    def enter(info: LaunchInfo) -> None:
        seen.append((info.name, info.grid, info.target, info.stream, len(cuda.launches)))

    add[(4,)](*tensors(), 1000)
    LAUNCH_HOOKS.add(enter=enter)
    try:
        add[(5,)](*tensors(), 1000, stream=9)
        add[(6,)](*tensors(), 1000, stream=9)
    finally:
        LAUNCH_HOOKS.remove(enter=enter)
    add[(7,)](*tensors(), 1000, stream=9)
    assert seen == [("add", (5, 1, 1), "nvidia", 9, 1), ("add", (6, 1, 1), "nvidia", 9, 2)]
    assert [launch.grid[0] for launch in cuda.launches] == [4, 5, 6, 7]
