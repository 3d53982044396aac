"""Attention backward in roles beside cuDNN: all of it, with what comes before and behind.

Ours is three kernels: the sums of `out * grad` with the zeros that gradients of queries are added
to, the gradients, and those of queries rounded. cuDNN's is the backward pass of torch's attention.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from torch.nn.attention import SDPBackend, sdpa_kernel

import torch
from benchmarks import gpu_peers
from benchmarks.gpu_matrix import LOG2_E
from benchmarks.gpu_timing import Run, close_to, compared, measure
from benchmarks.harness import Row

FAMILY = "gpu gradients"
ATTENTIONS = (
    ((8, 16, 8192, 128), False, 1.08),
    ((8, 16, 8192, 128), True, None),
    ((4, 32, 4096, 128), False, None),
    ((4, 32, 4096, 128), True, 1.03),
    ((4, 32, 4096, 64), False, 0.95),
    ((4, 32, 4096, 64), True, None),
)
KEYS = 128
ROLES = {"num_consumer_groups": 2, "reg_inc_consumer": 240, "reg_dec_producer": 24}
"""Source: no spills at heads of 128 and of 64, where 232 registers spill 52 bytes (ptxas 13.0)."""
_TOLERANCE = 1e-2


@dataclass(frozen=True)
class Forward:
    """What a backward pass starts from, all [batch, heads, length, dim] but for `sums`."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    grad: torch.Tensor
    out: torch.Tensor
    sums: torch.Tensor
    is_causal: bool

    @classmethod
    def of(cls, shape: tuple[int, int, int, int], is_causal: bool) -> Forward:
        """Attention at random; its sums are log2, as ours keeps them."""
        q, k, v, grad = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(4))
        forward = torch.ops.aten._scaled_dot_product_flash_attention
        out, sums, *_ = forward(q, k, v, 0.0, is_causal)
        return cls(q, k, v, grad, out.contiguous(), (sums * LOG2_E).contiguous(), is_causal)


def rows() -> Iterator[Row]:
    """A row for each shape."""
    for shape, is_causal, bar in ATTENTIONS:
        yield row(shape, is_causal, bar)


def row(shape: tuple[int, int, int, int], is_causal: bool, bar: float | None) -> Row:
    """Ours beside cuDNN, with the gradients compared."""
    forward = Forward.of(shape, is_causal)
    own, gradients = ours(forward)
    library = cudnn(forward)
    own()
    for found, expected in zip(gradients, library(), strict=True):
        close_to(found, expected, _TOLERANCE)
    batch, heads, length, dim = shape
    # Five products of two halves where a mask leaves half of the scores.
    flops = 10 * batch * heads * length**2 * dim / 1e12 * (0.5 if is_causal else 1)
    work = f"attention backward bfloat16 {shape}{' causal' if is_causal else ''}, in roles"
    mine, theirs = measure(own, library)
    return compared(FAMILY, work, mine, theirs, bar, flops, "TFLOP/s", "cuDNN")


def cudnn(forward: Forward) -> Run:
    """The library's backward pass; its result is the gradients."""
    leaves = [t.detach().requires_grad_() for t in (forward.q, forward.k, forward.v)]
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        attention = torch.nn.functional.scaled_dot_product_attention
        out = attention(*leaves, is_causal=forward.is_causal)
    return lambda: torch.autograd.grad(out, leaves, forward.grad, retain_graph=True)


def ours(forward: Forward) -> tuple[Run, tuple[torch.Tensor, ...]]:
    """Our three kernels, and the gradients of q, k and v that they write."""
    module = gpu_peers.ours()
    batch, heads, length, dim = forward.q.shape
    queries = 64 if dim >= 128 else 128
    total = forward.q.numel()
    delta, acc = torch.empty_like(forward.sums), torch.empty(total, device="cuda")
    dq, dk, dv = (torch.empty_like(forward.q) for _ in range(3))
    made = module.TensorDescriptor.from_tensor
    blocks = (
        *((forward.q, queries), (forward.k, KEYS), (forward.v, KEYS), (forward.grad, queries)),
        *((acc, queries), (dk, KEYS), (dv, KEYS)),
    )
    tiles = [made(tensor.view(-1, dim), [extent, dim]) for tensor, extent in blocks]
    numbers = [made(tensor.view(-1), [queries]) for tensor in (forward.sums, delta)]
    scale = 1 / math.sqrt(dim)
    sizes = {"CAUSAL": forward.is_causal, "HEAD_DIM": dim, "BLOCK_M": queries, "BLOCK_N": KEYS}

    def run() -> None:
        module.prepare_gradients[(total // dim // 64,)](
            *(forward.out, forward.grad, delta, acc), HEAD_DIM=dim, ROWS=64, num_warps=8
        )
        module.attention_gradients[(length // KEYS, batch * heads)](
            *(*tiles[:4], *numbers, *tiles[4:], length, scale, scale * LOG2_E), **sizes, **ROLES
        )
        module.finish_gradients[(-(-total // 8192),)](
            *(acc, dq, scale, total), BLOCK=8192, num_warps=8
        )

    return run, (dq, dk, dv)
