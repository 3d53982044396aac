"""Kernels and what they were compiled to go to other processes."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import tests.api.alias  # noqa: F401 - puts `triton` on the path
import tilewright
import tilewright.language as tl

import triton  # isort: skip


@tilewright.jit
def step(x):
    return x + 1


@tilewright.jit
def kernel(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, step(tl.load(x + at)))


@triton.jit
def triton_kernel(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, tl.load(x + at) + 2)


class Kernels:
    @staticmethod
    @tilewright.jit
    def nested(x, out, N: tl.constexpr):
        tl.store(out + tl.arange(0, N), tl.load(x + tl.arange(0, N)) + 3)


def launched(function: Callable[..., object]) -> list[float]:
    x, out = np.zeros(8, np.float32), np.zeros(8, np.float32)
    function[(1,)](x, out, N=8)
    return out.tolist()


def launched_compiled(compiled: tilewright.CompiledKernel) -> list[float]:
    x, out = np.zeros(8, np.float32), np.zeros(8, np.float32)
    compiled.launch((1, 1, 1), [x.ctypes.data, out.ctypes.data])
    return out.tolist()


@pytest.mark.parametrize("function", [kernel, triton_kernel, Kernels.nested])
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_global_kernel_is_pickled_by_its_name(function, protocol) -> None:
    assert pickle.loads(pickle.dumps(function, protocol)) is function
    launched(function)
    assert pickle.loads(pickle.dumps(function, protocol)) is function


@pytest.mark.parametrize("function", [kernel, triton_kernel])
def test_a_compiled_kernel_is_pickled_with_its_code(function) -> None:
    x = np.zeros(8, np.float32)
    compiled = function.warmup(x, x, N=8, grid=(1,))
    copy = pickle.loads(pickle.dumps(compiled))
    assert copy.name.endswith(compiled.name) and copy.hash == compiled.hash
    assert copy.asm["llir"] == compiled.asm["llir"]
    assert launched_compiled(copy) == launched_compiled(compiled) == launched(function)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_kernels_go_to_the_processes_of_a_pool(method) -> None:
    x = np.zeros(8, np.float32)
    compiled = kernel.warmup(x, x, N=8, grid=(1,))
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        assert pool.submit(launched, kernel).result() == [1.0] * 8
        assert pool.submit(launched, triton_kernel).result() == [2.0] * 8
        assert pool.submit(launched_compiled, compiled).result() == [1.0] * 8
