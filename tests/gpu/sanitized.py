"""Small launches of every benchmark kernel, to be run under compute-sanitizer.

compute-sanitizer --tool racecheck python -m tests.gpu.sanitized
"""

from __future__ import annotations

import torch
from benchmarks.gpu_gradients import Forward
from benchmarks.gpu_gradients import ours as gradients
from benchmarks.gpu_peers import ours


def main() -> None:
    """Launch each kernel once on odd and even shapes; results are checked elsewhere."""
    kernels = ours()
    x, y = torch.randn(3001, device="cuda"), torch.randn(3001, device="cuda")
    kernels.add[(3,)](x, y, torch.empty_like(x), x.numel(), BLOCK=1024)
    rows = torch.randn(5, 781, device="cuda")
    kernels.softmax[(5,)](rows, torch.empty_like(rows), 781, 781, BLOCK=1024)
    _layer_norm(kernels)
    for num_warps in (4, 8):
        _matmul(kernels, num_warps)
        _attention(kernels, num_warps)
    _roles(kernels)
    for dim in (64, 128):
        gradients(Forward.of((1, 2, 256, dim), True))[0]()
    torch.cuda.synchronize()
    print("sanitized: every kernel was launched")


def _layer_norm(kernels: object) -> None:
    x = torch.randn(6, 1000, device="cuda", dtype=torch.bfloat16)
    weight = torch.randn(1000, device="cuda", dtype=torch.bfloat16)
    mean, rstd = torch.zeros(6, device="cuda"), torch.ones(6, device="cuda")
    out = torch.empty_like(x)
    kernels.layer_norm[(6,)](  # type: ignore[attr-defined]  # a module of kernels
        x, out, weight, weight, mean, rstd, 1000, 1000, 1e-5, BLOCK=1024
    )
    parts = [torch.empty(2, 1000, device="cuda") for _ in range(2)]
    kernels.layer_norm_backward[(2,)](  # type: ignore[attr-defined]  # a module of kernels
        torch.empty_like(x), x, *parts, x, weight, mean, rstd, 1000, 1000, 6, BLOCK=1024
    )


def _matmul(kernels: object, num_warps: int) -> None:
    a, b = (torch.randn(256, 256, device="cuda", dtype=torch.float16) for _ in range(2))
    blocks = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8}
    kernels.matmul[(4,)](  # type: ignore[attr-defined]  # a module of kernels
        a, b, torch.empty_like(a), 256, 256, 256, 256, 256, 256, **blocks, num_warps=num_warps
    )


def _roles(kernels: object) -> None:
    """A product in roles: a ring and the copy engine, as far as the tools see them."""
    a, b = (torch.randn(256, 256, device="cuda", dtype=torch.float16) for _ in range(2))
    blocks = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8}
    kernels.matmul[(4,)](  # type: ignore[attr-defined]  # a module of kernels
        a, b, torch.empty_like(a), 256, 256, 256, 256, 256, 256, **blocks, num_consumer_groups=2
    )


def _attention(kernels: object, num_warps: int) -> None:
    q, k, v = (torch.randn(2, 256, 64, device="cuda", dtype=torch.float16) for _ in range(3))
    for causal in (False, True):
        kernels.attention[(2, 2)](  # type: ignore[attr-defined]  # a module of kernels
            q, k, v, torch.empty_like(q), 256, 0.18, CAUSAL=causal, HEAD_DIM=64,
            BLOCK_M=128, BLOCK_N=64, num_warps=num_warps,
        )  # fmt: skip


if __name__ == "__main__":
    main()
