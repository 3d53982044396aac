"""Random loops over memory that is laid out against them, run in every way that there is.

Rows are padded, turned around or all the same (strides that are negative or 0), arrays start 2, 4,
8 or 16 bytes off; offsets have 32 or 64 bits; trip counts and addresses come from memory; loops
store what they load later, add to cells, multiply, and end where the diagonal is. All numbers are
whole and small, so no order of summing shows.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

S = 32
"""The rows and columns of every tile."""
ROWS = 4
"""How many tiles lie below each other in an array."""
_HEAD = f"""import tilewright
import tilewright.language as tl


@tilewright.jit
def kernel(a, b, c, d, table, cells, out, n, sa, sb, sd, fa, fb, fd, STAGES: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, {S})
    low = i[:, None]
    across = i[None, :]
    total = tl.zeros(({S}, {S}), tl.float32)
    other = tl.zeros(({S}, {S}), tl.float32) + 1.0
    side = tl.zeros(({S},), tl.float32)
    count = 0
"""
_TAIL = f"""    at = out + pid * {S * S} + low * {S} + across
    tl.store(at, total % 512 + other % 512 + (side % 64)[:, None] + count % 64)
"""
_UPDATES = (
    "total = total % 64 + x",
    "other = tl.maximum(other % 16, x)",
    "side = side % 32 + tl.sum(x, 1) % 16",
    "count += 1",
    "total, other = other % 32, total % 32",
    "total = tl.where(low >= across, total % 128, x)",
    "side = tl.where(i % 3 == count % 3, side % 8, side + 1.0)",
)
_PRODUCTS = (
    "total = tl.dot(p, q, total % 64)",
    "total = tl.dot(p, q.T, total % 64)",
    "other = other % 32 + tl.dot(p, q) % 64",
    "total = tl.dot((tl.dot(p, q.T) % 4).to(tl.float16), q, total % 64)",
    "s = tl.where(low >= across, tl.dot(p, q.T) % 8, 0.0)\n"
    "side = side % 32 + tl.max(s, 1)\n"
    "total = tl.dot(s.to(tl.float16), q, total % 64)",
)
_CONDITIONS = ("count % 2 == 0", "{k} % 3 != 1", "n > 2", "tl.load(table + {k} % 8) % 2 == 0")


@dataclass(frozen=True)
class HostileProgram:
    """A kernel as text, and how its arrays lie: bytes off, and strides of rows in elements."""

    seed: int
    text: str
    programs: int
    n: int
    offset_bytes: tuple[int, int, int]
    strides: tuple[int, int, int]

    def arguments(self) -> dict[str, object]:
        """Fresh arguments, the same each time; each is a view of memory of its own."""
        rng = np.random.default_rng(self.seed)
        kinds = (np.float16, np.float16, np.float32)
        found: dict[str, object] = {}
        for name, kind, off, stride in zip(
            ("a", "b", "d"), kinds, self.offset_bytes, self.strides, strict=True
        ):
            found[name] = _rows(rng, kind, off, stride)
        found["c"] = rng.integers(-4, 5, ROWS * S * S).astype(np.float32)
        found["table"] = rng.integers(0, ROWS * S, 64).astype(np.int32)
        found["cells"] = np.zeros(64, np.int32)
        found["out"] = np.full(self.programs * S * S, np.nan, np.float32)
        sa, sb, sd = self.strides
        # Where the row that the program calls the first one starts.
        starts = (max(0, -stride) * (ROWS * S - 1) for stride in self.strides)
        numbers = {"n": self.n, "sa": sa, "sb": sb, "sd": sd}
        numbers |= dict(zip(("fa", "fb", "fd"), starts, strict=True))
        order = ("a", "b", "c", "d", "table", "cells", "out")
        return {**{name: found[name] for name in order}, **numbers}


def _rows(
    rng: np.random.Generator, kind: type[np.generic], offset_bytes: int, stride: int
) -> np.ndarray:
    """Room for rows that lie `stride` elements apart, from so many bytes behind a line on."""
    size = np.dtype(kind).itemsize
    length = ROWS * S * max(abs(stride), S) + S
    room = np.zeros((length + 64) * size, np.uint8)
    off = -(room.ctypes.data - offset_bytes) % 64
    whole = room[off : off + length * size].view(kind)
    whole[:] = rng.integers(-4, 5, length).astype(kind)
    return whole


def generate_hostile(seed: int) -> HostileProgram:
    """The program of a seed."""
    rng = random.Random(seed)
    writer = _Writer(rng)
    lines = [line for _ in range(rng.choice((1, 1, 2))) for line in writer.loop(1)]
    text = _HEAD + "".join(f"    {line}\n" for line in lines) + _TAIL
    strides = tuple(rng.choice((S, S, S + 8, S + 1, S + 4, -S, -S - 2, 0)) for _ in range(3))
    offsets = tuple(rng.choice((0, 0, 16, 8, 4, 2)) for _ in range(2))
    last = rng.choice((0, 0, 16, 8, 4))
    stored = strides[2] or S  # what is stored is stored once
    # Programs that store where others load have no order.
    programs = 1 if writer.has_store else rng.choice((1, 1, 2, 3))
    return HostileProgram(
        seed,
        text,
        programs,
        rng.randint(0, 5),
        (offsets[0], offsets[1], last),
        (strides[0], strides[1], stored),
    )


class _Writer:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.names = 0
        self.has_store = False

    def loop(self, depth: int) -> list[str]:
        self.names += 1
        k = f"k{self.names}"
        bound = self.rng.choice(
            (
                "0, n",
                "0, 4",
                "pid, n + pid",
                "0, tl.load(table + pid) % 5",
                "1, n, 2",
                "0, (pid + 1) * 2",
                "n, 7",
                "0, 0",
            )
        )
        head = f"for {k} in tl.range({bound}, num_stages=STAGES):"
        body: list[str] = []
        if depth < 2 and self.rng.random() < 0.25:
            body += self.loop(depth + 1)
        body += self.statements(k, depth)
        return [head, *(f"    {line}" for line in body)]

    def statements(self, k: str, depth: int) -> list[str]:
        lines: list[str] = []
        if self.rng.random() < 0.6:
            lines += self.product(k)
        else:
            lines += [f"x = {self.load(k, self.rng.choice('abcd'))}", self.rng.choice(_UPDATES)]
        if self.rng.random() < 0.4:
            lines += self.branch(k, depth)
        if self.rng.random() < 0.3:
            value = self.rng.choice(("count", k, "1"))
            lines.append(f"tl.atomic_add(cells + ({k} + pid) % 8, {value})")
        if self.rng.random() < 0.4:
            lines += self.store(k)
        return lines

    def branch(self, k: str, depth: int) -> list[str]:
        lines = [f"if {self.rng.choice(_CONDITIONS).format(k=k)}:"]
        inner = [f"x = {self.load(k, self.rng.choice('abcd'))}", self.rng.choice(_UPDATES)]
        if depth < 3 and self.rng.random() < 0.3:
            inner += self.branch(k, depth + 1)
        return lines + [f"    {line}" for line in inner]

    def product(self, k: str) -> list[str]:
        text = self.rng.choice(_PRODUCTS)
        loads = [f"p = {self.load(k, 'a', True)}", f"q = {self.load(k, 'b', True)}"]
        return [*loads, *text.split("\n")]

    def row(self, k: str) -> str:
        """Which of the tiles of an array, or one that a table names."""
        return self.rng.choice(
            (f"(({k} + pid) % {ROWS})", f"({ROWS - 1} - {k} % {ROWS})", f"(({k} * 3 + 1) % {ROWS})",
             f"(tl.load(table + {k} % 8) % {ROWS})", "(pid % 2)")
        )  # fmt: skip

    def load(self, k: str, name: str, is_half: bool = False) -> str:
        """A tile of an array, in float32 unless a product takes it as it is."""
        wide = self.rng.random() < 0.3
        row, rows, columns = self.row(k), "low", "across"
        if wide:
            row, rows = f"({row}).to(tl.int64)", "low.to(tl.int64)"
        stride = {"a": "sa", "b": "sb", "c": str(S), "d": "sd"}[name]
        if self.rng.random() < 0.15:
            rows, row = f"tl.load(table + i + {k} % 4)[:, None] % {S}", f"({k} % {ROWS})"
        base = name if name == "c" else f"{name} + f{name}"
        at = f"{base} + ({row} * {S} + {rows}) * {stride} + {columns}"
        mask = self.rng.choice(("", "", f"low < n * 8 - {k}", "across % 16 != n", f"{k} < 3"))
        guard = f", mask=(low < {S}) & (across < {S}) & ({mask}), other=0.0" if mask else ""
        text = f"tl.load({at}{guard})"
        return text if is_half else f"{text}.to(tl.float32)"

    def store(self, k: str) -> list[str]:
        """Store to `d`, which other iterations may load, or to a table."""
        self.has_store = True
        if self.rng.random() < 0.3:
            return [f"tl.store(table + 8 + pid * 8 + {k} % 8, count % {ROWS * S})"]
        row = self.rng.choice((f"{k} % {ROWS}", f"({k} + 1) % {ROWS}"))
        at = f"d + fd + ({row} * {S} + low) * sd + across"
        return [f"tl.store({at}, total % 16)"]
