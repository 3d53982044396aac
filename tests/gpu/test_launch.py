"""Launches on a real GPU: results, streams, graphs, launch attributes, threads, faults."""

from __future__ import annotations

import importlib
import subprocess
import sys
import threading
from importlib.util import find_spec
from types import ModuleType

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.frontend.devices import DeviceMismatch
from tilewright.runtime.hooks import LAUNCH_HOOKS
from tilewright.runtime.tensor_descriptor import TensorDescriptor
from tilewright.targets.nvidia.errors import LaunchRefused

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]

REPLAYS = 100
# About a quarter of a second at the clocks of a Hopper: long beside everything else here.
SLEEP_CYCLES = 400_000_000


@tilewright.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + tl.load(y_ptr + offsets, mask=mask), mask=mask)


def add(x, y, out, block: int = 256, **options: object):
    grid = (tilewright.cdiv(x.shape[0], block),)
    return add_kernel[grid](x, y, out, x.shape[0], BLOCK=block, **options)


@pytest.mark.parametrize("n", [1, 255, 256, 1000, 98432])
@pytest.mark.parametrize("name", ["float32", "float16", "int32", "int64", "int8"])
def test_results_are_exact(torch: ModuleType, n: int, name: str) -> None:
    dtype = getattr(torch, name)
    x, y = (torch.randint(-50, 50, (n,), device="cuda").to(dtype) for _ in range(2))
    for num_warps in (1, 4, 8):
        out = torch.zeros_like(x)
        add(x, y, out, num_warps=num_warps)
        assert torch.equal(out, x + y)


def test_the_native_path_gives_the_same(torch: ModuleType) -> None:
    x = torch.randn(1000, device="cuda")
    add(x, x, torch.empty_like(x))
    for step in range(50):
        y, out = torch.randn(1000, device="cuda"), torch.zeros(1000, device="cuda")
        add(x, y, out)
        assert torch.equal(out, x + y), step


def test_cpu_and_gpu_run_in_one_process(torch: ModuleType) -> None:
    host = np.arange(1000, dtype=np.float32)
    device = torch.from_numpy(host).cuda()
    out, device_out = np.zeros_like(host), torch.zeros_like(device)
    add(host, host, out)
    add(device, device, device_out)
    np.testing.assert_array_equal(device_out.cpu().numpy(), out)


def test_a_host_tensor_among_cuda_tensors_is_refused(torch: ModuleType) -> None:
    x = torch.zeros(1000, device="cuda")
    with pytest.raises(DeviceMismatch, match="`out_ptr` is in host memory"):
        add(x, x, torch.zeros(1000))


def test_pinned_host_memory_is_read(torch: ModuleType) -> None:
    x, out = torch.ones(1000).pin_memory(), torch.zeros(1000, device="cuda")
    for _ in range(2):
        add(x, out, out)
    assert out.cpu().eq(2).all()


def test_the_current_stream_of_torch_is_used(torch: ModuleType) -> None:
    x, out = torch.ones(1000, device="cuda"), torch.zeros(1000, device="cuda")
    add(x, out, out)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(SLEEP_CYCLES)
        add(x, out, out)
    # The copy runs on the default stream, which does not wait for the other.
    assert out.cpu().eq(1).all()
    stream.synchronize()
    assert out.cpu().eq(2).all()


def test_the_stream_of_the_launch_is_used(torch: ModuleType) -> None:
    x, out = torch.ones(1000, device="cuda"), torch.zeros(1000, device="cuda")
    stream = torch.cuda.Stream()
    # The first launch compiles, for longer than the stream sleeps.
    add(x, out, out, stream=stream.cuda_stream)
    stream.synchronize()
    out.zero_()
    for expected in (1, 2, 3):
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(SLEEP_CYCLES)
        add(x, out, out, stream=stream.cuda_stream)
        assert out.cpu().eq(expected - 1).all()
        stream.synchronize()
        assert out.cpu().eq(expected).all()


def test_a_graph_replays_the_launch(torch: ModuleType) -> None:
    x, out = torch.ones(1000, device="cuda"), torch.zeros(1000, device="cuda")
    add(x, out, out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        add(x, out, out)
        add(x, out, out)
    out.zero_()
    for _ in range(REPLAYS):
        graph.replay()
    assert out.cpu().eq(2 * REPLAYS).all()


def test_launch_attributes_are_taken(torch: ModuleType) -> None:
    x = torch.randn(1024, device="cuda")
    for options in (
        {"launch_pdl": True},
        {"launch_cooperative_grid": True},
        {"cluster_dims": (2, 1, 1)},
        {"maxnreg": 32},
    ):
        out = torch.zeros_like(x)
        for _ in range(2):
            add(x, x, out, **options)
        assert torch.equal(out, x + x), options


def test_a_cooperative_grid_that_does_not_fit_is_refused(torch: ModuleType) -> None:
    x = torch.zeros(1 << 22, device="cuda")
    for _ in range(2):
        with pytest.raises(LaunchRefused, match="do not fit on the GPU together"):
            add(x, x, x, block=16, launch_cooperative_grid=True)
    add(x, x, x)
    torch.cuda.synchronize()


def test_a_grid_that_is_no_multiple_of_the_cluster_is_refused(torch: ModuleType) -> None:
    x = torch.zeros(256, device="cuda")
    with pytest.raises(LaunchRefused, match=r"in clusters of \(2, 1, 1\)"):
        add(x, x, x, cluster_dims=(2, 1, 1))


def test_a_thread_without_a_context_launches(torch: ModuleType) -> None:
    x, out = torch.ones(1000, device="cuda"), torch.zeros(1000, device="cuda")
    add(x, out, out)
    failures: list[BaseException] = []

    def run() -> None:
        try:
            for _ in range(20):
                add(x, out, out, stream=0)
        except BaseException as error:
            failures.append(error)

    for _ in range(3):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert failures == []
    assert out.cpu().eq(61).all()


def test_a_warm_launch_takes_no_device_memory(torch: ModuleType) -> None:
    x, out = torch.ones(1000, device="cuda"), torch.zeros(1000, device="cuda")
    add(x, x, out)
    torch.cuda.synchronize()
    # Other processes of the run share the device, and take memory as they like: launches that
    # leak do so in each of the tries.
    assert any(_free_before(torch) == _free_after(torch, x, out) for _ in range(20))


def _free_before(torch: ModuleType) -> int:
    return torch.cuda.mem_get_info()[0]


def _free_after(torch: ModuleType, x: object, out: object) -> int:
    """The device's free memory behind a thousand launches."""
    for _ in range(1000):
        add(x, x, out)
    torch.cuda.synchronize()
    return torch.cuda.mem_get_info()[0]


def test_hooks_see_the_stream(torch: ModuleType) -> None:
    x, seen = torch.ones(1000, device="cuda"), []

    def enter(info) -> None:
        seen.append((info.target, info.device, info.stream))

    stream = torch.cuda.Stream()
    LAUNCH_HOOKS.add(enter=enter)
    try:
        with torch.cuda.stream(stream):
            add(x, x, x)
    finally:
        LAUNCH_HOOKS.remove(enter=enter)
    assert seen == [("nvidia", 0, stream.cuda_stream)]


if find_spec("cupy") is not None:

    def test_cupy_arrays_go_to_their_stream(torch: ModuleType) -> None:
        cupy = importlib.import_module("cupy")
        x, out = cupy.ones(1000, dtype=np.float32), cupy.zeros(1000, dtype=np.float32)
        cupy.cuda.Device().synchronize()  # a non-blocking stream does not wait for the default one
        with cupy.cuda.Stream(non_blocking=True) as stream:
            add(x, x, out)
            stream.synchronize()
        assert (out == 2).all()


def test_resources_of_a_loaded_kernel_are_known(torch: ModuleType) -> None:
    x = torch.ones(1000, device="cuda")
    kernel = add(x, x, x)
    assert 0 < kernel.n_regs < 64 and kernel.n_spills == 0
    assert ".entry add_kernel" in kernel.asm["ptx"]


@tilewright.jit
def move_kernel(source, target, factor, BLOCK: tl.constexpr, WIDTH: tl.constexpr):
    row = tl.program_id(0) * BLOCK
    target.store([row, 0], source.load([row, 0]) * factor)


def test_described_tensors_are_told_apart_on_the_native_path(torch: ModuleType) -> None:
    tensors = [torch.randn(64, 64, device="cuda") for _ in range(4)]
    for _ in range(3):
        for x in tensors:
            out = torch.zeros_like(x)
            source, target = (TensorDescriptor.from_tensor(t, (16, 64)) for t in (x, out))
            move_kernel[(4,)](source, target, 2.0, BLOCK=16, WIDTH=64)
            assert torch.equal(out, 2 * x)


FAULT = """
import torch
import tilewright
import tilewright.language as tl

@tilewright.jit
def wild_kernel(x_ptr, offset, n):
    tl.store(x_ptr + offset + tl.arange(0, 32), 1.0)

@tilewright.jit
def good_kernel(x_ptr, n):
    tl.store(x_ptr + tl.arange(0, 32), 1.0)

x = torch.zeros(1024, device="cuda")
good_kernel[(3,)](x, 5)
wild_kernel[(7,)](x, 1 << 40, 1234)
try:
    torch.cuda.synchronize()
except RuntimeError:
    pass
good_kernel[(3,)](x, 5)
"""


def test_a_fault_names_the_kernel_and_its_arguments(torch: ModuleType, tmp_path) -> None:
    script = tmp_path / "fault.py"
    script.write_text(FAULT)
    result = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode != 0
    assert "DeviceFault" in result.stderr and "CUDA_ERROR_ILLEGAL_ADDRESS" in result.stderr
    assert "wild_kernel[(7, 1, 1)](x_ptr=0x" in result.stderr
    assert f"offset={1 << 40}, n=1234" in result.stderr
