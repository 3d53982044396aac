"""Random attentions over pages and over rows that a table names; nothing is asked for.

Most tiles are as large as those that run in roles unasked. In most programs all numbers are whole
and small, so no order of summing shows; the others have the softmax.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from tilewright.ir.op import Array

HEAD = """import tilewright
import tilewright.language as tl


@tilewright.jit
def kernel(q, keys, values, table, lengths, bias, out, length, programs, window, M: tl.constexpr,
           N: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr):
    d = tl.arange(0, D)
"""
_WHOLE = """top = tl.maximum(highest, tl.max(scores, 1) % 16)
p = (scores + top[:, None]) % 4
acc = tl.dot(p.to(tl.float16), v, acc % 64)
highest = top
total += 1.0
"""
_SOFTMAX = """top = tl.maximum(highest, tl.max(scores, 1))
p = tl.exp2(scores - top[:, None])
rescale = tl.exp2(highest - top)
total = total * rescale + tl.sum(p, 1)
acc = tl.dot(p.to(tl.float16), v, acc * rescale[:, None])
highest = top
"""


@dataclass(frozen=True)
class UnaskedAttention:
    """A kernel's text and a launch's sizes."""

    seed: int
    text: str
    tile: dict[str, int]
    length: int
    heads: int
    grid: tuple[int, int]
    is_whole: bool

    def arguments(self) -> dict[str, object]:
        """Fresh arguments, the same every time."""
        rng = np.random.default_rng(self.seed)
        page, d = self.tile["PAGE"], self.tile["D"]
        pages = -(-max(self.length, 1) // page) + 2
        pool = pages * 2

        def halves(*shape: int) -> Array:
            if self.is_whole:
                return rng.integers(-2, 3, shape).astype(np.float16)
            return (rng.standard_normal(shape) * 0.5).astype(np.float16)

        table = np.stack([rng.permutation(pool)[:pages] for _ in range(self.heads)])
        lengths = rng.integers(0, self.length + 1, self.heads)
        return {
            "q": halves(self.heads, max(self.length, 1), d),
            "keys": halves(pool * page, d), "values": halves(pool * page, d),
            "table": table.astype(np.int32), "lengths": lengths.astype(np.int32),
            "bias": rng.integers(-3, 4, pool * page + 128).astype(np.float32),
            "out": np.full((self.heads, max(self.length, 1), d), 7.0, np.float32),
            "length": self.length, "programs": self.grid[0], "window": 100, **self.tile,
        }  # fmt: skip


def generate_attention(seed: int) -> UnaskedAttention:
    """The program of a seed."""
    rng = random.Random(seed)
    tile = {"M": 128, "N": 128, "D": 128, "PAGE": rng.choice((1, 8, 16, 16, 32, 64))}
    if rng.random() < 0.1:
        tile |= rng.choice(({"N": 64}, {"D": 64}, {"N": 64, "D": 64}, {"M": 64}))
    length = rng.choice((0, 1, 17, 64, 127, 128, 129, 200, 256, 300))
    is_whole = rng.random() < 0.7
    text, is_persistent = _text(rng, tile["PAGE"], is_whole=is_whole)
    heads = rng.choice((1, 2)) if length <= tile["M"] else 1
    programs = rng.randint(1, 2) if is_persistent else max(1, -(-length // tile["M"]))
    return UnaskedAttention(seed, text, tile, length, heads, (programs, heads), is_whole)


def _text(rng: random.Random, page: int, *, is_whole: bool) -> tuple[str, bool]:
    """A kernel, and whether its programs go from tile to tile."""
    head = "h = tl.program_id(1)\nn = length\n"
    if rng.random() < 0.08:
        head = "h = tl.program_id(1)\nn = tl.load(lengths + h)\n"
    head += "pages = table + h * (tl.cdiv(tl.maximum(length, 1), PAGE) + 2)\n"
    is_persistent = rng.random() < 0.06
    body = _tile(rng, page, is_whole=is_whole)
    if is_persistent:
        head += "for tile in range(tl.program_id(0), tl.cdiv(n, M), programs):\n"
        return HEAD + _indented(head + _indented("first = tile * M\n" + body)), True
    head += "first = tl.program_id(0) * M\n"
    if rng.random() < 0.2:
        head += "if first >= n:\n    return\n"
    return HEAD + _indented(head + body), False


def _tile(rng: random.Random, page: int, *, is_whole: bool) -> str:
    row = "(h * tl.maximum(length, 1) + i)[:, None] * D + d[None, :]"
    text = (
        "i = first + tl.arange(0, M)\n"
        f"x = tl.load(q + {row}, mask=(i < n)[:, None], other=0.0)\n"
        "acc = tl.zeros((M, D), tl.float32)\n"
        "total, highest = tl.zeros((M,), tl.float32), tl.full((M,), -1000.0, tl.float32)\n"
    )
    order = rng.choice((*("all", "causal", "window") * 3, "causal twice"))
    step = _step(rng, page, is_whole=is_whole)
    mask = "tl.where({}, scores, -1000.0)"
    ends, inner = "(j < n)[None, :]", "(i[:, None] >= j[None, :])"
    near = f"{inner} & (i[:, None] - j[None, :] < window)"
    if order == "all":
        text += _loop("0, n, N", step, mask.format(ends))
    elif order == "causal":
        text += _loop("0, tl.minimum(n, first + M), N", step, mask.format(f"{inner} & {ends}"))
    elif order == "causal twice":
        text += "middle = tl.minimum(first // N * N, n // N * N)\n"
        text += _loop("0, middle, N", step, "scores")
        last = "middle, tl.minimum(n, first + M), N"
        text += _loop(last, step, mask.format(f"{inner} & {ends}"))
    else:
        text += "low = tl.maximum(first - window + 1, 0) // N * N\n"
        last = "low, tl.minimum(n, first + M), N"
        text += _loop(last, step, mask.format(f"{near} & {ends}"))
    value = "acc + total[:, None]" if is_whole else "acc / tl.maximum(total, 1e-20)[:, None]"
    return text + f"tl.store(out + {row}, {value}, mask=(i < n)[:, None])\n"


def _loop(bounds: str, step: str, masked: str) -> str:
    return f"for start in range({bounds}):\n" + _indented(step.replace("MASKED", masked))


def _step(rng: random.Random, page: int, *, is_whole: bool) -> str:
    """One tile of keys: where it lies, its scores, the sum of its values."""
    look = ", mask=j < n, other=0"
    text = "j = start + tl.arange(0, N)\n"
    if page == 1:
        text += f"at = tl.load(pages + j{look})\n"
    else:
        text += f"at = tl.load(pages + j // PAGE{look}) * PAGE + j % PAGE\n"
    wide = rng.choice(("at", "at", "at.to(tl.int64)"))
    text += f"place = {wide}[:, None] * D + d[None, :]\n"
    load = "tl.load({} + place, mask=(j < n)[:, None], other=0.0)"
    if rng.random() < 0.06:
        text += "k = tl.load(keys + at[None, :] * D + d[:, None], mask=(j < n)[None, :], other=0.0)"
        text += "\nscores = tl.dot(x, k)"
    else:
        text += f"k = {load.format('keys')}\nscores = tl.dot(x, k.T)"
    text += rng.choice(("\n", " * 0.5\n" if not is_whole else "\n"))
    biased = rng.choice(("", "", "", "bias + at", "bias + j"))
    if biased:
        text += f"scores += tl.load({biased}, mask=j < n, other=0.0)[None, :]\n"
    text += "scores = MASKED\n"
    if rng.random() < 0.05:
        text += "if start >= 128:\n    scores += 1.0\n"
    return text + f"v = {load.format('values')}\n" + (_WHOLE if is_whole else _SOFTMAX)


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())
