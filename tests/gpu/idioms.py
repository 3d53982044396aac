"""Idioms of programs that people have, under the name `triton`: on a GPU, or on the CPU.

    python -m tilewright run tests/gpu/idioms.py

prints a line for each; it ends with 1 when one fails.
"""

from __future__ import annotations

import sys
import traceback

import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.tools.tensor_descriptor import TensorDescriptor

import torch

DEVICE = triton.runtime.driver.active.get_active_torch_device()
IS_GPU = DEVICE.type == "cuda"
CHECKS = []


def check(function):
    """Add a function to what is checked."""
    CHECKS.append(function)
    return function


def near(got: torch.Tensor, expected: torch.Tensor, tolerance: float = 1e-2) -> None:
    """Assert that two tensors agree."""
    torch.testing.assert_close(got.float(), expected.float(), rtol=tolerance, atol=tolerance)


def halves(*shape: int) -> torch.Tensor:
    """Random float16."""
    return torch.randn(*shape, device=DEVICE, dtype=torch.float32).half()


# --- blocks set by a hook, an inner function that takes tiles as constants --------------------


def set_blocks(arguments) -> None:
    """What a configuration does before each launch of it."""
    rows, columns, depth = arguments["BM"], arguments["BN"], arguments["D"]
    for name, block in (("q", rows), ("k", columns), ("v", columns), ("out", rows)):
        if isinstance(arguments[name], TensorDescriptor):
            arguments[name].block_shape = [block, depth]


@triton.jit
def attend(
    acc, total, top, q, k, v, head, first, scale, kind: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr, STAGE: tl.constexpr, rows: tl.constexpr, columns: tl.constexpr,
    N: tl.constexpr,
):  # fmt: skip
    if STAGE == 1:
        lo, hi = 0, first
    elif STAGE == 2:
        lo, hi = first, first + BM
        lo = tl.multiple_of(lo, BM)
    else:
        lo, hi = 0, N
    at = head + lo
    for start in tl.range(lo, hi, BN):
        start = tl.multiple_of(start, BN)
        s = tl.dot(q, k.load([at, 0]).T) * scale
        if STAGE == 2:
            s += tl.where(rows[:, None] >= start + columns[None, :], 0, -1.0e6)
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.math.exp2(s - new[:, None])
        alpha = tl.math.exp2(top - new)
        total = total * alpha + tl.sum(p, 1)
        acc = tl.dot(p.to(kind), v.load([at, 0]), acc * alpha[:, None])
        top = new
        at += BN
    return acc, total, top


@triton.jit
def described(x, shape, strides, block):
    if isinstance(x, tl.tensor_descriptor):
        return x
    else:
        return tl.make_tensor_descriptor(x, shape, strides, block)


def configurations():
    """Two, with the hook."""
    return [
        triton.Config({"BM": rows, "BN": 32}, num_stages=2, num_warps=4, pre_hook=set_blocks)
        for rows in (64, 128)
    ]


@triton.autotune(configurations(), key=["N", "D"])
@triton.jit
def attention(
    scale, lse, heads, q, k, v, out, N, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    STAGE: tl.constexpr,
):  # fmt: skip
    kind: tl.constexpr = tl.float16
    tl.static_assert(BN <= D)
    rows = heads * N
    q = described(q, [rows, D], [D, 1], [BM, D])
    k = described(k, [rows, D], [D, 1], [BN, D])
    v = described(v, [rows, D], [D, 1], [BN, D])
    out = described(out, [rows, D], [D, 1], [BM, D])
    first, head = tl.program_id(0) * BM, tl.program_id(1) * N
    r = first + tl.arange(0, BM)
    c = tl.arange(0, BN)
    top = tl.zeros([BM], dtype=tl.float32) - float("inf")
    total = tl.zeros([BM], dtype=tl.float32) + 1.0
    acc = tl.zeros([BM, D], dtype=tl.float32)
    x = q.load([head + first, 0])
    if STAGE & 1:
        acc, total, top = attend(
            acc, total, top, x, k, v, head, first, scale, kind, BM, BN, 4 - STAGE, r, c, N
        )
    if STAGE & 2:
        acc, total, top = attend(
            acc, total, top, x, k, v, head, first, scale, kind, BM, BN, 2, r, c, N
        )
    top += tl.math.log2(total)
    tl.store(lse + head + r, top)
    out.store([head + first, 0], (acc / total[:, None]).to(kind))


@check
def attention_with_blocks_that_a_hook_sets() -> None:
    heads, n, depth = 2, 256, 64
    triton.set_allocator(lambda size, align, _: torch.empty(size, dtype=torch.int8, device=DEVICE))
    for is_causal in (True, False):
        for is_host in (True, False):
            x = [halves(heads * n, depth) for _ in range(3)]
            out, lse = torch.zeros_like(x[0]), torch.zeros(heads * n, device=DEVICE)
            tensors = [*x, out]
            if is_host:
                tensors = [
                    TensorDescriptor(t, [heads * n, depth], [depth, 1], [1, 1]) for t in tensors
                ]
            grid = lambda meta: (triton.cdiv(n, meta["BM"]), heads, 1)  # noqa: E731
            scale = depth**-0.5 * 1.44269504
            attention[grid](scale, lse, heads, *tensors, n, D=depth, STAGE=3 if is_causal else 1)
            q, k, v = (t.view(heads, n, depth).float() for t in x)
            expected = torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=is_causal
            )
            # The sum starts from 1, beside which what a row adds is large.
            assert torch.isfinite(out).all()
            near(lse[-1], torch.logsumexp(q[-1, -1] @ k[-1].T * depth**-0.5, -1) * 1.44269504, 0.1)
            difference = (out.view(heads, n, depth).float() - expected).abs().max()
            assert difference < 0.6, difference


# --- products: persistent with descriptors, grouped with pointers from memory -----------------


def described_launch(grid, kernel, arguments):
    """What a profiler shows of a launch."""
    m, n, k = arguments["M"], arguments["N"], arguments["K"]
    return {"name": f"{kernel.name} [{m}x{n}x{k}]", "flops16": 2.0 * m * n * k}


@triton.jit
def place(tile, per_group, down, GROUP: tl.constexpr):
    group = tile // per_group
    first = group * GROUP
    size = min(down - first, GROUP)
    return first + tile % size, (tile % per_group) // size


@triton.jit(launch_metadata=described_launch)
def persistent(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
    PROGRAMS: tl.constexpr, FLATTEN: tl.constexpr,
):  # fmt: skip
    left = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    right = tl.make_tensor_descriptor(b, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    result = tl.make_tensor_descriptor(c, shape=[M, N], strides=[N, 1], block_shape=[BM, BN // 2])
    down, across = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), down * across, PROGRAMS, flatten=FLATTEN):
        i, j = place(tile, GROUP * across, down, GROUP)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for step in range(tl.cdiv(K, BK)):
            x = left.load([i * BM, step * BK])
            y = right.load([j * BN, step * BK])
            acc = tl.dot(x, y.T, acc)
        acc = tl.permute(tl.reshape(acc, (BM, 2, BN // 2)), (0, 2, 1))
        first, second = tl.split(acc)
        result.store([i * BM, j * BN], first.to(tl.float16))
        result.store([i * BM, j * BN + BN // 2], second.to(tl.float16))


@check
def a_persistent_product_makes_its_descriptors() -> None:
    m, n, k = 320, 384, 160
    triton.set_allocator(lambda size, align, _: torch.empty(size, dtype=torch.int8, device=DEVICE))
    a, b, c = halves(m, k), halves(n, k), torch.zeros(m, n, device=DEVICE, dtype=torch.float16)
    for flatten in (False, True):
        c.zero_()
        kernel = persistent[(5,)](a, b, c, m, n, k, 64, 128, 32, 8, 5, flatten, num_warps=4)
        near(c, a.float() @ b.float().T)
    assert kernel is not None


@triton.jit
def grouped(
    addresses_a, addresses_b, addresses_c, sizes, groups, BM: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr,
):  # fmt: skip
    tile, done = tl.program_id(0), 0
    for g in range(groups):
        m, n, k = tl.load(sizes + g * 3), tl.load(sizes + g * 3 + 1), tl.load(sizes + g * 3 + 2)
        across = tl.cdiv(n, BN)
        tiles = tl.cdiv(m, BM) * across
        while tile >= done and tile < done + tiles:
            a = tl.load(addresses_a + g).to(tl.pointer_type(tl.float16))
            b = tl.load(addresses_b + g).to(tl.pointer_type(tl.float16))
            c = tl.load(addresses_c + g).to(tl.pointer_type(tl.float16))
            r = (tile - done) // across * BM + tl.arange(0, BM)
            s = (tile - done) % across * BN + tl.arange(0, BN)
            t = tl.arange(0, BK)
            acc = tl.zeros((BM, BN), dtype=tl.float32)
            for step in range(0, tl.cdiv(k, BK)):
                inside = step * BK + t < k
                x = tl.load(a + r[:, None] * k + step * BK + t[None, :],
                            mask=(r < m)[:, None] & inside[None, :], other=0.0)  # fmt: skip
                y = tl.load(b + (step * BK + t)[:, None] * n + s[None, :],
                            mask=inside[:, None] & (s < n)[None, :], other=0.0)  # fmt: skip
                acc += tl.dot(x, y)
            tl.store(c + r[:, None] * n + s[None, :], acc.to(tl.float16),
                     mask=(r < m)[:, None] & (s < n)[None, :])  # fmt: skip
            tile += tl.num_programs(0)
        done += tiles


@check
def products_of_groups_find_their_matrices_in_memory() -> None:
    shapes = [(128, 96, 64), (17, 64, 40), (64, 200, 72)]
    a = [halves(m, k) for m, n, k in shapes]
    b = [halves(k, n) for m, n, k in shapes]
    c = [torch.zeros(m, n, device=DEVICE, dtype=torch.float16) for m, n, k in shapes]
    tables = [torch.tensor([x.data_ptr() for x in group], device=DEVICE) for group in (a, b, c)]
    sizes = torch.tensor(shapes, device=DEVICE, dtype=torch.int32).flatten()
    grouped[(4,)](*tables, sizes, 3, BM=64, BN=64, BK=32)
    for left, right, found in zip(a, b, c, strict=True):
        near(found, left.float() @ right.float())


# --- what a kernel and a driver tell ----------------------------------------------------------


@triton.jit
def softmax(out, x, stride, rows, columns, BLOCK: tl.constexpr, num_stages: tl.constexpr):
    first, step = tl.program_id(0), tl.num_programs(0)
    for row in tl.range(first, rows, step, num_stages=num_stages):
        at = tl.arange(0, BLOCK)
        inside = at < columns
        values = tl.load(x + row * stride + at, mask=inside, other=-float("inf"))
        e = tl.exp(values - tl.max(values, axis=0))
        tl.store(out + row * stride + at, e / tl.sum(e, axis=0), mask=inside)


@check
def a_kernel_is_compiled_ahead_and_launched_by_what_it_takes() -> None:
    x = torch.randn(193, 781, device=DEVICE)
    out = torch.empty_like(x)
    properties = triton.runtime.driver.active.utils.get_device_properties(
        DEVICE.index if DEVICE.index is not None else 0
    )
    assert properties["multiprocessor_count"] >= 1 and properties["max_shared_mem"] > 0
    assert properties["warpSize"] >= 1 and properties["max_num_regs"] > 0
    kernel = softmax.warmup(
        out, x, x.stride(0), 193, 781, BLOCK=1024, num_stages=2, num_warps=8, grid=(1,)
    )
    kernel._init_handles()
    assert kernel.n_regs >= 0 and kernel.metadata.shared >= 0
    if IS_GPU:
        assert 0 < kernel.n_regs <= 255 and kernel.n_spills == 0
    kernel[(20, 1, 1)](out, x, x.stride(0), 193, 781, 1024, 2)
    near(out, torch.softmax(x, 1), 1e-5)


@triton.jit
def arcsine(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = libdevice.asin(tl.load(x + at, mask=at < n))
    tl.store(out + at, value, mask=at < n)


@check
def libraries_of_functions_may_be_named() -> None:
    x = torch.rand(4097, device=DEVICE)
    for options in ({}, {"extern_libs": {"libdevice": "/nowhere/libdevice.10.bc"}}):
        out = torch.zeros_like(x)
        arcsine[(5,)](x, out, 4097, BLOCK=1024, **options)
        near(out, torch.asin(x), 1e-5)


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr, IS_DEPENDENT: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if IS_DEPENDENT:
        tl.extra.cuda.gdc_wait()
    left = tl.load(x + at, mask=at < n)
    right = tl.load(y + at, mask=at < n)
    if IS_DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
    tl.store(out + at, left + right, mask=at < n)


@check
def a_dependent_launch_sees_what_the_one_before_wrote() -> None:
    n = 1 << 20 if IS_GPU else 5000
    x, y = (torch.rand(n, device=DEVICE) for _ in range(2))
    options = {"launch_pdl": True} if IS_GPU else {}
    for is_dependent in (False, IS_GPU):
        chain = [x]
        for _ in range(20):
            chain.append(torch.empty_like(x))
            grid = (triton.cdiv(n, 1024),)
            given = options if is_dependent else {}
            add[grid](chain[-2], y, chain[-1], n, 1024, is_dependent, **given)
        near(chain[-1], x + 20 * y, 1e-4)


@check
def scopes_of_a_profiler_cost_nothing_without_it() -> None:
    try:
        import triton.profiler as proton
    except ImportError:
        return
    x = torch.rand(100, device=DEVICE)
    out = torch.empty_like(x)
    with proton.scope("adding [100]", {"bytes": 1200}):
        add[(1,)](x, x, out, 100, 128, False)
    near(out, x + x)


def main() -> int:
    """Run every check; how many failed."""
    failed = 0
    for function in CHECKS:
        torch.manual_seed(0)
        try:
            function()
        except Exception:
            failed += 1
            print(f"FAIL {function.__name__}\n{traceback.format_exc()}", flush=True)
        else:
            print(f"ok {function.__name__}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
