"""Random products of one batch and head through descriptors that have all dims of a tensor.

Blocks have one element of a batch and of a head, wherever these stand, and are reshaped to the tile
that is computed on. Nothing divides anything but now and then. All numbers are whole and small, so
no order of summing shows.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

HEAD = """import tilewright
import tilewright.language as tl


@tilewright.jit
def kernel(x, y, out, B, H, n, m, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    z, i, j = tl.program_id(2), tl.program_id(0) * M, tl.program_id(1) * N
    b, h = z // H, z % H
"""
_PLACES = ("bhrc", "brhc", "rbhc", "hrbc", "hrc", "rhc", "brc")
"""The order of a tensor's dims: batch, head, rows and columns."""


@dataclass(frozen=True)
class SingleDims:
    """A kernel's text, a launch's sizes, and its options."""

    seed: int
    text: str
    batches: int
    heads: int
    sizes: tuple[int, int, int]
    orders: tuple[str, str, str]
    is_turned: bool
    tile: dict[str, int]
    grid: tuple[int, int, int]
    options: dict[str, object]

    def arguments(self) -> dict[str, object]:
        """Fresh arguments, the same every time, without options."""
        rng, (n, m, k) = np.random.default_rng(self.seed), self.sizes
        right = (m, k) if self.is_turned else (k, m)
        shapes = [
            self._shape(order, *extents)
            for order, extents in zip(self.orders, ((n, k), right, (n, m)), strict=True)
        ]
        x, y = (rng.integers(-2, 3, shape).astype(np.float16) for shape in shapes[:2])
        given = {"x": x, "y": y, "out": np.full(shapes[2], 7, np.float16)}
        return {**given, "B": self.batches, "H": self.heads, "n": n, "m": m, "k": k, **self.tile}

    def _shape(self, order: str, rows: int, columns: int) -> tuple[int, ...]:
        extents = {"b": self.batches, "h": self.heads, "r": rows, "c": columns}
        return tuple(extents[dim] for dim in order)


def generate_single_dims(seed: int) -> SingleDims:
    """The program of a seed."""
    rng = random.Random(seed)
    groups = rng.choice((0, 0, 1, 2, 2, 3))
    rows = {0: rng.choice((32, 64, 128)), 1: 64, 2: 128, 3: 192}[groups]
    tile = {"M": rows, "N": rng.choice((16, 32, 64, 128)), "K": rng.choice((16, 32, 64))}
    orders = tuple(rng.choice(_PLACES) for _ in range(3))
    # What has no batch or no head is one of all.
    has = [all(dim in order for order in orders) for dim in "bh"]
    batches, heads = (rng.randint(1, 3) if there else 1 for there in has)
    n = rng.choice((1, 17, rows, rows + 8, 2 * rows))
    m, k = 8 * rng.choice((1, 3, 8, 9)), 8 * rng.choice((1, 2, 5, 8, 9))
    is_turned = rng.random() < 0.5
    grid = (-(-n // rows), -(-m // tile["N"]), batches * heads)
    options: dict[str, object] = {"num_consumer_groups": groups}
    if not groups:
        options = {"num_stages": rng.choice((1, 2, 4))}
    # 192 rows are shared by groups that multiply, and by nobody who sums all of them.
    text = _text(rng, orders, is_turned, may_sum=groups < 3)
    return SingleDims(
        seed, text, batches, heads, (n, m, k), orders, is_turned, tile, grid, options
    )  # fmt: skip


def _text(rng: random.Random, orders: tuple[str, ...], is_turned: bool, *, may_sum: bool) -> str:
    right = ("m", "k", "N", "K", "j", "s") if is_turned else ("k", "m", "K", "N", "s", "j")
    sides = (("n", "k", "M", "K", "i", "s"), right, ("n", "m", "M", "N", "i", "j"))
    lines: list[str] = []
    blocks: list[str] = []
    starts: list[str] = []
    for name, order, side in zip(("x", "y", "out"), orders, sides, strict=True):
        of_dim = {"b": ("B", "1", "b"), "h": ("H", "1", "h")}
        of_dim |= {"r": side[::2], "c": side[1::2]}
        extents, block, start = (
            [of_dim[dim][which] for dim in order] for which in range(3)
        )  # fmt: skip
        strides = [" * ".join(extents[dim + 1 :]) or "1" for dim in range(len(order))]
        lists = (", ".join(part) for part in (extents, strides, block))
        lines.append(
            f"of_{name} = tl.make_tensor_descriptor({name}, [{next(lists)}], [{next(lists)}],"
            f" [{next(lists)}])"
        )
        blocks.append(", ".join(block))
        starts.append(", ".join(start))
    right_tile, turn = ("N, K", ".T") if is_turned else ("K, N", "")
    lines += [
        "acc = tl.zeros((M, N), tl.float32)",
        "for s in range(0, k, K):",
        f"    left = of_x.load([{starts[0]}])",
        f"    right = of_y.load([{starts[1]}]).reshape({right_tile}){turn}",
        "    acc = tl.dot(left.reshape(M, K), right, acc)",
    ]
    if may_sum and rng.random() < 0.15:  # what is taken as it is, too, stays a block
        lines.append("    acc += tl.sum(left.to(tl.float32)) % 3")
    value = rng.choice(("acc % 4", "tl.maximum(acc, -1.0) % 3")) + ").to(tl.float16"
    lines.append(f"of_out.store([{starts[2]}], ({value}).reshape({blocks[2]}))")
    return HEAD + "".join(f"    {line}\n" for line in lines)
