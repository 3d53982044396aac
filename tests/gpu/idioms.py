"""Idioms of programs that people have, under the name `triton`: on a GPU, or on the CPU.

    python -m tilewright run tests/gpu/idioms.py

prints a line for each; it ends with 1 when one fails.
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

import triton
from triton.tools.tensor_descriptor import TensorDescriptor

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.api.idiom_kernels import (
    attention_kernel,
    dependent_kernel,
    extern_kernel,
    grouped_product,
    persistent_product,
    softmax_kernel,
)

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
    for name, block in (("q", rows), ("k", columns), ("v", columns), ("o", rows)):
        if isinstance(arguments[f"desc_{name}"], TensorDescriptor):
            arguments[f"desc_{name}"].block_shape = [block, depth]


def configurations():
    """Two, with the hook."""
    return [
        triton.Config({"BM": rows, "BN": 32}, num_stages=2, num_warps=4, pre_hook=set_blocks)
        for rows in (64, 128)
    ]


attention = triton.autotune(configurations(), key=["LENGTH", "D"])(attention_kernel)


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
            scale, stage = depth**-0.5, 3 if is_causal else 1
            attention[grid](scale, lse, 1, heads, *tensors, n, D=depth, STAGE=stage)
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


@check
def a_persistent_product_makes_its_descriptors() -> None:
    m, n, k = 320, 384, 160
    triton.set_allocator(lambda size, align, _: torch.empty(size, dtype=torch.int8, device=DEVICE))
    a, b, c = halves(m, k), halves(n, k), torch.zeros(m, n, device=DEVICE, dtype=torch.float16)
    for flatten, is_split in ((False, True), (True, True), (True, False)):
        c.zero_()
        kernel = persistent_product[(5,)](
            a, b, c, m, n, k, 64, 128, 32, 8, 5, flatten, is_split, num_warps=4
        )
        near(c, a.float() @ b.float().T)
    assert kernel is not None


@check
def products_of_groups_find_their_matrices_in_memory() -> None:
    shapes = [(128, 96, 64), (17, 64, 40), (64, 200, 72)]
    a = [halves(m, k) for m, n, k in shapes]
    b = [halves(k, n) for m, n, k in shapes]
    c = [torch.zeros(m, n, device=DEVICE, dtype=torch.float16) for m, n, k in shapes]
    tables = [torch.tensor([x.data_ptr() for x in group], device=DEVICE) for group in (a, b, c)]
    sizes = torch.tensor(shapes, device=DEVICE, dtype=torch.int32).flatten()
    strides = torch.tensor([(k, n, n) for m, n, k in shapes], device=DEVICE, dtype=torch.int32)
    grouped_product[(4,)](*tables, sizes, strides.flatten(), 3, NUM_SM=4, BM=64, BN=64, BK=32)
    for left, right, found in zip(a, b, c, strict=True):
        near(found, left.float() @ right.float())


# --- what a kernel and a driver tell ----------------------------------------------------------


@check
def a_kernel_is_compiled_ahead_and_launched_by_what_it_takes() -> None:
    x = torch.randn(193, 781, device=DEVICE)
    out = torch.empty_like(x)
    properties = triton.runtime.driver.active.utils.get_device_properties(
        DEVICE.index if DEVICE.index is not None else 0
    )
    assert properties["multiprocessor_count"] >= 1 and properties["max_shared_mem"] > 0
    assert properties["warpSize"] >= 1 and properties["max_num_regs"] > 0
    strides = x.stride(0), out.stride(0)
    kernel = softmax_kernel.warmup(
        out, x, *strides, 193, 781, BLOCK=1024, STAGES=2, num_warps=8, grid=(1,)
    )
    kernel._init_handles()
    assert kernel.n_regs >= 0 and kernel.metadata.shared >= 0
    if IS_GPU:
        assert 0 < kernel.n_regs <= 255 and kernel.n_spills == 0
    kernel[(20, 1, 1)](out, x, *strides, 193, 781, 1024, 2)
    near(out, torch.softmax(x, 1), 1e-5)


@check
def libraries_of_functions_may_be_named() -> None:
    x = torch.rand(4097, device=DEVICE)
    for options in ({}, {"extern_libs": {"libdevice": "/nowhere/libdevice.10.bc"}}):
        out = torch.zeros_like(x)
        extern_kernel[(5,)](x, out, 4097, BLOCK=1024, **options)
        near(out, torch.asin(x), 1e-5)


@check
def a_dependent_launch_sees_what_the_one_before_wrote() -> None:
    n = 1 << 20 if IS_GPU else 5000
    x = torch.rand(n, device=DEVICE)
    options = {"launch_pdl": True} if IS_GPU else {}
    for is_dependent in (False, IS_GPU):
        chain = [x]
        for _ in range(20):
            chain.append(torch.empty_like(x))
            grid = (triton.cdiv(n, 1024),)
            given = options if is_dependent else {}
            dependent_kernel[grid](chain[-2], chain[-1], n, 1024, is_dependent, **given)
        near(chain[-1], x + 20, 1e-4)


@check
def scopes_of_a_profiler_cost_nothing_without_it() -> None:
    try:
        import triton.profiler as proton
    except ImportError:
        return
    x = torch.rand(100, device=DEVICE)
    out = torch.empty_like(x)
    with proton.scope("adding [100]", {"bytes": 1200}):
        dependent_kernel[(1,)](x, out, 100, 128, False)
    near(out, x + 1)


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
