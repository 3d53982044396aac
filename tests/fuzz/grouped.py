"""Random groups of products, whose addresses and sizes are data that products may write.

All lies in one memory: what a product stores may be what a later one multiplies, or its sizes, or
its own operand. Sizes are bits of halves, so that a stored product is a size, too. All numbers are
whole and small, so no order of summing shows.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tilewright.ir.op import Array

FRONT, ROW, MOST = 4096, 128, 128
"""Bytes in front for the arguments; halves between rows; every size is less than that."""
_ROOM = ROW * MOST * 2

HEAD = """import tilewright
import tilewright.language as tl


@tilewright.jit
def kernel(a_all, b_all, c_all, heap, at, count, P: tl.constexpr, M: tl.constexpr,
           N: tl.constexpr, K: tl.constexpr):
    kk = tl.arange(0, K)
"""
SIZES = """m = (tl.load(heap + at + g * 3) >> 7) & 127
n = (tl.load(heap + at + g * 3 + 1) >> 7) & 127
k = (tl.load(heap + at + g * 3 + 2) >> 7) & 127
columns = tl.cdiv(n, N)
tiles = tl.cdiv(m, M) * columns
"""
POINTERS = """a = tl.load(a_all + g).to(tl.pointer_type(tl.float16))
b = tl.load(b_all + g).to(tl.pointer_type(tl.float16))
c = tl.load(c_all + g).to(tl.pointer_type(tl.float16))
"""
LEFT = "left = tl.make_tensor_descriptor(a, [m, k], [128, 1], [M, K])\n"
RIGHT = "right = tl.make_tensor_descriptor(b, {shape}, [128, 1], {block})\n"
OUT = "out = tl.make_tensor_descriptor(c, [m, n], [128, 1], [M, N])\n"
WALKS = {
    "tiles": ("tile, first = tl.program_id(0), 0\nfor g in range(count):\n",
              "while tile >= first and tile < first + tiles:\n", "tile - first",
              "tile += P\n", "first += tiles\n"),
    "products": ("for g in range(tl.program_id(0), count, P):\n",
                 "for tile in range(tiles):\n", "tile", "", ""),
    "columns": ("for g in range(count):\n",
                "for tile in range(tl.program_id(0), tiles, P):\n", "tile", "", ""),
    "one tile each": ("for g in range(tl.program_id(0), count, P):\n", "if tiles > 0:\n", "0", "",
                      ""),
}  # fmt: skip
"""Loops over products and over tiles, the tile's number, and what ends either body."""
FACTORS = {
    "descriptors": ("left.load([i, start])", "right.load({place}){turn}"),
    "pointers": (
        "tl.load(a + ii[:, None] * 128 + (start + kk)[None, :],"
        " mask=(ii < m)[:, None] & (start + kk < k)[None, :], other=0.0)",
        "tl.load(b + {address}, mask=(jj < n)[None, :] & (start + kk < k)[:, None], other=0.0)",
    ),
}
EPILOGUES = ("acc % 4", "tl.maximum(acc, -1.0) % 3", "acc % 4 - 2.0", "tl.where(acc > 0, 1.0, 2.0)")
STORES = {
    "descriptors": "out.store([i, j], {value})\n",
    "pointers": "tl.store(c + ii[:, None] * 128 + jj[None, :], {value},"
    " mask=(ii < m)[:, None] & (jj < n)[None, :])\n",
}

_TURNS = "roles load | math x2 split tiles; ring ab tiles load#0 load#1 slots {} tma release {}"


@dataclass(frozen=True)
class Grouped:
    """A kernel's text, where arrays start and how large they are, and the options of a launch."""

    seed: int
    text: str
    starts: tuple[tuple[int, int, int], ...]
    shapes: tuple[tuple[int, int, int], ...]
    sizes_at: int
    programs: int
    options: dict[str, object]

    def memory(self) -> Array:
        """The bytes that all of it lies in, at a multiple of a page so that runs are alike."""
        rng = np.random.default_rng(self.seed)
        last = max(self.sizes_at * 2, *(max(s) for s in self.starts)) + _ROOM
        last = -(-last // 4096) * 4096
        spare = np.zeros(FRONT + last + 4096, np.uint8)
        skipped = -spare.ctypes.data % 4096
        memory = spare[skipped : skipped + FRONT + last]
        memory[FRONT:].view(np.float16)[:] = rng.integers(-2, 3, last // 2)
        sizes = memory[FRONT:].view(np.int16)[self.sizes_at :]
        sizes[: 3 * len(self.shapes)] = np.array(self.shapes, np.int16).ravel() << 7
        return memory

    def arguments(self, memory: Array) -> dict[str, object]:
        """The arguments of a launch on `memory`, without its options."""
        heap = memory[FRONT:].view(np.int16)
        base = heap.ctypes.data
        given: dict[str, object] = {}
        for number, name in enumerate(("a_all", "b_all", "c_all")):
            place = memory[number * 1024 :].view(np.int64)[: len(self.starts)]
            place[:] = [base + starts[number] for starts in self.starts]
            given[name] = place
        return given | {"heap": heap, "at": self.sizes_at, "count": len(self.shapes)}


def write_group(program: Grouped, folder: Path) -> Path:
    """The program as a file, so that its source can be found."""
    path = folder / f"grouped_{program.seed}.py"
    path.write_text(program.text)
    return path


def generate_grouped(seed: int) -> Grouped:
    """The program of a seed."""
    rng = random.Random(seed)
    options = _options(rng)
    sizes = (0, 1, 8, 17, 40, 64, 65, 100, 127)
    count = rng.randint(1, 6)
    shapes = tuple(tuple(rng.choice(sizes) for _ in range(3)) for _ in range(count))
    programs = rng.choice((1, 1, 1, 2, 3, 7))
    starts, sizes_at = _placed(rng, count, is_chain=programs == 1 and rng.random() < 0.8)
    return Grouped(seed, _text(rng), starts, shapes, sizes_at, programs, options)


def _options(rng: random.Random) -> dict[str, object]:
    groups = rng.choice((0, 1, 1, 2, 2, 2, 3))
    rows = {0: rng.choice((64, 128)), 1: 64, 2: rng.choice((64, 128, 128, 128)), 3: 192}[groups]
    options = {"M": rows, "N": rng.choice((32, 64)), "K": rng.choice((16, 32, 64))}
    options["num_consumer_groups"] = groups
    if groups == 2 and rng.random() < 0.2:
        del options["num_consumer_groups"]
        options["schedule"] = _TURNS.format(rng.randint(1, 4), rng.choice(("wait", "late")))
    elif groups and rng.random() < 0.6:
        options["num_buffers_warp_spec"] = rng.randint(1, 4)
    if not groups:
        options["num_stages"] = rng.randint(1, 4)
    return dict(options)


def _placed(
    rng: random.Random, count: int, *, is_chain: bool
) -> tuple[tuple[tuple[int, int, int], ...], int]:
    """The first bytes of A, B and C of each product, and the half at which the sizes begin."""
    places = list(range(3 * count + 1))
    rng.shuffle(places)
    starts = [[places.pop() * _ROOM for _ in range(3)] for _ in range(count)]
    sizes_at = places.pop() * _ROOM // 2
    for later in range(1, count) if is_chain else ():
        earlier = rng.randrange(later)
        kind = rng.random()
        near = rng.choice((0, 0, 16, 256 * 8, 256 * 40))
        if kind < 0.4:
            starts[later][rng.randrange(2)] = starts[earlier][2] + near
        elif kind < 0.5:
            starts[earlier][2] = starts[later][rng.randrange(2)] + near
        elif kind < 0.6:
            starts[later][2] = starts[rng.randrange(later + 1)][rng.randrange(3)]
        elif kind < 0.7:
            sizes_at = starts[earlier][2] // 2 + rng.choice((0, 3, 128 * 2)) - 3 * rng.randint(0, 1)
            sizes_at = max(0, sizes_at)
    return tuple((a, b, c) for a, b, c in starts), sizes_at


def _text(rng: random.Random) -> str:
    """A kernel: how it goes over tiles, where descriptors are made, and what by pointers."""
    walk = rng.choice(("tiles", "tiles", "products", "columns", "one tile each"))
    head, around, number, tile_end, product_end = WALKS[walk]
    factors = rng.choice(("descriptors", "descriptors", "descriptors", "pointers"))
    stores = factors if rng.random() < 0.85 else rng.choice(tuple(STORES))
    is_turned = rng.random() < 0.5
    shape, block = ("[n, k]", "[N, K]") if is_turned else ("[k, n]", "[K, N]")
    made = (LEFT + RIGHT.format(shape=shape, block=block)) if factors == "descriptors" else ""
    made += OUT if stores == "descriptors" else ""
    body = f"i = ({number}) // columns * M\nj = ({number}) % columns * N\n"
    if "pointers" in (factors, stores):
        body += "ii, jj = i + tl.arange(0, M), j + tl.arange(0, N)\n"
    where = rng.choice(("product", "product", "product", "tile"))
    if where == "tile":
        body = (SIZES if rng.random() < 0.3 and walk != "columns" else "") + POINTERS + made + body
    body += _sum(rng, factors, is_turned=is_turned)
    value = f"({rng.choice(EPILOGUES)}).to(tl.float16)"
    if stores == "descriptors" and rng.random() < 0.15:
        value = f"({value} + out.load([i, j])) % 4"
    body += STORES[stores].format(value=value) + tile_end
    product = (POINTERS + made if where == "product" else "") + around + _indented(body)
    if rng.random() < 0.4:
        product = (
            f"if {rng.choice(('tiles > 0', 'm > 1 and n > 1', 'k > 0'))}:\n{_indented(product)}"
        )
    return HEAD + _indented(head + _indented(SIZES + product + product_end))


def _sum(rng: random.Random, factors: str, *, is_turned: bool) -> str:
    left, right = FACTORS[factors]
    right = right.format(
        place="[j, start]" if is_turned else "[start, j]",
        turn=".T" if is_turned else "",
        address="jj[None, :] * 128 + (start + kk)[:, None]"
        if is_turned
        else "(start + kk)[:, None] * 128 + jj[None, :]",
    )
    step = f"acc = tl.dot({left}, {right}, acc)\n"
    if rng.random() < 0.15:
        step = f"if start != K:\n{_indented(step)}"
    text = f"acc = tl.zeros((M, N), tl.float32)\nfor start in range(0, k, K):\n{_indented(step)}"
    if rng.random() < 0.15:
        text += f"for start in range(0, k, 2 * K):\n{_indented(step)}"
    return text


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())
