"""Random loops whose loads may run ahead: products, branches, carried values, masks, lookups.

A program is one kernel with the depth as a parameter, so that its bits at one depth can be held
against those at another.
"""

from __future__ import annotations

import random

HEADER = "import tilewright\nimport tilewright.language as tl\n\n"
S = 32
"""The rows and columns of every tile."""


class LoopProgram:
    """One random kernel `(a, b, c, table, out, n)`.

    a, b are float16 and c float32 of 8 S rows of S; `table` holds 8 S numbers of rows.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.name = f"program_{seed}"
        self.has_product = self.rng.random() < 0.6
        self.short = self.rng.choice((4, 8, 16, 32))
        self.lines: list[str] = []

    def text(self) -> str:
        """The kernel."""
        self.lines = [
            "@tilewright.jit",
            f"def {self.name}(a, b, c, table, out, n, STAGES: tl.constexpr):",
            f"    i = tl.arange(0, {S})",
            f"    at = i[:, None] * {S} + i[None, :]",
            f"    total = tl.zeros(({S}, {S}), tl.float32)",
            f"    side = tl.full(({S},), 1.0, tl.float32)",
            "    count = 0",
            f"    short = tl.make_tensor_descriptor(c, [900], [1], [{self.short}])",
        ]
        if self.rng.random() < 0.3:
            self._nest()
        else:
            for _ in range(self.rng.choice((1, 1, 2))):
                self._loop("    ")
        self.lines.append("    tl.store(out + at, total + side[:, None] + count)")
        return "\n".join(self.lines) + "\n\n\n"

    def _nest(self) -> None:
        self.lines.append(f"    for tile in range({self.rng.randint(0, 3)}):")
        if self.rng.random() < 0.5:
            self.lines.append(f"        if tile != {self.rng.randint(0, 2)}:")
            self._loop("            ")
        else:
            self._loop("        ")
        self.lines.append("        side = side * 0.5 + tl.max(total, 1)")

    def _loop(self, indent: str) -> None:
        trips = self.rng.randint(0, 7)
        low, step = self.rng.randint(0, 2), self.rng.choice((1, 1, 2))
        bounds = (f"0, {trips}", "0, n", f"{low}, n + {low}, {step}", f"{low}, {low + trips}, n")
        pointer = self.rng.random() < 0.4
        if pointer:
            self.lines.append(f"{indent}moved = a + at")
        start = f"{indent}for k in tl.range({self.rng.choice(bounds)}, num_stages=STAGES):"
        self.lines.append(start)
        inner = indent + "    "
        row = self.rng.choice(("k % 8", "(k * 3 + 1) % 8", "7 - k % 8", "k // (n + 1 - k % 2)"))
        first = "moved" if pointer else f"a + ({row}) * {S * S} + at"
        if self.rng.random() < 0.4:
            first = self._lookup(inner)
        self.lines.append(f"{inner}x = {self._load(first)}")
        if self.rng.random() < 0.2:
            self.lines.append(f"{inner}side += tl.sum(short.load([k % 8 * 8 - 4]))")
        if self.has_product:
            self.lines.append(f"{inner}y = {self._load(f'b + (k % 8) * {S * S} + at')}")
            self._product(inner)
        else:
            self._sum(inner)
        if self.rng.random() < 0.4:
            self.lines.append(f"{inner}if k % 2 == {self.rng.randint(0, 1)}:")
            self.lines.append(f"{inner}    count += k")
            self.lines.append(f"{inner}    side = side * 0.25 + tl.sum(total, 1) * 0.001")
            if self.rng.random() < 0.4:
                place = self.rng.choice(("out + at", f"c + (7 - k % 8) * {S * S} + at"))
                self.lines.append(f"{inner}    tl.store({place}, total * 0.5)")
        if pointer:
            self.lines.append(f"{inner}moved += {self.rng.choice((0, S * S))} * (k % 2 == 0)")

    def _lookup(self, indent: str) -> str:
        """Where a table says that a tile is, or each of its rows."""
        if self.rng.random() < 0.4:
            self.lines.append(f"{indent}tile = tl.load(table + k % 8) % 8")
            if self.rng.random() < 0.4:
                self.lines.append(f"{indent}tl.store(table + (k + 1) % 8, tile * 5 + 3)")
            return f"a + tile * {S * S} + at"
        self.lines.append(f"{indent}rows = tl.load(table + (k % 8) * {S} + i)")
        if self.rng.random() < 0.4:
            mask = self.rng.choice(("rows > k", "i < n + k"))
            self.lines.append(f"{indent}rows = tl.load(table + rows, mask={mask}, other=k & 7)")
        if self.rng.random() < 0.3:
            self.lines.append(f"{indent}count += tl.max(rows)")
        return f"a + rows[:, None] * {S} + i[None, :]"

    def _load(self, at: str) -> str:
        kind = self.rng.randint(0, 2)
        if kind == 0:
            return f"tl.load({at})"
        mask = self.rng.choice((f"(i[:, None] + k < {S})", "(i[None, :] % 16 != k)", "(at > k)"))
        other = "0.0" if kind == 1 or self.has_product else str(self.rng.randint(1, 3))
        return f"tl.load({at}, mask={mask}, other={other})"

    def _product(self, indent: str) -> None:
        scale = f"tl.load(c + (k % 8) * {S * S} + at)"
        forms = (
            "total = tl.dot(x, y, total)",
            "total = tl.dot(x, y.T, total)",
            "total = total * 0.5 + tl.dot(x, y)",
            "total = tl.dot((x * 0.5).to(tl.float16), y, total)",
            "total = tl.dot(x, (y * side[None, :]).to(tl.float16), total)",
            f"total = tl.dot((x * {scale}).to(tl.float16), y, total)",
            f"total = tl.dot(x.to(tl.float32), {scale}, total)",
            "total = tl.dot((x * tl.load(c + k % 8 + i)[:, None]).to(tl.float16), y + x, total)",
        )
        self.lines.append(indent + self.rng.choice(forms))

    def _sum(self, indent: str) -> None:
        forms = (
            "total += x",
            "total = tl.maximum(total, x * 0.5)",
            "side += tl.sum(x.to(tl.float32), 1)",
        )
        self.lines.append(indent + self.rng.choice(forms))
        if self.rng.random() < 0.5:
            self.lines.append(f"{indent}total += tl.load(c + (k % 8) * {S * S} + at)")


def programs(seeds: range) -> tuple[str, list[str]]:
    """A module of programs, and their names."""
    made = [LoopProgram(seed) for seed in seeds]
    return HEADER + "".join(program.text() for program in made), [p.name for p in made]
