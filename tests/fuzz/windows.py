"""Random kernels whose masks are windows: what shows begins late, ends early, or has holes.

Masks are trees of comparisons, joined by and, or, exclusive or, equality and choices, and negated.
Indices count down, have strides, quotients, remainders, bits and other types, begin below 0 or at
the end of int32; bounds are arguments, compounds, and numbers of each row that are loaded. Masks
hide elements of loads, stores, sums, carried tiles, atomics and scans. All numbers are whole.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from tests.holes import before_a_hole

HEADER = "import tilewright\nimport tilewright.language as tl\n\n\n"
LAST = 2**31 - 1
CELLS = 16
PROGRAMS = 2


@dataclass(frozen=True)
class Launch:
    """The numbers of one launch."""

    n: int
    lo: int
    k: int
    first: int
    steps: int
    size: int


class Windows:
    """One random kernel `kernel(x, h, ends, out, seen, cells, n, lo, k, first, steps, w)`."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(seed)
        self.seed = seed
        self.rows = rng.choice((1, 1, 2, 4, 8, 16))
        self.columns = rng.choice((1, 4, 8, 16, 32, 64, 128))
        self.dtype = rng.choice(
            ("float32", "float32", "int32", "int16", "int8", "float16", "int64")
        )
        self.slots = 0
        self.text = HEADER + self._text()

    @property
    def size(self) -> int:
        """The elements of a tile."""
        return self.rows * self.columns

    def _text(self) -> str:
        rng = self.rng
        lines = [
            "@tilewright.jit",
            "def kernel(x, h, ends, out, seen, cells, n, lo, k, first, steps, w):",
            "    p = tl.program_id(0)",
            f"    r = tl.arange(0, {self.rows})[:, None]",
            f"    c = tl.arange(0, {self.columns})[None, :]",
            f"    t = r * {self.columns} + c",
            "    end = tl.load(ends + r)",
            "    here = tl.load(ends + p)",
            f"    i = first + r{rng.choice(('', '', '.to(tl.int64)'))}",
            f"    j = first + c{rng.choice(('', '', '.to(tl.int64)'))}",
            f"    u = p * {self.size} + t",
            f"    v = tl.load(x + {self._place()})",
        ]
        forms = (self._load, self._store, self._carry, self._sum, self._count, self._atomic,
                 self._scan, self._tail, self._choice)  # fmt: skip
        for form in rng.choices(forms, k=rng.choice((1, 2, 3, 4))):
            lines += ["    " + line for line in form()]
        return "\n".join(lines) + "\n"

    def _place(self) -> str:
        """An element of `x`, which has two tiles and one, for each element of the tile."""
        size, rows, columns = self.size, self.rows, self.columns
        return self.rng.choice((
            "t", "t", f"({size - 1} - t)", "(t * 2 + 1)", "(t // 2)", "(t ^ 1)",
            f"(r * {columns} + ({columns - 1} - c))", f"(({rows - 1} - r) * {columns} + c)",
            f"(c * {rows} + r)", f"((t + 3) % {size})", f"((t * 3) & {size - 1})", "(r + t * 0)",
            "(c * 2 + t * 0)", f"({size} + t)", f"({2 * size} - t)",
        ))  # fmt: skip

    def _index(self) -> str:
        plain = ("i", "j", "t", "u", "r", "c", "(i + c)", "(j - r)", "(r - c)")
        chosen = self.rng.choice(plain)
        if self.rng.random() < 0.5:
            return chosen
        number = self.rng.choice((2, 3, 4, 5, 7, 8))
        return self.rng.choice((
            f"(n - 1 - {chosen})", f"(lo - {chosen})", f"({chosen} * {number})", f"(-{chosen})",
            f"({chosen} // {number})", f"({chosen} % {number})", f"({chosen} & {number - 1})",
            f"({chosen} >> 1)", f"({chosen} ^ 1)", f"tl.minimum({chosen}, n)",
            f"tl.maximum({chosen}, lo)", f"{chosen}.to(tl.int8)", f"{chosen}.to(tl.uint8)",
            f"({chosen} - lo).to(tl.uint32)", f"tl.abs({chosen} - k)", f"{chosen}.to(tl.int64)",
            f"({chosen} + steps)", f"({chosen} * k)", f"({chosen}.to(tl.float32) * 0.5)", "v",
        ))  # fmt: skip

    def _bound(self) -> str:
        return self.rng.choice((
            "n", "n", "n", "lo", "k", "(n - 1)", "(n + lo)", "0", "3", "end", "here",
            "tl.minimum(n, k)", "(n * 2)", "(n // 2)", "i", "c", "(first + n)", "(first + lo)",
        ))  # fmt: skip

    def _leaf(self) -> str:
        sign = self.rng.choice(("<", "<", "<", "<=", ">", ">=", ">=", "==", "!="))
        index, bound = self._index(), self._bound()
        return (
            f"({bound} {sign} {index})" if self.rng.random() < 0.15 else f"({index} {sign} {bound})"
        )

    def _mask(self, depth: int = 2) -> str:
        rng = self.rng
        if depth == 0 or rng.random() < 0.2:
            return self._leaf()
        a, b = self._mask(depth - 1), self._mask(depth - 1)
        return rng.choice((
            f"({a} & {b})", f"({a} & {b})", f"({a} & {b})", f"({a} | {b})", f"({a} | {b})",
            f"(~{a})", f"({a} ^ {b})", f"({a} == {b})", f"({a} & (n > lo))",
            f"tl.where({self._leaf()}, {a}, {b})",
        ))  # fmt: skip

    def _whole(self) -> str:
        """A mask with the shape of the tile."""
        return f"({self._mask()} & (t >= 0))"

    def _slot(self) -> str:
        """Where one tile of `out` begins for the program."""
        self.slots += 1
        return f"out + ({self.slots - 1} * {PROGRAMS} + p) * {self.size}"

    def _value(self) -> str:
        return self.rng.choice(
            ("v", "(v * 2)", f"tl.load(x + {self._place()})", f"(v + n).to(tl.{self.dtype})")
        )

    def _load(self) -> list[str]:
        other = self.rng.choice(("0", "1", "v"))
        load = f"a = tl.load(x + {self._place()}, mask={self._whole()}, other={other})"
        return [load, f"tl.store({self._slot()} + t, a)"]

    def _tail(self) -> list[str]:
        """A load of an array that ends where the mask does, from its end to its start or not."""
        place = self.rng.choice(("t", "(w - 1 - t)"))
        load = f"a = tl.load(h + {place}, mask=(t < w) & {self._mask(1)}, other=5)"
        return [load, f"tl.store({self._slot()} + t, a)"]

    def _store(self) -> list[str]:
        place = self.rng.choice(
            ("t", f"({self.size - 1} - t)", f"(c * {self.rows} + r)", "(t ^ 1)")
        )
        to = self.rng.choice((self._slot(), f"seen + p * {2 * self.size + 2}"))
        return [f"tl.store({to} + {place}, {self._value()}, mask={self._whole()})"]

    def _choice(self) -> list[str]:
        a, b = self._value(), self._value()
        return [f"tl.store({self._slot()} + t, tl.where({self._whole()}, {a}, {b}))"]

    def _carry(self) -> list[str]:
        fresh = self.rng.choice(
            ("acc + v", "tl.maximum(acc, q)", "q", "acc + q", "tl.where(acc > 50, q, acc * 2 - q)")
        )
        mask = self._whole()
        first, second = self.rng.sample((fresh, "acc"), 2)
        steps = self.rng.choice(
            (
                "range(steps)",
                "range(3)",
                "range(steps, -1, -2)",
                "range(lo, tl.minimum(n, lo + 12), 5)",
            )
        )
        body = [
            f"acc = tl.full(({self.rows}, {self.columns}), 1, tl.{self.dtype})",
            f"for s in {steps}:",
            f"    q = tl.load(x + {self._place()})",
            f"    i += {self.rng.choice(('1', '0', str(self.rows)))}",
            f"    acc = tl.where({mask}, {first}, {second})",
        ]
        return [*body, f"tl.store({self._slot()} + t, acc)"]

    def _sum(self) -> list[str]:
        axis = self.rng.choice((0, 1))
        shown = f"tl.where({self._whole()}, {self._value()}, {self.rng.choice((0, 1))})"
        fold = self.rng.choice(("sum", "max", "min", "sum"))
        wide = f"{shown}.to(tl.int32)"
        at = "c" if axis == 0 else "r"
        index = "None, :" if axis == 0 else ":, None"
        return [f"tl.store({self._slot()} + {at}, tl.{fold}({wide}, {axis})[{index}])"]

    def _count(self) -> list[str]:
        axis = self.rng.choice((0, 1))
        at, index = ("c", "None, :") if axis == 0 else ("r", ":, None")
        count = f"tl.sum({self._whole()}.to(tl.int32), {axis})[{index}]"
        return [f"tl.store({self._slot()} + {at}, {count})"]

    def _scan(self) -> list[str]:
        axis, way = self.rng.choice((0, 1)), self.rng.choice(("False", "True"))
        shown = f"tl.where({self._whole()}, {self._value()}, 0).to(tl.int32)"
        return [f"tl.store({self._slot()} + t, tl.cumsum({shown}, {axis}, reverse={way}))"]

    def _atomic(self) -> list[str]:
        at = self.rng.choice(
            (f"(t & {CELLS - 1})", f"(c & {CELLS - 1} | t * 0)", "(t * 0)", "(t % 7)")
        )
        add = self.rng.choice(("add", "max"))
        value = f"{self._value()}.to(tl.int32)"
        whole = f"tl.broadcast_to({value}, ({self.rows}, {self.columns}))"
        first = 0 if add == "add" else CELLS  # programs are in no order
        return [f"tl.atomic_{add}(cells + {first} + {at}, {whole}, mask={self._whole()})"]

    def launches(self, count: int) -> list[Launch]:
        """Launches: windows of some size inside of the tile, around it, and at the end of int32."""
        rng, made = self.rng, []
        for _ in range(count):
            most = max(self.rows, self.columns)
            n = rng.choice(
                (self.size, most, rng.randint(-3, most + 3), rng.randint(0, self.size), 0, 1)
            )
            lo = rng.choice((0, 1, rng.randint(-4, most), n - 1, n))
            first = rng.choice((0, 0, 0, 0, -5, 3, LAST - rng.randint(0, 40), -LAST - 1))
            size = max(1, rng.choice((self.size, self.size - 1, rng.randint(1, self.size))))
            k = rng.choice((0, 1, 2, 3, 5, -2, most))
            made.append(Launch(n, lo, k, first, rng.randint(0, 4), size))
        return made

    def arguments(self, launch: Launch, seed: int) -> dict[str, object]:
        """Arrays, one of which ends where memory does, and the numbers."""
        rng = np.random.default_rng(seed)
        ends = rng.integers(-2, self.columns + 3, max(self.rows, PROGRAMS)).astype(np.int32)
        return {
            "x": before_a_hole(rng.integers(-3, 4, 2 * self.size + 1).astype(self.dtype)),
            "h": before_a_hole(rng.integers(-3, 4, launch.size).astype(self.dtype)),
            "ends": before_a_hole(ends),
            "out": np.full(max(self.slots, 1) * PROGRAMS * self.size, -9, np.int32),
            "seen": np.full(PROGRAMS * (2 * self.size + 2), -9, self.dtype),
            "cells": np.zeros(2 * CELLS, np.int32),
            "n": launch.n,
            "lo": launch.lo,
            "k": launch.k,
            "first": launch.first,
            "steps": launch.steps,
            "w": launch.size,
        }
