"""What programs for Triton do beyond a kernel and a launch, as its tutorials teach it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.api import alias as _alias  # noqa: F401 - puts `triton` on the path

from tests.api.idiom_kernels import (  # isort: skip
    attention_kernel,
    dependent_kernel,
    extern_kernel,
    grouped_product,
    persistent_product,
    softmax_kernel,
)

import triton  # isort: skip
import triton.language as tl  # isort: skip
import triton.profiler as proton  # isort: skip
from triton.runtime import _allocation, driver  # isort: skip
from triton.tools.tensor_descriptor import TensorDescriptor  # isort: skip


@pytest.fixture(autouse=True)
def on_the_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The CPU as the device, and a cache of its own."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    driver.set_active(triton.backends.backends["cpu"].driver())
    yield
    driver.reset_active()
    _allocation._allocator.set(_allocation.NullAllocator())


# --- a persistent kernel that is compiled first and asked about -------------------------------


def test_a_kernel_is_warmed_up_asked_and_launched_with_every_argument(
    rng: np.random.Generator,
) -> None:
    x = rng.standard_normal((183, 781)).astype(np.float32)
    out = np.empty_like(x)
    properties = driver.active.utils.get_device_properties(driver.active.get_current_device())
    block = triton.next_power_of_2(781)
    kernel = softmax_kernel.warmup(
        out, x, 781, 781, 183, 781, BLOCK=block, STAGES=4, num_stages=4, num_warps=8, grid=(1,)
    )
    kernel._init_handles()
    by_registers = properties["max_num_regs"] // (kernel.n_regs * properties["warpSize"] * 8)
    by_memory = properties["max_shared_mem"] // kernel.metadata.shared
    occupancy = min(by_registers, by_memory)
    assert occupancy >= 1
    num_programs = min(properties["multiprocessor_count"] * occupancy, 183)
    kernel[(num_programs, 1, 1)](out, x, 781, 781, 183, 781, block, 4)
    shifted = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, shifted / shifted.sum(1, keepdims=True), rtol=1e-5)


# --- attention in phases ----------------------------------------------------------------------


def attention(q, k, v, scale, is_causal):
    """Attention in double precision."""
    scores = np.einsum("zhid,zhjd->zhij", *(a.astype(np.float64) for a in (q, k))) * scale
    if is_causal:
        scores = np.where(np.tri(q.shape[2], dtype=bool), scores, -np.inf)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("zhij,zhjd->zhid", p / p.sum(-1, keepdims=True), v.astype(np.float64))


@pytest.mark.parametrize("on_host", [True, False])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("D", [32, 64])
def test_attention_in_one_or_two_phases(
    rng: np.random.Generator, D: int, is_causal: bool, on_host: bool
) -> None:
    Z, H, length, block = 2, 3, 192, (64, 32)
    q, k, v = (rng.standard_normal((Z, H, length, D)).astype(np.float16) for _ in range(3))
    out, M = np.empty_like(q), np.empty((Z * H, length), np.float32)
    flat = [a.reshape(-1, D) for a in (q, k, v, out)]
    if on_host:
        blocks = ([block[0], D], [block[1], D], [block[1], D], [block[0], D])
        flat = [TensorDescriptor(a, a.shape, [D, 1], b) for a, b in zip(flat, blocks, strict=True)]
    else:
        triton.set_allocator(lambda size, align, stream: np.empty(size, np.int8))
    grid = (triton.cdiv(length, block[0]), Z * H, 1)
    attention_kernel[grid](
        0.5, M, Z, H, *flat, length, D, *block, 3 if is_causal else 1, num_warps=4
    )
    np.testing.assert_allclose(out, attention(q, k, v, 0.5, is_causal), atol=5e-3)


# --- a persistent product with descriptors, metadata of launches and scopes ------------------


@pytest.mark.parametrize(("flatten", "is_split"), [(False, True), (True, False)])
def test_a_persistent_product_in_a_scope_tells_what_it_costs(
    rng: np.random.Generator, tmp_path: Path, flatten: bool, is_split: bool
) -> None:
    M, N, K = 136, 72, 80
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((M, K), (N, K)))
    c = np.zeros((M, N), np.float16)
    triton.set_allocator(lambda size, align, stream: np.empty(size, np.int8))
    told = []
    proton.start(str(tmp_path / "product"), hook="triton")
    triton.knobs.runtime.launch_enter_hook.add(lambda data: told.append(data.get()))
    try:
        with proton.scope("ours", {"bytes": 3.0, "flops16": 2.0 * M * N * K}):
            persistent_product[(5,)](a, b, c, M, N, K, 64, 32, 32, 8, 5, flatten, is_split)
        proton.deactivate(0)
        persistent_product[(5,)](a, b, c, M, N, K, 64, 32, 32, 8, 5, flatten, is_split)
    finally:
        proton.finalize()
        triton.knobs.runtime.launch_enter_hook = None
    np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32).T, atol=0.05)
    assert told[0]["name"] == "persistent_product [M=136, N=72, K=80]"
    assert told[0]["flops16"] == 2.0 * M * N * K


# --- groups of products through pointers in memory --------------------------------------------


def test_groups_of_products_through_pointers_in_memory(rng: np.random.Generator) -> None:
    shapes = [(128, 64, 96), (17, 200, 40), (64, 64, 72)]
    a = [rng.standard_normal((m, k)).astype(np.float16) for m, n, k in shapes]
    b = [rng.standard_normal((k, n)).astype(np.float16) for m, n, k in shapes]
    c = [np.empty((m, n), np.float16) for m, n, k in shapes]
    pointers = [np.array([x.ctypes.data for x in group], np.int64) for group in (a, b, c)]
    sizes = np.array(shapes, np.int32)
    strides = np.array([(k, n, n) for m, n, k in shapes], np.int32)
    grouped_product[lambda meta: (meta["NUM_SM"],)](
        *pointers, sizes, strides, len(shapes), NUM_SM=3, BM=64, BN=64, BK=32
    )
    for x, y, z in zip(a, b, c, strict=True):
        np.testing.assert_allclose(z, x.astype(np.float32) @ y.astype(np.float32), atol=0.05)


# --- options that mean something elsewhere ----------------------------------------------------


def test_libraries_of_device_code_are_accepted(rng: np.random.Generator) -> None:
    x = rng.uniform(-1, 1, 1000).astype(np.float32)
    out = np.empty_like(x)
    libraries = {"libdevice": str(Path(triton.__file__).parent / "backends/nvidia/lib")}
    extern_kernel[(1,)](x, out, 1000, BLOCK=1024, extern_libs=libraries)
    np.testing.assert_allclose(out, np.arcsin(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("is_dependent", [False, True])
def test_a_dependent_launch_is_an_ordinary_one_on_the_cpu(is_dependent: bool) -> None:
    x, out = np.arange(1000, dtype=np.float32), np.empty(1000, np.float32)
    dependent_kernel[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](
        x, out, 1000, BLOCK=256, USE_GDC=is_dependent, launch_pdl=is_dependent
    )
    np.testing.assert_array_equal(out, x + 1)


# --- locks ------------------------------------------------------------------------------------


@triton.jit
def locked_sum(x, partial, locks, N, ROWS: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    lock = locks + row % GROUP
    count = lock + GROUP
    total = partial + row % GROUP * N + at
    value = tl.load(x + row * N + at, mask=at < N, other=0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    if tl.load(count) == 0:
        tl.atomic_xchg(count, 1)
    else:
        value += tl.load(total, mask=at < N)
    tl.store(total, value, mask=at < N)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


def test_sums_behind_locks(rng: np.random.Generator) -> None:
    x = rng.standard_normal((151, 100)).astype(np.float32)
    partial, locks = np.empty((8, 100), np.float32), np.zeros(16, np.int32)
    locked_sum[(151,)](x, partial, locks, 100, ROWS=151, GROUP=8, BLOCK=128, num_ctas=1)
    np.testing.assert_allclose(partial.sum(0), x.sum(0), rtol=1e-4, atol=1e-4)
