"""Random products of gathered rows, as mixtures of experts have them; nothing is asked for.

Tiles are as large as those that run in roles unasked. All numbers are whole and small, so no order
of summing shows.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from tilewright.ir.op import Array

HEAD = """import tilewright
import tilewright.language as tl


@tilewright.jit
def kernel(a, b, names, experts, bias, scale, out, m, n, k, tokens, M: tl.constexpr,
           N: tl.constexpr, K: tl.constexpr):
    kk = tl.arange(0, K)
"""
_WALKS = {
    "grid": "down, across = tl.program_id(0), tl.program_id(1)\n",
    "flat": "columns = tl.cdiv(n, N)\n"
    "down, across = tl.program_id(0) // columns, tl.program_id(0) % columns\n",
    "grouped": "columns, first = tl.cdiv(n, N), tl.program_id(0) // (2 * tl.cdiv(n, N)) * 2\n"
    "high = tl.minimum(tl.cdiv(m, M) - first, 2)\n"
    "down = first + tl.program_id(0) % (2 * columns) % high\n"
    "across = tl.program_id(0) % (2 * columns) // high\n",
    "persistent": "columns = tl.cdiv(n, N)\n"
    "for tile in range(tl.program_id(0), tl.cdiv(m, M) * columns, tl.num_programs(0)):\n"
    "    down, across = tile // columns, tile % columns\n",
    "chunked": "columns, tiles = tl.cdiv(n, N), tl.cdiv(m, M) * tl.cdiv(n, N)\n"
    "each = tl.cdiv(tiles, tl.num_programs(0))\n"
    "begin = tl.program_id(0) * each\n"
    "for tile in range(begin, tl.minimum(begin + each, tiles)):\n"
    "    down, across = tile // columns, tile % columns\n",
}
_PERSISTENT = ("persistent", "chunked")
"""Walks of programs that take several tiles."""
_NAMED = {
    "masked": "at = tl.load(names + i, mask=i < m, other=0)\n",
    "wrapped": "at = tl.load(names + i % m)\n",
    "shared": "at = tl.load(names + i, mask=i < m, other=0) // 2\n",
    "padded": "token = tl.load(names + i)\nvalid = token < 2 * tokens\nat = token // 2\n",
    "negative": "token = tl.load(names + i)\nvalid = token >= 0\nat = tl.maximum(token, 0) // 2\n",
    "unclamped": "token = tl.load(names + i)\nvalid = token >= 0\nat = token\n",
}
"""How rows are named: by `names`, one or a half of it for each, or none where there is padding."""


@dataclass(frozen=True)
class UnaskedProduct:
    """A kernel's text, its sizes, and how its rows are named."""

    seed: int
    text: str
    named: str
    gathers: str
    m: int
    n: int
    k: int
    tile: dict[str, int]
    dtype: np.dtype
    index: str
    out: str
    grid: tuple[int, ...]
    is_turned: bool
    is_scattered: bool

    @property
    def has_pads(self) -> bool:
        """Whether some rows are none."""
        return self.named in ("padded", "negative", "unclamped")

    def arguments(self) -> dict[str, object]:
        """Fresh arguments, the same every time; `out` has room around what is stored."""
        rng = np.random.default_rng(self.seed)
        tokens, m, n, k = self.m + 5, self.m, self.n, self.k
        top = 1 if self.named in ("masked", "wrapped", "unclamped") else 2

        def numbers(*shape: int) -> Array:
            return rng.integers(-2, 3, shape).astype(self.dtype)

        a, b = numbers(tokens, k), numbers(2, n, k) if self.is_turned else numbers(2, k, n)
        rows = {"b": n, "b along k": max(k, 1)}.get(self.gathers, tokens)
        length = -(-max(m, n, k, 1) // 128) * 128 + 128
        names = rng.integers(0, rows * top, length)
        if self.is_scattered:
            names = rng.permutation(tokens * top)[: max(m, 1)]
            names = np.concatenate([names, np.full(length - len(names), 0)])
        if self.has_pads:
            none = -1 if self.named != "padded" else 2 * tokens
            names[m:] = none
            names[:m][rng.random(m) < 0.2] = none
        experts = rng.choice((0, 1, 1, -1), 64).astype(np.int32)
        return {
            "a": a, "b": b, "names": names.astype(self.index), "experts": experts,
            "bias": rng.integers(-4, 5, max(n, 1)).astype(np.float32),
            "scale": rng.choice((0.5, 1.0, 2.0), length * 2).astype(np.float32),
            "out": np.full((2 * tokens, n), 7, self.out),
            "m": m, "n": n, "k": k, "tokens": tokens, **self.tile,
        }  # fmt: skip


def generate_product(seed: int) -> UnaskedProduct:
    """The program of a seed."""
    rng = random.Random(seed)
    walk = rng.choice(("grid", "grid", "flat", "flat", "grouped", "grouped", *_PERSISTENT))
    gathers = rng.choice((*"aaaaaaaa", "b", "b", "b along k", "both"))
    names = ("masked", "wrapped", "shared", *(("padded", "negative", "unclamped") * 2))
    named = rng.choice(names if gathers == "a" else ("masked", "wrapped"))
    is_scattered = gathers == "a" and named in ("padded", "negative") and rng.random() < 0.12
    tile = {"M": 128, "N": rng.choice((128, 128, 128, 256)), "K": rng.choice((32, 64, 64))}
    if rng.random() < 0.04:
        tile |= {"N": 64}
    sizes = (1, 40, 127, 128, 130, 200)
    m, n = rng.choice(sizes), 8 * rng.choice((1, 9, 16, 17, 25))
    k = rng.choice((0, 8, 16, 40, 64, 72, 104, 128, 200))
    k = k if rng.random() < 0.95 else k + 4
    is_turned = gathers == "b" or (gathers != "b along k" and rng.random() < 0.4)
    is_exact = k % tile["K"] == 0 and rng.random() < 0.5
    has_boxes = k > 0 and k % 8 == 0 and not is_scattered and gathers in ("a", "b")
    has_boxes = has_boxes and rng.random() < (0.4 if walk in _PERSISTENT else 0.2)
    text = _Writer(rng, walk, gathers, named, is_turned, is_scattered, is_exact, has_boxes).text()
    tiles = -(-m // tile["M"]), -(-n // tile["N"])
    grid = tiles if walk == "grid" else (tiles[0] * tiles[1],)
    if walk in _PERSISTENT:
        grid = (rng.randint(1, 3),)
    dtype = np.dtype(rng.choice((np.float16, np.float16, ml_dtypes.bfloat16)))
    out = rng.choice(("float32", "float16"))
    index = rng.choice(("int32", "int32", "int64"))
    return UnaskedProduct(
        seed, text, named, gathers, m, n, k, tile, dtype, index, out, grid, is_turned, is_scattered
    )


@dataclass(frozen=True)
class _Writer:
    rng: random.Random
    walk: str
    gathers: str
    named: str
    is_turned: bool
    is_scattered: bool
    is_exact: bool
    has_boxes: bool

    def text(self) -> str:
        """The kernel."""
        head, body = _WALKS[self.walk], self._tile()
        if self.has_boxes:
            made = "b, [n, k], [k, 1], [N, K]" if self.is_turned else "b, [k, n], [n, 1], [K, N]"
            if self.gathers == "b":
                made = "a, [m, k], [k, 1], [M, K]"
            boxes = f"box = tl.make_tensor_descriptor({made})\n"
            head = f"{boxes}into = tl.make_tensor_descriptor(out, [m, n], [n, 1], [M, N])\n{head}"
        if self.walk in _PERSISTENT:
            body = _indented(body)
        elif self.rng.random() < 0.06:
            head += "if down * M >= m:\n    return\n"
        return HEAD + _indented(head + body)

    def _tile(self) -> str:
        """What a tile takes: its rows, the sum, what is done to it, the store."""
        text = "i, j = down * M + tl.arange(0, M), across * N + tl.arange(0, N)\n"
        text += self._names()
        expert = "e = tl.load(experts + down)\n" if self.rng.random() < 0.08 else ""
        expert = "" if self.has_boxes else expert
        base = "b"
        if expert:
            text, base = text + expert, "b + tl.maximum(e, 0) * n * k"
        body = self._sum(base) + self._end()
        if expert and self.rng.random() < 0.5:
            return text + "if e >= 0:\n" + _indented(body)
        return text + body

    def _names(self) -> str:
        if self.gathers == "b along k":
            return "valid = i < m\n"
        if self.gathers == "b":
            return "valid = i < m\nbt = tl.load(names + j, mask=j < n, other=0)\n"
        text = _NAMED[self.named]
        text += "" if "valid" in text else "valid = i < m\n"
        if self.gathers == "both":
            text += "bt = tl.load(names + j, mask=j < n, other=0) % n\n"
        return text

    def _sum(self, base: str) -> str:
        row = "at" if self.gathers in ("a", "both") else "i"
        text = f"right = {base}\nacc = tl.zeros((M, N), tl.float32)\n"
        x = f"a + {row}[:, None] * k + ko[None, :]"
        if self.rng.random() < 0.3:
            text += f"places = a + {row}[:, None] * k + kk[None, :]\n"
            x = "places"
        step = "ko = start + kk\n"
        if self.gathers == "b along k":
            step += (
                f"along = tl.load(names + ko{'' if self.is_exact else ', mask=ko < k, other=0'})\n"
            )
        step += self._loads(x)
        if x == "places":
            step += "places += K\n"
        if self.rng.random() < 0.05:
            step = "ko = start + kk\nif start >= 64:\n    right += 0\n" + step
        return text + "for start in range(0, k, K):\n" + _indented(step)

    def _loads(self, x: str) -> str:
        inside = "" if self.is_exact else " & (ko < k){}"
        left = f"valid[:, None]{inside.format('[None, :]')}"
        if (
            self.named == "wrapped"
            and self.gathers == "a"
            and not self.is_exact
            and self.rng.random() < 0.5
        ):
            left = "(ko < k)[None, :]"
        column = "bt" if self.gathers in ("b", "both") else "j"
        depth = "along" if self.gathers == "b along k" else "ko"
        if self.is_turned:
            y = f"right + {column}[:, None] * k + {depth}[None, :]"
            mask = f"(j < n)[:, None]{inside.format('[None, :]')}"
        else:
            y = f"right + {depth}[:, None] * n + {column}[None, :]"
            mask = f"(j < n)[None, :]{inside.format('[:, None]')}"
        x = f"tl.load({x}, mask={left}, other=0.0)"
        y = f"tl.load({y}, mask={mask}, other=0.0)"
        if self.has_boxes and self.gathers == "b":
            x = "box.load([down * M, start])"
        elif self.has_boxes:
            place = "across * N, start" if self.is_turned else "start, across * N"
            y = f"box.load([{place}])"
        return f"x = {x}\ny = {y}\nacc = tl.dot(x, y{'.T' if self.is_turned else ''}, acc)\n"

    def _end(self) -> str:
        text = ""
        if self.rng.random() < 0.4:
            text += "acc += tl.load(bias + j, mask=j < n, other=0.0)[None, :]\n"
        if self.rng.random() < 0.4:
            place = self.rng.choice(("i", "at")) if self.named != "unclamped" else "i"
            place = place if self.gathers in ("a", "both") else "i"
            text += f"acc *= tl.load(scale + {place}, mask=valid, other=0.0)[:, None]\n"
        text += self.rng.choice(("", "", "acc = tl.maximum(acc, 0.0)\n"))
        if self.has_boxes:
            return f"{text}into.store([down * M, across * N], acc.to(out.dtype.element_ty))\n"
        row = "token" if self.is_scattered else "i"
        mask = "valid" if self.is_scattered else "(i < m)"
        return text + (
            f"tl.store(out + {row}[:, None] * n + j[None, :], acc.to(out.dtype.element_ty),"
            f" mask={mask}[:, None] & (j < n)[None, :])\n"
        )


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())
