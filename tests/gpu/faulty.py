"""Kernels with a fault each, to see which of them compute-sanitizer notices.

    compute-sanitizer --tool racecheck python -m tests.gpu.faulty no-barrier

Faults that the compiler would not let pass are planted behind its checks.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

# Every tensor is an allocation of its own: the tools know those, and not torch's parts of them.
os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

import tilewright
import tilewright.language as tl
import torch
from tests.corpus.partitioned import gemm
from tests.roles.mutants import enter_unasked
from tilewright.ops.function import find_kernel
from tilewright.ops.rings import RingWaitOp
from tilewright.ops.staging import LocalBarrierOp
from tilewright.targets.nvidia.schedule import CheckProtocol


@tilewright.jit
def past_the_end(x, n, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), 1.0)


@tilewright.jit
def doubled(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) * 2.0)


@tilewright.jit
def half_a_warp_waits(out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    asm = "{ .reg .pred p; setp.lt.s32 p, $1, 16; @p bar.sync 0; mov.b32 $0, $1; }"
    waited = tl.inline_asm_elementwise(
        asm, "=r,r", [i], dtype=tl.int32, is_pure=False, pack=1
    )  # fmt: skip
    tl.store(out + i, waited)


def _floats(*shape: int) -> torch.Tensor:
    return torch.zeros(*shape, device="cuda")


def _past_the_end() -> None:
    past_the_end[(1,)](_floats(1000), 1000, BLOCK=1024)


def _unwritten() -> None:
    doubled[(1,)](torch.empty(1024, device="cuda"), _floats(1024), BLOCK=1024)


def _divergent() -> None:
    out = torch.zeros(32, device="cuda", dtype=torch.int32)
    half_a_warp_waits[(1,)](out, BLOCK=32, num_warps=1)


def _no_barrier() -> None:
    _plant(lambda op: isinstance(op, LocalBarrierOp), _erase)
    _product(descriptors="pointers", bulk_access="never", num_stages=1)


def _map_past_the_end() -> None:
    """A tensor map of more rows than there are."""
    _product(rows=64, num_stages=3)


def _no_wait() -> None:
    _plant(lambda op: isinstance(op, RingWaitOp), enter_unasked)
    # One fill of each slot: with more of them roles that do not wait end up waiting forever.
    _product(num_consumer_groups=1, num_buffers_warp_spec=2)


def _product(rows: int = 128, **options: object) -> None:
    a, b = (torch.ones(n, 128, device="cuda", dtype=torch.float16) for n in (rows, 128))
    c = torch.zeros(128, 128, device="cuda", dtype=torch.float16)
    gemm[(1, 2)](a, b, c, 128, 128, 128, M=128, N=64, K=64, **options)


FAULTS: dict[str, Callable[[], None]] = {
    "past-the-end": _past_the_end,
    "map-past-the-end": _map_past_the_end,
    "unwritten": _unwritten,
    "divergent": _divergent,
    "no-barrier": _no_barrier,
    "no-wait-for-a-slot": _no_wait,
}


def _erase(op: Operation) -> None:
    op.detach()
    op.erase()


def _plant(is_meant: Callable[[Operation], bool], change: Callable[[Operation], None]) -> None:
    """Change ops behind the last check of a compile."""

    def apply(_: CheckProtocol, module: ModuleOp) -> None:
        for op in [op for op in find_kernel(module).walk() if is_meant(op)]:
            change(op)

    CheckProtocol.apply = apply  # type: ignore[method-assign]  # a planted fault


def main(fault: str) -> None:
    """Launch a kernel with a fault."""
    FAULTS[fault]()
    torch.cuda.synchronize()
    print(f"faulty: {fault} was launched")


if __name__ == "__main__":
    main(sys.argv[1])
