"""Products in roles, right or with an op of a ring or a turn left out, for waits with a bound.

Run as a program with `release` or `turn` it launches a broken one on the GPU and prints the error:
the process loses its context, so a test starts a process for it.
"""

from __future__ import annotations

import sys

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

import tilewright
import tilewright.language as tl
from tilewright.ops.function import find_kernel
from tilewright.ops.rings import RingReleaseOp
from tilewright.ops.roles import TurnPassOp
from tilewright.runtime.tensor_descriptor import TensorDescriptor
from tilewright.support.errors import Deadlock
from tilewright.targets.nvidia.schedule import CheckProtocol

BF16 = ml_dtypes.bfloat16
BLOCKS = {"BM": 128, "BN": 128, "BK": 64}
ROLES = {"num_consumer_groups": 2, "num_buffers_warp_spec": 2}
SPLIT = {"schedule": "roles load | math x2 split m; ring ab tiles load#0 load#1 slots 2"}
"""Both replicas work on each tile, so that both wait for what is missing."""
TURNS = {
    "schedule": "roles load | math x2 split tiles; "
    "ring ab tiles load#0 load#1 slots 2 tma release wait"
}
M, N, K = 256, 128, 64 * 5
GRID = (M // 128, N // 128)


@tilewright.jit
def product(x, y, z, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for start in tl.range(0, k, BK):
        total = tl.dot(x.load([row, start]), y.load([start, column]), total)
    z.store([row, column], total.to(tl.bfloat16))


@tilewright.jit
def tiles(x, y, z, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    for row in tl.range(0, x.shape[0], BM):
        total = tl.zeros((BM, BN), tl.float32)
        for start in tl.range(0, k, BK):
            total = tl.dot(x.load([row, start]), y.load([start, 0]), total)
        z.store([row, 0], total.to(tl.bfloat16))


def forget_a_release(_: CheckProtocol, module: ModuleOp) -> None:
    """What stands in for the check of the protocol: it drops what the check would miss."""
    _forget(module, RingReleaseOp)


def forget_a_turn(_: CheckProtocol, module: ModuleOp) -> None:
    """The same, of a turn that is not passed on."""
    _forget(module, TurnPassOp)


def _forget(module: ModuleOp, kind: type[Operation]) -> None:
    forgotten = next(op for op in find_kernel(module).walk() if isinstance(op, kind))
    forgotten.detach()
    forgotten.erase()


def operands() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A, B and their product in the dtype of the result."""
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-3, 4, shape).astype(BF16) for shape in ((M, K), (K, N)))
    return a, b, (a.astype(np.float32) @ b.astype(np.float32)).astype(BF16)


def described(*arrays: object) -> list[TensorDescriptor]:
    """Descriptors of A, B and C in their blocks."""
    blocks = ([128, 64], [64, 128], [128, 128])
    return [TensorDescriptor.from_tensor(a, b) for a, b in zip(arrays, blocks, strict=True)]


FAULTS = {
    "release": (forget_a_release, product, GRID, SPLIT),
    "turn": (forget_a_turn, tiles, (1,), TURNS),
}


def main(fault: str) -> None:
    """Launch a broken product on the GPU; exit with 3 once it is reported."""
    import torch

    forget, kernel, grid, options = FAULTS[fault]
    CheckProtocol.apply = forget  # type: ignore[method-assign]  # a planted fault
    a, b = (torch.randn(shape, device="cuda").bfloat16() for shape in ((M, K), (K, N)))
    c = torch.empty(M, N, device="cuda", dtype=torch.bfloat16)
    kernel[grid](*described(a, b, c), K, **BLOCKS, **options, deadlock_seconds=1)
    try:
        torch.cuda.synchronize()
    except RuntimeError as error:
        print("torch:", str(error).splitlines()[0])
    try:
        kernel[grid](*described(a, b, c), K, **BLOCKS, **options, deadlock_seconds=1)
    except Deadlock as error:
        print(error)
        sys.exit(3)


if __name__ == "__main__":
    main(sys.argv[1])
