"""What programs for Triton do beyond a kernel and a launch, as its tutorials teach it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.api import alias as _alias  # noqa: F401 - puts `triton` on the path

import triton  # isort: skip
import triton.language as tl  # isort: skip
import triton.profiler as proton  # isort: skip
from triton.language.extra import libdevice  # isort: skip
from triton.runtime import driver  # isort: skip
from triton.tools.tensor_descriptor import TensorDescriptor  # isort: skip


@pytest.fixture(autouse=True)
def on_the_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The CPU as the device, and a cache of its own."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    driver.set_active(triton.backends.backends["cpu"].driver())
    yield
    driver.reset_active()


# --- a persistent kernel that is compiled first and asked about -------------------------------


@triton.jit
def softmax_kernel(
    out, x, x_stride, out_stride, rows, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr
):
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        at = tl.arange(0, BLOCK)
        values = tl.load(x + row * x_stride + at, mask=at < columns, other=-float("inf"))
        powers = tl.exp(values - tl.max(values, axis=0))
        tl.store(out + row * out_stride + at, powers / tl.sum(powers, axis=0), mask=at < columns)


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
    assert kernel.n_regs >= 0
    assert kernel.metadata.shared >= 0
    assert properties["warpSize"] >= 1
    assert {"max_num_regs", "max_shared_mem", "multiprocessor_count"} <= set(properties)
    num_programs = min(properties["multiprocessor_count"], 183)
    kernel[(num_programs, 1, 1)](out, x, 781, 781, 183, 781, block, 4)
    shifted = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, shifted / shifted.sum(1, keepdims=True), rtol=1e-5)


# --- attention in phases ----------------------------------------------------------------------


@triton.jit
def attend(
    acc, total, top, q, k_desc, v_desc, first, start, scale,
    BM: tl.constexpr, BN: tl.constexpr, PHASE: tl.constexpr,
    rows: tl.constexpr, columns: tl.constexpr, LENGTH: tl.constexpr,
):  # fmt: skip
    if PHASE == 1:
        low, high = 0, start * BM
    elif PHASE == 2:
        low, high = start * BM, (start + 1) * BM
        low = tl.multiple_of(low, BM)
    else:
        low, high = 0, LENGTH
    place = first + low
    for at in tl.range(low, high, BN):
        at = tl.multiple_of(at, BN)
        scores = tl.dot(q, k_desc.load([place, 0]).T)
        if PHASE == 2:
            mask = rows[:, None] >= (at + columns[None, :])
            scores = scores * scale + tl.where(mask, 0, -1.0e6)
            higher = tl.maximum(top, tl.max(scores, 1))
            scores -= higher[:, None]
        else:
            higher = tl.maximum(top, tl.max(scores, 1) * scale)
            scores = scores * scale - higher[:, None]
        p = tl.math.exp2(scores)
        alpha = tl.math.exp2(top - higher)
        acc = acc * alpha[:, None]
        acc = tl.dot(p.to(v_desc.dtype), v_desc.load([place, 0]), acc)
        total = total * alpha + tl.sum(p, 1)
        top = higher
        place += BN
    return acc, total, top


@triton.jit
def as_descriptor(given, shape, strides, block_shape):
    if isinstance(given, tl.tensor_descriptor):
        return given
    else:
        return tl.make_tensor_descriptor(given, shape, strides, block_shape)


@triton.jit
def attention_kernel(
    scale, M, Z, H, desc_q, desc_k, desc_v, desc_o, LENGTH,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, STAGE: tl.constexpr,
):  # fmt: skip
    start = tl.program_id(0)
    head = tl.program_id(1)
    rows_of_all = Z * H * LENGTH
    desc_q = as_descriptor(desc_q, [rows_of_all, D], [D, 1], [BM, D])
    desc_k = as_descriptor(desc_k, [rows_of_all, D], [D, 1], [BN, D])
    desc_v = as_descriptor(desc_v, [rows_of_all, D], [D, 1], [BN, D])
    desc_o = as_descriptor(desc_o, [rows_of_all, D], [D, 1], [BM, D])
    first = (head // H) * (LENGTH * H) + head % H * LENGTH
    rows = start * BM + tl.arange(0, BM)
    columns = tl.arange(0, BN)
    top = tl.zeros([BM], dtype=tl.float32) - float("inf")
    total = tl.zeros([BM], dtype=tl.float32) + 1.0
    acc = tl.zeros([BM, D], dtype=tl.float32)
    scale *= 1.44269504
    q = desc_q.load([first + start * BM, 0])
    if STAGE & 1:
        acc, total, top = attend(
            acc, total, top, q, desc_k, desc_v, first, start, scale,
            BM, BN, 4 - STAGE, rows, columns, LENGTH,
        )  # fmt: skip
    if STAGE & 2:
        acc, total, top = attend(
            acc, total, top, q, desc_k, desc_v, first, start, scale,
            BM, BN, 2, rows, columns, LENGTH,
        )  # fmt: skip
    tl.store(M + head * LENGTH + rows, top + tl.math.log2(total))
    acc = acc / total[:, None]
    desc_o.store([first + start * BM, 0], acc.to(desc_o.dtype))


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


def describe_launch(grid, kernel, args):
    """What a profiler is told of a launch."""
    M, N, K = args["M"], args["N"], args["K"]
    return {"name": f"{kernel.name} [M={M}, N={N}, K={K}]", "flops16": 2.0 * M * N * K}


@triton.jit
def tile_of(tile, num_in_group, num_m, GROUP: tl.constexpr):
    first = tile // num_in_group * GROUP
    size = min(num_m - first, GROUP)
    return first + (tile % size), (tile % num_in_group) // size


@triton.jit(launch_metadata=describe_launch)
def persistent_product(
    a, b, c, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
    NUM_SMS: tl.constexpr, FLATTEN: tl.constexpr,
):  # fmt: skip
    dtype = tl.float16
    a_desc = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    b_desc = tl.make_tensor_descriptor(b, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    c_desc = tl.make_tensor_descriptor(c, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    num_m, num_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    start = tl.program_id(axis=0)
    for tile in tl.range(start, num_m * num_n, NUM_SMS, flatten=FLATTEN, warp_specialize=False):
        m, n = tile_of(tile, GROUP * num_n, num_m, GROUP)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(tl.cdiv(K, BK)):
            acc = tl.dot(a_desc.load([m * BM, k * BK]), b_desc.load([n * BN, k * BK]).T, acc)
        c_desc.store([m * BM, n * BN], acc.to(dtype))


@pytest.mark.parametrize("flatten", [False, True])
def test_a_persistent_product_in_a_scope_tells_what_it_costs(
    rng: np.random.Generator, tmp_path: Path, flatten: bool
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
            persistent_product[(5,)](a, b, c, M, N, K, 64, 32, 32, 8, 5, flatten)
        proton.deactivate(0)
        persistent_product[(5,)](a, b, c, M, N, K, 64, 32, 32, 8, 5, flatten)
    finally:
        proton.finalize()
        triton.knobs.runtime.launch_enter_hook = None
    np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32).T, atol=0.05)
    assert told[0]["name"] == "persistent_product [M=136, N=72, K=80]"
    assert told[0]["flops16"] == 2.0 * M * N * K


# --- groups of products through pointers in memory --------------------------------------------


@triton.jit
def grouped_product(
    a_ptrs, b_ptrs, c_ptrs, sizes, strides, num_groups,
    NUM_SM: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0)
    end = 0
    for g in range(num_groups):
        gm = tl.load(sizes + g * 3)
        gn = tl.load(sizes + g * 3 + 1)
        gk = tl.load(sizes + g * 3 + 2)
        num_n = tl.cdiv(gn, BN)
        num_tiles = tl.cdiv(gm, BM) * num_n
        while tile >= end and tile < end + num_tiles:
            lda = tl.load(strides + g * 3)
            ldb = tl.load(strides + g * 3 + 1)
            ldc = tl.load(strides + g * 3 + 2)
            a_ptr = tl.load(a_ptrs + g).to(tl.pointer_type(tl.float16))
            b_ptr = tl.load(b_ptrs + g).to(tl.pointer_type(tl.float16))
            c_ptr = tl.load(c_ptrs + g).to(tl.pointer_type(tl.float16))
            m = (tile - end) // num_n * BM + tl.arange(0, BM)
            n = (tile - end) % num_n * BN + tl.arange(0, BN)
            k = tl.arange(0, BK)
            a_at = a_ptr + m[:, None] * lda + k[None, :]
            b_at = b_ptr + k[:, None] * ldb + n[None, :]
            acc = tl.zeros((BM, BN), dtype=tl.float32)
            for _ in range(0, tl.cdiv(gk, BK)):
                tl.multiple_of(a_at, [16, 16])
                tl.multiple_of(b_at, [16, 16])
                acc += tl.dot(tl.load(a_at), tl.load(b_at))
                a_at += BK
                b_at += BK * ldb
            tl.store(c_ptr + ldc * m[:, None] + n[None, :], acc.to(tl.float16))
            tile += NUM_SM
        end = end + num_tiles


def test_groups_of_products_through_pointers_in_memory(rng: np.random.Generator) -> None:
    shapes = [(128, 64, 96), (64, 128, 32), (64, 64, 64)]
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


@triton.jit
def extern_kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, libdevice.asin(tl.load(x + at, mask=at < n)), mask=at < n)


def test_libraries_of_device_code_are_accepted(rng: np.random.Generator) -> None:
    x = rng.uniform(-1, 1, 1000).astype(np.float32)
    out = np.empty_like(x)
    libraries = {"libdevice": str(Path(triton.__file__).parent / "backends/nvidia/lib")}
    extern_kernel[(1,)](x, out, 1000, BLOCK=1024, extern_libs=libraries)
    np.testing.assert_allclose(out, np.arcsin(x), rtol=1e-5, atol=1e-6)


@triton.jit
def dependent_kernel(x, out, n, BLOCK: tl.constexpr, USE_GDC: tl.constexpr):
    at = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    if USE_GDC:
        tl.extra.cuda.gdc_wait()
    value = tl.load(x + at, mask=at < n)
    if USE_GDC:
        tl.extra.cuda.gdc_launch_dependents()
    tl.store(out + at, value + 1, mask=at < n)


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
