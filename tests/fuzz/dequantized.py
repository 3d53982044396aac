"""Random products whose right operand is computed in the loop: bytes, nibbles, scales and zeros.

    y = tl.load(b + …)                          int8, uint8, int16, int32, or eight nibbles a word
    z = tl.load(scales + …)                     by column, by row of b, or by group of rows
    acc = tl.dot(x, ((y - zero) * z).to(x.dtype), acc)

All numbers are whole or powers of two and small, so no order of summing shows.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import ml_dtypes
import numpy as np

HEAD = """import tilewright
import tilewright.language as tl


@tilewright.jit
def kernel(a, b, scales, zeros, out, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
           GROUP: tl.constexpr):
    columns = tl.cdiv(n, N)
    i = tl.program_id(0) // columns * M + tl.arange(0, M)
    j = tl.program_id(0) % columns * N + tl.arange(0, N)
    kk = tl.arange(0, K)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        ko = start + kk
"""
TAIL = """        acc = tl.dot(x, w, acc)
    tl.store(out + i[:, None] * n + j[None, :], acc, mask=(i < m)[:, None] & (j < n)[None, :])
"""
FLOATS = {
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float32": np.dtype(np.float32),
}
WEIGHTS = ("int8", "int8", "uint8", "int16", "int32", "nibbles", "halves")
SCALES = ("column", "column", "flat column", "row", "group", "rows of groups", "none")


@dataclass(frozen=True)
class Dequantized:
    """A kernel's text, what its operands are, and its sizes."""

    seed: int
    text: str
    dtype: np.dtype
    weights: str
    is_turned: bool
    sizes: tuple[int, int, int]
    tile: dict[str, int]
    options: dict[str, int]

    @property
    def grid(self) -> tuple[int]:
        """A program for each tile."""
        m, n, _ = self.sizes
        return (-(-m // self.tile["M"]) * -(-n // self.tile["N"]),)

    def arguments(self) -> dict[str, object]:
        """Fresh arguments, the same every time."""
        rng, (m, n, k) = np.random.default_rng(self.seed), self.sizes
        depth, kind = k, self.weights
        if kind in ("nibbles", "halves"):
            depth, kind = (
                -(-k // (8 if kind == "nibbles" else 2)),
                {"nibbles": "int32"}.get(kind, "int8"),
            )
            b = rng.integers(0, 256, (depth, n, np.dtype(kind).itemsize), dtype=np.uint8)
            b = b.view(kind)[..., 0]
        else:
            b = rng.integers(0 if kind[0] == "u" else -8, 8, (depth, n)).astype(kind)
        rows = max(k, 1) + self.tile["K"]
        return {
            "a": rng.integers(-2, 3, (m, k)).astype(self.dtype),
            "b": np.ascontiguousarray(b.T) if self.is_turned else np.ascontiguousarray(b),
            "scales": rng.choice((0.5, 1.0, 2.0), (rows, n)).astype(np.float32),
            "zeros": rng.integers(0, 4, n + self.tile["N"]).astype(np.int32),
            "out": np.full((m, n), 7, np.float32),
            "m": m, "n": n, "k": k, **self.tile,
        }  # fmt: skip


def generate_dequantized(seed: int) -> Dequantized:
    """The program of a seed."""
    rng = random.Random(seed)
    weights, name = rng.choice(WEIGHTS), rng.choice(tuple(FLOATS))
    is_turned = weights not in ("nibbles", "halves") and rng.random() < 0.4
    depth = rng.choice((32, 32, 64))
    tile = {"M": rng.choice((16, 16, 32, 64)), "N": rng.choice((16, 32, 64, 128)), "K": depth}
    tile["GROUP"] = depth * rng.choice((1, 2))
    sizes = (
        rng.choice((1, 16, 17, 40, 64)),
        rng.choice((16, 17, 33, 64, 72, 128, 130)),
        rng.choice((0, 16, 32, 64, 96, 100, 128, 136, 160)),
    )
    options = {"num_warps": rng.choice((1, 2, 4, 4, 8))}
    if rng.random() < 0.5:
        options["num_stages"] = rng.choice((1, 2, 3, 4))
    text = HEAD + _body(rng, weights, is_turned) + TAIL
    return Dequantized(seed, text, FLOATS[name], weights, is_turned, sizes, tile, options)


def _body(rng: random.Random, weights: str, is_turned: bool) -> str:
    """What is loaded, and what becomes of it."""
    rows, columns = "(ko < k)[:, None]", "(j < n)"
    lines = [
        "inside = (i < m)[:, None] & (ko < k)[None, :]",
        "x = tl.load(a + i[:, None] * k + ko[None, :], mask=inside, other=0.0)",
    ]
    packed = {"nibbles": 8, "halves": 2}.get(weights, 1)
    if is_turned:
        lines.append(f"there = {columns}[:, None] & (ko < k)[None, :]")
        lines.append("y = tl.load(b + j[:, None] * k + ko[None, :], mask=there, other=0).T")
    else:
        depth = f"(ko // {packed})" if packed > 1 else "ko"
        lines.append(f"there = {rows} & {columns}[None, :]")
        lines.append(f"y = tl.load(b + {depth}[:, None] * n + j[None, :], mask=there, other=0)")
    if packed > 1:
        lines.append(f"y = (y >> (ko % {packed} * 4)[:, None]) & 15")
        lines.append(f"y = tl.where({rows}, y, 0)")
    if rng.random() < 0.3:
        packed_zeros = "zero = (tl.load(zeros + j // 8) >> (j % 8 * 4)) & 3"
        zeros = ("zero = tl.load(zeros + j, mask=j < n, other=0)", packed_zeros)
        lines.append(rng.choice(zeros))
        lines.append(f"y = tl.where({rows}, y.to(tl.int32) - zero[None, :], 0)")
    lines += _scaled(rng)
    return "".join(f"        {line}\n" for line in lines)


def _scaled(rng: random.Random) -> list[str]:
    """The weights as an operand: scaled before or after they are rounded to its type, or not."""
    kind = rng.choice(SCALES)
    row = "(start // GROUP)" if kind == "group" else "(start // K)"
    by_column = f"z = tl.load(scales + {row} * n + j, mask=j < n, other=0.0)[None, :]"
    loads = {
        "column": by_column,
        "group": by_column,
        "flat column": f"z = tl.load(scales + {row} * n + j[None, :], mask=(j < n)[None, :])",
        "row": "z = tl.load(scales + ko, mask=ko < k, other=0.0)[:, None]",
        "rows of groups": "z = tl.load(scales + (ko // 16)[:, None] * n + j[None, :],"
        " mask=(ko < k)[:, None] & (j < n)[None, :], other=0.0)",
    }
    if kind == "none":
        return ["w = y.to(x.dtype)"]
    rounded = ("(y * z).to(x.dtype)", "(y.to(tl.float32) * z).to(x.dtype)")
    return [loads[kind], f"w = {rng.choice((*rounded, 'y.to(x.dtype) * z.to(x.dtype)'))}"]
