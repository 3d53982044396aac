"""Random products shared by 1 to 32 warps: each group finds its part of either operand.

Operands lie with either dim adjacent, of every width that a product takes; they are small whole
numbers, so that every order of sums gives the same.
"""

from __future__ import annotations

import dataclasses
import random

import ml_dtypes
import numpy as np

import tilewright
import tilewright.language as tl

DTYPES: tuple[tuple[type[np.generic], str, int], ...] = (
    (np.float16, "ieee", 16),
    (ml_dtypes.bfloat16, "ieee", 16),
    (ml_dtypes.float8_e4m3fn, "ieee", 32),
    (np.int8, "ieee", 32),
    (np.float32, "tf32", 16),
)
"""Of operands, the precision asked for, and the least depth."""


@tilewright.jit
def product_kernel(
    a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, a_m, a_k, b_k, b_n,
    PRECISION: tl.constexpr, OUT: tl.constexpr, STEPS: tl.constexpr, IS_COMPUTED: tl.constexpr,
):  # fmt: skip
    """c = a @ b in `STEPS` steps over K, or c = -a @ b of what is negated in registers."""
    rows, columns = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    acc = tl.zeros((M, N), dtype=OUT)
    for step in range(STEPS):
        k = step * K + tl.arange(0, K)
        a = tl.load(a_ptr + rows * a_m + k[None, :] * a_k)
        b = tl.load(b_ptr + k[:, None] * b_k + columns * b_n)
        if IS_COMPUTED:
            a = (-a.to(OUT)).to(a.dtype)
        acc = tl.dot(a, b, acc, input_precision=PRECISION, out_dtype=OUT)
    tl.store(c_ptr + rows * N + columns, acc)


@dataclasses.dataclass(frozen=True)
class ManyWarps:
    """One product: the tile and the depth of a step, its operands and who shares it."""

    seed: int
    extents: tuple[int, int, int]
    dtype: str
    precision: str
    orders: str
    steps: int
    is_computed: bool
    options: dict[str, int]

    def arguments(self) -> tuple[dict[str, object], np.ndarray]:
        """What the kernel takes, and what it must store."""
        (m, n, k), total = self.extents, self.extents[2] * self.steps
        rng = np.random.default_rng(self.seed)
        kind = next(kind for kind, *_ in DTYPES if np.dtype(kind).name == self.dtype)
        a, b = rng.integers(-3, 4, (m, total)), rng.integers(-3, 4, (total, n))
        is_whole = np.dtype(kind).kind == "i"
        expected = (-a if self.is_computed else a) @ b
        rows = self.orders[0] == "n", self.orders[1] == "n"
        laid = [x if is_row else x.T for x, is_row in zip((a, b), rows, strict=True)]
        given = [np.ascontiguousarray(x).astype(kind) for x in laid]
        found = np.zeros((m, n), np.int32 if is_whole else np.float32)
        arguments = {
            "a_ptr": given[0], "b_ptr": given[1], "c_ptr": found, "M": m, "N": n, "K": k,
            "a_m": total if rows[0] else 1, "a_k": 1 if rows[0] else m,
            "b_k": n if rows[1] else 1, "b_n": 1 if rows[1] else total,
            "PRECISION": self.precision, "OUT": tl.int32 if is_whole else tl.float32,
            "STEPS": self.steps, "IS_COMPUTED": self.is_computed,
        }  # fmt: skip
        return arguments, expected


def generate_many_warps(seed: int) -> ManyWarps:
    """The product of a seed."""
    rng = random.Random(seed)
    kind, precision, least = rng.choice((*DTYPES[:2], *DTYPES))
    warps = rng.choice((1, 2, 4, 8, 16, 16, 32, 32))
    # Few rows have groups stand along the columns, each with a part of a panel or with several.
    rows = rng.choice((16, 64, 64, 64, 64, 128))
    columns = rng.choice((16, 64, 128, 128, 256, 256))
    depth = rng.choice((least, 2 * least))
    orders = rng.choice(("nn", "nn", "nn", "tn", "nt", "tt"))
    return ManyWarps(
        *(seed, (rows, columns, depth), np.dtype(kind).name, precision, orders),
        *(rng.choice((1, 2, 3)), rng.random() < 0.3),
        {"num_warps": warps, "num_stages": rng.choice((1, 2, 3))},
    )
