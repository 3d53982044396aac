"""Random products of batches by plain pointers, stored by head, by batch or by rows of all.

What is stored has padding behind rows, behind heads and around all of it, which stays as it is.
Nothing divides anything but now and then. All numbers are whole and small, so no order of summing
shows.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from tilewright.ir.op import Array

HEAD = """import tilewright
import tilewright.language as tl


@tilewright.jit
def kernel(x, y, out, n, m, k, heads, count, batch, head, row, M: tl.constexpr, N: tl.constexpr,
           K: tl.constexpr):
    kk = tl.arange(0, K)
"""
_WALKS = {
    "grid": "z, down, across = tl.program_id(2), tl.program_id(0), tl.program_id(1)\n",
    "heads first": "z, down, across = tl.program_id(0), tl.program_id(2), tl.program_id(1)\n",
    "persistent": "high, wide = tl.cdiv(n, M), tl.cdiv(m, N)\n"
    "for tile in range(tl.program_id(0), count * high * wide, tl.num_programs(0)):\n"
    "    z, down, across = tile // (high * wide), tile // wide % high, tile % wide\n",
    "chunked": "high, wide = tl.cdiv(n, M), tl.cdiv(m, N)\n"
    "each = tl.cdiv(count * high * wide, tl.num_programs(0))\n"
    "begin = tl.program_id(0) * each\n"
    "for tile in range(begin, min(begin + each, count * high * wide)):\n"
    "    z, down, across = tile // (high * wide), tile // wide % high, tile % wide\n",
}
_PERSISTENT = ("persistent", "chunked")
"""Walks of programs that take several tiles."""
_LOADS = """i, j = down * M + tl.arange(0, M), across * N + tl.arange(0, N)
left, right = x + (z * n + i)[:, None] * k, y + (z * k + kk)[:, None] * m + j[None, :]
acc = tl.zeros((M, N), tl.float32)
for start in range(0, k, K):
    a = tl.load(left + (start + kk)[None, :], mask=(i < n)[:, None] & (start + kk < k)[None, :],
                other=0.0)
    b = tl.load(right + start * m, mask=(start + kk < k)[:, None] & (j < m)[None, :], other=0.0)
    acc = tl.dot(a, b, acc)
"""
_PLACES = {
    "heads": "out + z * head + i[:, None] * row + j[None, :]",
    "batches": "out + z // heads * batch + z % heads * head + i[:, None] * row + j[None, :]",
    "wide": "out + z.to(tl.int64) * head + (i[:, None] * row + j[None, :])",
    "rows": "out + (z * n + i)[:, None] * row + j[None, :]",
    "columns first": "out + (z * head + j[None, :]) + i[:, None] * row",
}
"""Where a tile lies: by head, by batch and head, by a row's number in all of it."""
_EPILOGUES = ("acc % 4", "tl.maximum(acc, -1.0) % 3", "tl.where(acc > 0, acc % 8, 2.0)")


@dataclass(frozen=True)
class Batched:
    """A kernel's text, a launch's sizes and strides, and its options."""

    seed: int
    text: str
    sizes: dict[str, int]
    tile: dict[str, int]
    front: int
    length: int
    out: str
    grid: tuple[int, ...]
    options: dict[str, object]

    def arguments(self) -> dict[str, object]:
        """Fresh arguments, the same every time, without options."""
        rng, sizes = np.random.default_rng(self.seed), self.sizes
        count, n, m, k = (sizes[name] for name in ("count", "n", "m", "k"))

        def numbers(*shape: int) -> Array:
            return rng.integers(-2, 3, shape).astype(np.float16)

        everything = np.full(self.length, 7, self.out)
        given = {"x": numbers(count, n, max(k, 1)), "y": numbers(count, max(k, 1), m)}
        return {**given, "out": everything[self.front :], **sizes, **self.tile}


def generate_batched(seed: int) -> Batched:
    """The program of a seed."""
    rng = random.Random(seed)
    groups = rng.choice((0, 1, 1, 2, 2, 2, 3, 3, 3))
    rows = {0: 64, 1: 64, 2: 128, 3: 192}[groups]
    tile = {"M": rows, "N": rng.choice((16, 32, 64, 64, 128)), "K": rng.choice((16, 32, 64))}
    heads, batches = rng.randint(1, 3), rng.randint(1, 2)
    n = rng.choice((1, 40, rows - 1, rows, rows + 9, 2 * rows))
    # Rows that three groups share are none without roles, so their launches are friendlier.
    is_friendly = groups == 3 or rng.random() < 0.7
    m = rng.choice((8, 24, 32, 64, 64, 128, *(() if is_friendly else (129,))))
    k = rng.choice((8, 16, 40, 64, 72)) if is_friendly else rng.choice((0, 1, 24, 41))
    sizes = {"n": n, "m": m, "k": k, "heads": heads, "count": heads * batches}
    place = rng.choice(tuple(_PLACES))
    sizes |= _strides(rng, sizes, place, is_friendly)
    walk = rng.choice(tuple(_WALKS))
    high, wide = -(-n // rows), -(-m // tile["N"])
    grid = {"grid": (high, wide, heads * batches), "heads first": (heads * batches, wide, high)}
    front = rng.choice((0, 8, 16, 64)) if is_friendly else rng.choice((0, 8, 3))
    # In front of the last element and behind it, rows and heads of padding.
    last = (
        (batches - 1) * sizes["batch"]
        + (heads * batches) * sizes["head"]
        + n * sizes["row"] * (heads * batches + 1)
    )
    return Batched(
        seed,
        _text(rng, walk, place, masks_rows=n % rows > 0, masks_columns=m % tile["N"] > 0),
        sizes,
        tile,
        front,
        front + last + 256,
        rng.choice(("float16", "float16", "float32")),
        grid.get(walk, (rng.randint(1, 3),)),
        _options(rng, groups),
    )


def _strides(
    rng: random.Random, sizes: dict[str, int], place: str, is_friendly: bool
) -> dict[str, int]:
    """Elements between batches, heads and rows; heads may lie between the rows of all."""
    n, m, heads = sizes["n"], sizes["m"], sizes["heads"]
    pad = rng.choice((0, 0, 8, 16) if is_friendly else (0, 8, 1))
    if place not in ("rows", "batches") and rng.random() < 0.4:
        width = m + pad
        return {"batch": 0, "head": width, "row": width * sizes["count"]}
    row = m + pad
    head = n * row + rng.choice((0, 0, 8, 40) if is_friendly else (0, 8, 3))
    return {"batch": heads * head + rng.choice((0, 16)), "head": head, "row": row}


def _options(rng: random.Random, groups: int) -> dict[str, object]:
    options: dict[str, object] = {"num_consumer_groups": groups}
    if not groups:
        options["num_stages"] = rng.choice((1, 3))
    elif rng.random() < 0.3:
        options["num_buffers_warp_spec"] = rng.randint(1, 3)
    return options


def _text(
    rng: random.Random, walk: str, place: str, *, masks_rows: bool, masks_columns: bool
) -> str:
    rows, columns = "(i < n)[:, None]", "(j < m)[None, :]"
    masks = [rows] if masks_rows or rng.random() < 0.5 else []
    masks += [columns] if masks_columns or rng.random() < 0.5 else []
    mask = f", mask={' & '.join(masks)}" if masks else ""
    store = f"tl.store({_PLACES[place]}, {rng.choice(_EPILOGUES)}{mask})\n"
    body = _LOADS + store
    if walk in _PERSISTENT:
        body = "".join(f"    {line}\n" for line in body.splitlines())
    lines = (_WALKS[walk] + body).splitlines()
    return HEAD + "".join(f"    {line}\n" for line in lines)
