"""Random programs with the shapes of published kernels, which `generator.py` does not make.

Loops inside loops that carry tuples, `while` of two conditions, pointers that are chosen and
moved, scalars that are loaded and then address memory, gathers and scatters by loaded positions,
atomics in loops, functions with several results, branches of compile-time values, ranges of every
integer type.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

import numpy as np

from tests.fuzz.program import DTYPES
from tests.fuzz.published_expressions import FLOATS, INTEGERS, SHAPES, TABLE, Expressions, Name

PREAMBLE = """import tilewright
import tilewright.language as tl


@tilewright.jit
def finite(x):
    return tl.minimum(tl.maximum(tl.where(x == x, x, 3.0), -100.0), 100.0)


@tilewright.jit
def later(a, i, b, j):
    is_later = (b > a) | ((b == a) & (j < i))
    return tl.where(is_later, b, a), tl.where(is_later, j, i)


@tilewright.jit
def affine(a, s, b, t):
    return a * b, s * b.to(tl.int32) + t


@tilewright.jit
def crossed(x, N: tl.constexpr, MODE: tl.constexpr):
    if MODE == 0:
        return x
    elif MODE == 1:
        low, high = tl.split(tl.reshape(x, (N // 2, 2)))
        return tl.reshape(tl.join(high, low + 1), (N,))
    square = tl.reshape(x, (N // 2, 2))
    for k in tl.static_range(MODE):
        square = tl.reshape(tl.trans(square), (N // 2, 2)) + k
    return tl.ravel(square)


@tilewright.jit
def several(x, y, count, MODE: tl.constexpr):
    if MODE == 0:
        return x, y
    if count > 3:
        return y + 1, x
    total = x
    for k in range(MODE):
        total, y = y + k, total
        if MODE == 3:
            total += count.to(tl.int32)
    return total, y * 2


"""


@dataclass(frozen=True)
class Published:
    """A kernel's text, its grid and its sizes."""

    seed: int
    text: str
    programs: int
    sizes: tuple[int, int, int]
    outputs: tuple[tuple[str, str, int], ...]

    @property
    def kernel_text(self) -> str:
        """The module: numbers of the run are plain numbers in it."""
        return re.sub(r"num\((-?\d+)\)", r"\1", self.text)

    @property
    def eager_text(self) -> str:
        """The module for Python: numbers of the run are tiles."""
        return re.sub(r"num\((-?\d+)\)", r"tl.full((), \1, tl.int32)", self.text)

    def arguments(self) -> dict[str, object]:
        """Fresh arguments, the same each time."""
        rng = np.random.default_rng(self.seed)
        given: dict[str, object] = {}
        for dtype in (*INTEGERS, *FLOATS, "int1"):
            given[f"t_{dtype}"] = _numbers(rng, dtype)
        given["places"] = rng.permutation(TABLE).astype(np.int32)
        given["cells"] = np.zeros(16, np.int32)
        given["heights"] = np.zeros(16, np.int64)
        given["moved"] = np.full(self.programs * TABLE, 5, np.int32)
        for name, dtype, size in self.outputs:
            given[name] = np.full(size, 1, DTYPES[dtype])
        rows, columns, layers = self.sizes
        used = {
            name: value for name, value in given.items() if re.search(rf"\b{name}\b", self.text)
        }
        n = int(rng.integers(2, 9))
        return {**used, "n": n, "L": layers, "M": rows, "N": columns}


def _numbers(rng: np.random.Generator, dtype: str) -> np.ndarray:
    if dtype == "int1":
        return rng.integers(0, 2, TABLE).astype(np.bool_)
    if dtype in FLOATS:
        return rng.integers(-8, 9, TABLE).astype(DTYPES[dtype])
    limits = np.iinfo(DTYPES[dtype])
    wide = rng.integers(limits.min, limits.max, TABLE, dtype=DTYPES[dtype], endpoint=True)
    small = rng.integers(0, 20, TABLE).astype(DTYPES[dtype])
    edge = rng.choice(np.array([limits.min, limits.max, limits.max - 1], DTYPES[dtype]), TABLE)
    return np.choose(rng.integers(0, 5, TABLE), [wide, wide, small, small, edge])


class Writer(Expressions):
    """Writes the statements of one program."""

    def __init__(self, seed: int) -> None:
        super().__init__(random.Random(seed))
        self.seed = seed
        self.sizes = (self.rng.choice((1, 2, 4, 8, 16)), self.rng.choice((2, 4, 8, 16, 32, 64)),
                      self.rng.choice((1, 2, 4)))  # fmt: skip
        self.programs = self.rng.choice((1, 2, 3, 5))
        self.count = 0
        self.fixed: set[str] = set()
        self.outputs: list[tuple[str, str, int]] = []

    def program(self) -> Published:
        """The program of the seed."""
        lines = ["pid = tl.program_id(0)", "i = tl.arange(0, N)", "r = tl.arange(0, M)[:, None]",
                 "c = tl.arange(0, N)[None, :]", "d = tl.arange(0, L)[:, None, None]"]  # fmt: skip
        for _ in range(self.rng.randint(2, 4)):
            lines += self.define()
        for _ in range(self.rng.randint(2, 5)):
            lines += self.statement(0)
        for variable in [v for v in self.scope if v.name not in self.fixed][-6:]:
            lines += self.store(variable)
        body = "".join(f"    {line}\n" for line in lines)
        named = [f"t_{d}" for d in (*INTEGERS, *FLOATS, "int1")]
        named += ["places", "cells", "heights", "moved", *(name for name, _, _ in self.outputs)]
        used = [name for name in named if re.search(rf"\b{name}\b", body)]
        parameters = ", ".join([*used, "n", *(f"{x}: tl.constexpr" for x in "LMN")])
        text = f"{PREAMBLE}@tilewright.jit\ndef kernel({parameters}):\n{body}"
        return Published(self.seed, text, self.programs, self.sizes, tuple(self.outputs))

    def new(self, letter: str) -> str:
        """A name that is not taken."""
        self.count += 1
        return f"{letter}{self.count}"

    def block(self, depth: int, most: int) -> list[str]:
        """Statements one level further in; what they define ends with them."""
        size = len(self.scope)
        lines = [x for _ in range(self.rng.randint(1, most)) for x in self.statement(depth + 1)]
        del self.scope[size:]
        return [f"    {line}" for line in lines]

    def statement(self, depth: int) -> list[str]:
        """One statement of a random form."""
        forms = [self.define, self.define, self.reassign, self.reassign, self.reassign, self.swap,
                 self.count_cells, self.scatter]  # fmt: skip
        if depth < 3:
            nested = [self.loop, self.loop, self.while_loop, self.branch, self.walk, self.merge]
            if self.rng.random() < 0.5:
                return self.rng.choice(nested)(depth)
        if depth == 0 and self.rng.random() < 0.05:
            return [f"if {self.boolean('S', 2)}:", "    return"]
        return self.rng.choice(forms)()

    def kind(self) -> tuple[str, str]:
        """A dtype and a shape."""
        dtype = self.rng.choice((*INTEGERS, *INTEGERS, *FLOATS, "int1"))
        return dtype, self.rng.choice("SSVVTTRCOD")

    def define(self) -> list[str]:
        """A new variable."""
        dtype, shape = self.kind()
        text, name = self.exact(dtype, shape, 3), self.new("v")
        self.scope.append(Name(name, dtype, shape))
        return [f"{name} = {text}"]

    def changeable(self) -> list[Name]:
        """What may be assigned anew."""
        return [v for v in self.scope if v.name not in self.fixed]

    def reassign(self) -> list[str]:
        """A variable gets another value of its kind; sometimes by `+=` under a mask."""
        if not self.changeable():
            return self.define()
        v = self.rng.choice(self.changeable())
        text = self.exact(v.dtype, v.shape, 2)
        if v.dtype != "int1" and v.dtype not in FLOATS and self.rng.random() < 0.3:
            return [f"{v.name} += {text}"]
        if self.rng.random() < 0.3:  # what a `break` of some elements would be
            text = f"tl.where({self.boolean(v.shape, 1)}, {text}, {v.name})"
        return [f"{v.name} = {text}"]

    def swap(self) -> list[str]:
        """Several variables at once, each from the others."""
        first = self.rng.choice(self.changeable() or [Name("", "", "")])
        alike = [v for v in self.changeable() if (v.dtype, v.shape) == (first.dtype, first.shape)]
        if len(alike) < 2:
            return self.define()
        a, b = self.rng.sample(alike, 2)
        return [f"{a.name}, {b.name} = {b.name}, {self.exact(a.dtype, a.shape, 1)}"]

    def store(self, variable: Name) -> list[str]:
        """A variable to an array of its own."""
        rows, columns, layers = self.sizes
        extents = {"S": 1, "V": columns, "T": rows * columns, "R": rows, "C": columns, "O": 1,
                   "D": layers * rows * columns}  # fmt: skip
        name = self.new("o")
        self.outputs.append((name, variable.dtype, self.programs * extents[variable.shape]))
        places = {"S": "pid", "V": "pid * N + i", "T": "pid * M * N + r * N + c",
                  "R": "pid * M + r", "C": "pid * N + c", "O": "pid + tl.zeros((1, 1), tl.int32)",
                  "D": "pid * L * M * N + d * M * N + r * N + c"}  # fmt: skip
        return [f"tl.store({name} + {places[variable.shape]}, {variable.name})"]

    def count_cells(self) -> list[str]:
        """An atomic on cells that all programs share."""
        shape = self.rng.choice("SVT")
        at = f"({self.integer(shape, 2)} & 15)"
        mask = f", mask={self.boolean(shape, 1)}" if self.rng.random() < 0.5 else ""
        if shape != "S":
            at = f"tl.broadcast_to({at}, {SHAPES[shape]})"
            mask = f", mask=tl.broadcast_to({mask[7:]}, {SHAPES[shape]})" if mask else ""
        if self.rng.random() < 0.5:
            return [f"tl.atomic_add(cells + {at}, {self.exact('int32', shape, 1)}{mask})"]
        return [f"tl.atomic_max(heights + {at}, {self.exact('int64', shape, 1)}{mask})"]

    def scatter(self) -> list[str]:
        """A store to positions that are loaded, none twice, or that a scalar offsets."""
        shape = self.rng.choice("VT")
        base = f"moved + pid * {TABLE}"
        value = self.exact("int32", shape, 2)
        count = {"V": "i", "T": "(r * N + c) % 1024"}[shape]
        mask = f", mask={self.boolean(shape, 1)}" if self.rng.random() < 0.5 else ""
        if self.sizes[0] * self.sizes[1] <= TABLE and self.rng.random() < 0.6:
            at = f"tl.load(places + {count})"
        else:
            at = f"(({count} + ({self.index('S', 1)}).to(tl.int32)) & {TABLE - 1})"
        name = self.new("v")
        self.scope.append(Name(name, "int32", shape))
        stored = f"tl.store({base} + {at}, {value}{mask})"
        return [stored, f"{name} = tl.load({base} + {at})"]

    def branch(self, depth: int) -> list[str]:
        """`if`, perhaps with `elif` and `else`."""
        lines = [f"if {self.condition()}:", *self.block(depth, 3)]
        if self.rng.random() < 0.4:
            lines += [f"elif {self.condition()}:", *self.block(depth, 2)]
        if self.rng.random() < 0.5:
            lines += ["else:", *self.block(depth, 2)]
        return lines

    def merge(self, depth: int) -> list[str]:
        """A variable that each side of a branch defines."""
        dtype, shape = self.kind()
        name, test = self.new("v"), self.condition()
        lines = [f"if {test}:", f"    {name} = {self.exact(dtype, shape, 2)}", "else:"]
        lines += [*self.block(depth, 1), f"    {name} = {self.exact(dtype, shape, 2)}"]
        self.scope.append(Name(name, dtype, shape))
        return lines

    def condition(self) -> str:
        """A scalar condition of the run or of constants."""
        x, y = self.boolean("S", 2), self.boolean("S", 1)
        return self.rng.choice((x, x, f"({x}) and ({y})", f"({x}) or ({y})", f"not ({x})",
                                "M > 2 and N == 8", "L == 2"))  # fmt: skip

    def loop(self, depth: int) -> list[str]:
        """A `for` over a range of some integer type, with leaves in the middle."""
        name, trips = self.new("k"), self.rng.randint(0, 4)
        dtype, start = self.rng.choice(INTEGERS[2:4] + INTEGERS[6:]), self.rng.randint(0, 3)
        loaded = f"(tl.load(t_int32 + {self.index('S', 1)}) & 3)"
        bounds = (
            f"range({trips})", "range(n)", f"range({loaded})", f"range(pid, pid + {trips})",
            f"range(n, -1, -{self.rng.randint(1, 9)})",
            f"range({start}, n, {self.rng.randint(1, 12)})",
            f"tl.range({start}, {loaded} + {start}, num_stages=3)", f"tl.static_range({trips})",
            f"range((n * 0 + {start}).to(tl.{dtype}), n.to(tl.{dtype}))",
        )  # fmt: skip
        chosen = self.rng.choice(bounds)
        size = len(self.scope)
        lines: list[str] = []
        if "static" not in chosen:
            is_wide = dtype != "int32" and ".to" in chosen.split("load")[0]
            counter = "int64" if is_wide else "int32"
            self.scope.append(Name(name, counter, "S"))
            self.fixed |= {name}
            if self.rng.random() < 0.3:
                number = self.new("v")
                lines.append(f"{number} = num({self.rng.randint(-2, 5)})")
                self.scope.insert(size, Name(number, "int32", "S"))
                size += 1
                self.fixed |= {number}
        body = self.block(depth, 4)
        if lines:
            number = self.scope[size - 1].name
            body.append(f"    {number} = ({self.exact('int32', 'S', 1)}) + {number} * 2")
        if self.rng.random() < 0.3:
            leave = [
                f"    if {self.condition()}:",
                f"        {self.rng.choice(('break', 'continue'))}",
            ]
            at = self.rng.choice([k for k, line in enumerate(body) if line[4] != " "])
            if not body[at].startswith(("    el",)):
                body[at:at] = leave
        del self.scope[size:]
        lines += [f"for {name} in {chosen}:", *body]
        return lines

    def while_loop(self, depth: int) -> list[str]:
        """A `while` of two conditions, one of which counts."""
        name = self.new("w")
        self.fixed |= {name}
        lines = [f"{name} = {self.rng.choice(('pid * 0', 'num(0)'))}"]
        self.scope.append(Name(name, "int32", "S"))
        most, test = self.rng.randint(1, 4), self.boolean("S", 2)
        sign = self.rng.choice(("&", "and"))
        lines.append(f"while ({name} < {most}) {sign} {test}:")
        return [*lines, f"    {name} += 1", *self.block(depth, 3)]

    def walk(self, depth: int) -> list[str]:
        """Pointers that are chosen by a condition, moved by loaded steps and read."""
        pointer, total = self.new("p"), self.new("v")
        dtype, shape = self.rng.choice(("int32", "float32", "uint8")), self.rng.choice("SVT")
        place = {"S": "0", "V": "i", "T": "(r * 8 + c)"}[shape]
        lines = [f"{total} = {self.exact(dtype, shape, 1)}"]
        first, second = (f"t_{dtype} + {place} + {self.rng.randint(0, 9)}" for _ in range(2))
        if self.rng.random() < 0.5:
            lines += [f"if {self.condition()}:", f"    {pointer} = {first}", "else:",
                      f"    {pointer} = {second}"]  # fmt: skip
        else:
            lines.append(f"{pointer} = {first}")
        step = self.rng.choice(("3", "(tl.load(t_int32 + pid) & 31)", "n"))
        added = f"({total} + tl.load({pointer}))"
        added = f"({added} % 32.0)" if dtype == "float32" else added
        lines += [f"for {self.new('k')} in range({self.rng.choice(('n', '3', 'pid'))}):",
                  f"    {total} = {added}.to(tl.{dtype})", f"    {pointer} += {step}"]  # fmt: skip
        self.scope.append(Name(total, dtype, shape))
        return lines


def generate_published(seed: int) -> Published:
    """The program of a seed."""
    return Writer(seed).program()
