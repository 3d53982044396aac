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
from benchmarks.gpu_timing import Run, close_to, compared, fastest, measure
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
    library = cudnn(forward)
    made = choices(forward)
    for own, gradients in made:
        own()
        for found, expected in zip(gradients, library(), strict=True):
            close_to(found, expected, _TOLERANCE)
    own = fastest([own for own, _ in made])
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


def ours(forward: Forward, queries: int | None = None) -> tuple[Run, tuple[torch.Tensor, ...]]:
    """Our three kernels, and the gradients of q, k and v that they write; `queries` at a time."""
    module = gpu_peers.ours()
    batch, heads, length, dim = forward.q.shape
    queries = queries or blocks_of(forward)[0]
    padded, all_heads = -(-length // queries) * queries, batch * heads
    delta, sums = (torch.empty(all_heads * padded, device="cuda") for _ in range(2))
    acc = torch.empty(forward.q.shape, device="cuda")
    dq, dk, dv = (torch.empty_like(forward.q) for _ in range(3))
    made = module.TensorDescriptor.from_tensor
    by_head = [
        made(tensor.view(-1, length, dim), [1, queries, dim])
        for tensor in (forward.q, forward.grad, acc)
    ]
    keys = [made(t.view(-1, dim), [KEYS, dim]) for t in (forward.k, forward.v, dk, dv)]
    numbers = [made(tensor, [queries]) for tensor in (sums, delta)]
    descriptors = by_head[0], *keys[:2], by_head[1], *numbers, by_head[2], *keys[2:]
    scale = 1 / math.sqrt(dim)
    sizes = {"CAUSAL": forward.is_causal, "HEAD_DIM": dim, "BLOCK_M": queries, "BLOCK_N": KEYS}

    def run() -> None:
        module.prepare_gradients[(-(-padded // 64), all_heads)](
            *(forward.out, forward.grad, forward.sums, delta, sums, acc, length, padded),
            **{"HEAD_DIM": dim, "ROWS": 64, "num_warps": 8},
        )
        module.attention_gradients[(length // KEYS, all_heads)](
            *descriptors, length, padded, scale, scale * LOG2_E, **sizes, **ROLES
        )
        module.finish_gradients[(-(-acc.numel() // 8192),)](
            *(acc, dq, scale, acc.numel()), BLOCK=8192, num_warps=8
        )

    return run, (dq, dk, dv)


def choices(forward: Forward) -> list[tuple[Run, tuple[torch.Tensor, ...]]]:
    """Ours with each number of queries at a time."""
    return [ours(forward, queries) for queries in blocks_of(forward)]


def blocks_of(forward: Forward) -> tuple[int, ...]:
    """The numbers of queries of which two groups of warps hold all sums in registers."""
    if forward.q.shape[-1] < 128:
        return (128,)
    return (64,) if forward.is_causal else (64, 80)
