"""Kernels of the user inside torch.compile and torch.library, and what torch learns of them."""

from __future__ import annotations

import copy
import pickle

import pytest
import triton
import triton.language as tl
from torch._higher_order_ops import triton_kernel_wrap
from triton.language import float32, load, store

import torch

# torch warns about itself while it compiles.
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("default")]


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@triton.autotune(
    [triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 256}, num_warps=8)], key=["n"]
)
@triton.jit
def multiply_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x * tl.load(y_ptr + offsets, mask=mask), mask=mask)


@triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["n"])})
@triton.jit
def total_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(out_ptr, tl.sum(x, axis=0))


@triton.jit
def unqualified_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    store(out_ptr + offsets, load(x_ptr + offsets).to(float32) * 2)


@triton.jit
def loop_kernel(x_ptr, seen_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    target = out_ptr
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
        if start > 0:
            target += 0
    if n > 5:
        tl.store(seen_ptr, 1.0)
    tl.atomic_add(target, tl.sum(total, axis=0))


@torch.library.triton_op("tilewright_tests::add", mutates_args={})
def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    n = x.numel()
    torch.library.wrap_triton(add_kernel)[(triton.cdiv(n, 128),)](x, y, out, n, 128)
    return out


@torch.library.triton_op("tilewright_tests::multiply", mutates_args={})
def multiply(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    n = x.numel()
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)  # noqa: E731 - as users write it
    torch.library.wrap_triton(multiply_kernel)[grid](x, y, out, n)
    return out


def accesses(kernel, **arguments):
    found = triton_kernel_wrap.identify_accessed_tensors(kernel, arguments, {}).read_writes
    return {dep.name for dep in found.reads}, {dep.name for dep in found.writes}


@pytest.mark.usefixtures("inductor")
def test_an_op_made_of_kernels_runs_eagerly_and_compiled() -> None:
    x, y = torch.randn(1000), torch.randn(1000)
    compiled = torch.compile(lambda x, y: multiply(add(x, y), y).sin(), fullgraph=True)
    torch.testing.assert_close(multiply(add(x, y), y), (x + y) * y)
    torch.testing.assert_close(compiled(x, y), ((x + y) * y).sin())


@pytest.mark.usefixtures("inductor")
def test_kernels_launched_inside_a_compiled_function_run_in_order() -> None:
    def launch(x, y):
        out = torch.zeros_like(x)
        n = x.numel()
        multiply_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n)
        add_kernel[(triton.cdiv(n, 128),)](x, out, out, n, BLOCK=128)
        return out + 1

    x, y = torch.randn(1000), torch.randn(1000)
    torch.testing.assert_close(torch.compile(launch, fullgraph=True)(x, y), x * y + x + 1)


@pytest.mark.usefixtures("inductor")
def test_names_that_a_kernel_imports_from_triton_reach_the_generated_code() -> None:
    def launch(x):
        out = torch.empty_like(x)
        unqualified_kernel[(1,)](x, out, BLOCK=64)
        return out

    x = torch.randn(64)
    torch.testing.assert_close(torch.compile(launch, fullgraph=True)(x), x * 2)


def test_a_kernel_with_heuristics_launches_on_tensors() -> None:
    x, out = torch.randn(100), torch.zeros(1)
    total_kernel[(1,)](x, out, 100)
    torch.testing.assert_close(out[0], x.sum())


def test_torch_learns_which_arguments_a_kernel_reads_and_writes() -> None:
    x = torch.randn(100)
    arguments = {"x_ptr": x, "y_ptr": x, "out_ptr": x, "n": 100, "BLOCK": 64}
    assert accesses(add_kernel, **arguments) == ({"x_ptr", "y_ptr"}, {"out_ptr"})


def test_stores_and_atomics_behind_loops_and_branches_are_found() -> None:
    x = torch.randn(100)
    arguments = {"x_ptr": x, "seen_ptr": x, "out_ptr": x, "n": 100, "BLOCK": 64}
    assert accesses(loop_kernel, **arguments) == ({"x_ptr"}, {"seen_ptr", "out_ptr"})


def test_a_compiled_kernel_survives_pickling_and_runs() -> None:
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}
    source = triton.compiler.ASTSource(
        add_kernel, {**signature, "BLOCK": "constexpr"}, {"BLOCK": 64}, {(3,): []}
    )
    compiled = triton.compile(source)
    state = {**compiled.__dict__, "src": None, "module": None, "function": None, "run": None}
    kernel = triton.compiler.CompiledKernel.__new__(triton.compiler.CompiledKernel)
    kernel.__dict__.update(pickle.loads(pickle.dumps(state)))
    x, y, out = torch.randn(100), torch.randn(100), torch.zeros(100)
    kernel[(2,)](x, y, out, 100, 64)
    torch.testing.assert_close(out, x + y)
    assert "tt.load" in kernel.asm["ttir"]


def test_a_jit_function_survives_pickling_without_its_function() -> None:
    kernel = copy.copy(add_kernel)
    _ = kernel.params
    kernel.fn = None
    kernel.__globals__ = None
    kernel.used_global_vals = None
    kernel._hash_lock = None
    restored = pickle.loads(pickle.dumps(kernel))
    assert restored.arg_names == ["x_ptr", "y_ptr", "out_ptr", "n", "BLOCK"]
    assert [p.num for p in restored.params if p.is_constexpr] == [4]
    assert restored.src == add_kernel.src
