"""Random well-typed kernels without undefined behaviour, over several programs.

Floats hold whole numbers that stay exact (each variable has a bound on its magnitude), so sums
have one value in any order and results are compared exactly. Integers wrap. Indices are masked
into range, divisors and shift counts are small and positive, atomics commute, and what a
program stores belongs to it alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.fuzz.program import (
    PLACES,
    SHAPES,
    SLACK,
    Assign,
    Buffer,
    Effect,
    Kind,
    Nested,
    Node,
    Program,
)  # fmt: skip

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint32")
LIMITS = {"float16": 1 << 11, "bfloat16": 1 << 8, "float32": 1 << 24, "float64": 1 << 30}
NUMBERS = (*INTEGERS, *LIMITS)
_COMMON = ("int32", "int32", "float32", "float32", "float32", *NUMBERS)
_TABLES = tuple((f"a{k}", dtype) for k, dtype in enumerate((*NUMBERS, "int1")))
_CELLS = {"c0": "add", "c1": "max", "c2": "xor"}
_SIZES = ((1, 16), (2, 8), (4, 4), (4, 32), (8, 8), (8, 16), (16, 16), (16, 32), (32, 8), (2, 64))


@dataclass(frozen=True)
class Variable:
    """A name with its kind; `bound` limits the magnitude of floats."""

    name: str
    kind: Kind
    bound: int = 0


Made = tuple[str, int]


class Generator:
    """Makes one program from one seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.seed = seed
        self.rows, self.columns = self.rng.choice(_SIZES)
        self.grid = self.rng.choice((1, 3, 5, 8))
        self.buffers = [Buffer(name, dtype, "table") for name, dtype in _TABLES]
        self.buffers += [Buffer(name, "int32", "cells") for name in _CELLS]
        self.buffers.append(Buffer("s0", "int32", "slack"))
        self.count = 0
        self.scope = [
            Variable("pid", Kind("int32", "S")),
            Variable("n", Kind("int32", "S")),
            *(Variable(name, Kind("int32", shape)) for name, shape in
              (("i", "V"), ("r", "R"), ("c", "C"), ("rc", "T"), ("cr", "U"))),
        ]  # fmt: skip
        self.fixed = frozenset(v.name for v in self.scope)

    def program(self) -> Program:
        """The program of this generator's seed."""
        body = self.block(self.rng.randint(5, 14), depth=0)
        # The last line of defence against a program that shows nothing of what it computed.
        for variable in [v for v in self.scope if v.name not in self.fixed][-4:]:
            body.append(self.store(variable))
        buffers = tuple(self.buffers)
        return Program(self.seed, self.grid, self.rows, self.columns, buffers, tuple(body))

    def block(self, count: int, depth: int) -> list[Node]:
        """`count` statements; variables of an inner block end with it."""
        body: list[Node] = []
        for _ in range(count):
            body.extend(self.statement(depth))
        return body

    def statement(self, depth: int) -> list[Node]:
        """One statement of a random form."""
        forms: list[tuple[int, Callable[[int], list[Node]]]] = [
            (10, self.define), (3, self.reassign), (2, self.store_some), (2, self.through_memory),
            (1, self.atomic),
        ]  # fmt: skip
        if depth < 2:
            forms += [(2, self.branch), (2, self.loop), (1, self.while_loop)]
        weights = [weight for weight, _ in forms]
        (form,) = self.rng.choices([f for _, f in forms], weights)
        return form(depth)

    def define(self, depth: int) -> list[Node]:
        """A new variable."""
        kind = self.kind()
        text, bound = self.expression(kind, 2)
        return [self.declare(kind, text, bound)]

    def declare(self, kind: Kind, text: str, bound: int) -> Assign:
        """Name a value."""
        self.count += 1
        variable = Variable(f"v{self.count}", kind, bound)
        self.scope.append(variable)
        return Assign(variable.name, text, kind)

    def reassign(self, depth: int) -> list[Node]:
        """A variable gets another value of its kind and bound."""
        changeable = [v for v in self.scope if v.name not in self.fixed]
        if not changeable:
            return self.define(depth)
        variable = self.rng.choice(changeable)
        text, bound = self.expression(variable.kind, 2)
        if bound > variable.bound:
            low, high = f"-{variable.bound}.0", f"{variable.bound}.0"
            text = f"tl.minimum(tl.maximum({text}, {low}), {high})"
        return [Assign(variable.name, text)]

    def store_some(self, depth: int) -> list[Node]:
        """A store of some variable."""
        changeable = [v for v in self.scope if v.name not in self.fixed]
        return [self.store(self.rng.choice(changeable))] if changeable else []

    def store(self, variable: Variable) -> Effect:
        """A store to an array of its own; sometimes only where a condition holds."""
        name, shape = f"o{len(self.buffers)}", variable.kind.shape
        self.buffers.append(Buffer(name, variable.kind.dtype, shape))
        mask = ""
        if self.rng.random() < 0.3:
            mask = f", mask={self.expression(Kind('int1', shape), 1)[0]}"
        return Effect(f"tl.store({name} + {PLACES[shape]}, {variable.name}{mask})")

    def through_memory(self, depth: int) -> list[Node]:
        """Load and store at shifted places of the program's own stretch of one array."""
        base = f"s0 + pid * (B + {SLACK}) + "
        places = (f"i + {self.rng.randint(0, SLACK)}", "(B - 1 - i)", "(i ^ 1)", "i")
        first, second = self.rng.choice(places), self.rng.choice(places)
        kind = Kind("int32", "V")
        mask = self.expression(Kind("int1", "V"), 1)[0]
        mask = f", mask={mask}" if self.rng.random() < 0.4 else ""
        other = ", other=5" if mask else ""
        load = f"tl.load({base}{first}{mask}{other})"
        if self.rng.random() < 0.3:
            stored = Effect(f"tl.store({base}{second}, {self.expression(kind, 1)[0]}{mask})")
            return [stored, self.declare(kind, load, 0)]
        loaded = self.declare(kind, load, 0)
        stored = Effect(f"tl.store({base}{second}, {self.expression(kind, 1)[0]}{mask})")
        return [loaded, stored]

    def atomic(self, depth: int) -> list[Node]:
        """An atomic that commutes with all others on its cells."""
        cells, operation = self.rng.choice(list(_CELLS.items()))
        shape = self.rng.choice("SVVTT")
        place, value = (self.expression(Kind("int32", shape), 1)[0] for _ in range(2))
        mask = f", mask={self.expression(Kind('int1', shape), 1)[0]}"
        mask = mask if self.rng.random() < 0.5 else ""
        return [Effect(f"tl.atomic_{operation}({cells} + (({place}) & 7), {value}{mask})")]

    def inner(self, depth: int, count: int) -> list[Node]:
        """A nested block; its variables are out of scope after it."""
        size = len(self.scope)
        body = self.block(count, depth + 1)
        del self.scope[size:]
        return body

    def condition(self) -> str:
        """A scalar condition, by the program's id or by data."""
        return self.rng.choice((
            f"pid % {self.rng.randint(2, 3)} == 0",
            f"n > {self.rng.randint(1, 2000)}",
            self.expression(Kind("int1", "S"), 1)[0],
        ))  # fmt: skip

    def branch(self, depth: int) -> list[Node]:
        """An `if`, perhaps with `else`."""
        test = self.condition()
        body = self.inner(depth, self.rng.randint(1, 4))
        orelse = self.inner(depth, self.rng.randint(1, 3)) if self.rng.random() < 0.5 else []
        return [Nested(f"if {test}:", body, orelse)]

    def loop(self, depth: int) -> list[Node]:
        """A `for` over a small range, perhaps with `break` or `continue`."""
        self.count += 1
        name, trips = f"k{self.count}", self.rng.randint(0, 4)
        ranges = (f"range({trips})", f"range(n % {trips + 1})", f"range({trips}, 0, -1)",
                  f"tl.static_range({trips})", f"range(pid, pid + {trips})")  # fmt: skip
        chosen = self.rng.choice(ranges)
        size = len(self.scope)
        if "static" not in chosen:
            self.scope.append(Variable(name, Kind("int32", "S")))
            self.fixed |= {name}
        body = self.block(self.rng.randint(1, 4), depth + 1)
        if self.rng.random() < 0.25:
            word = self.rng.choice(("break", "continue"))
            leave = Nested(f"if {self.condition()}:", [Effect(word)])
            body.insert(len(body) if word == "break" else 0, leave)
            if word == "continue":  # its condition may not name what the body defines
                leave.header = f"if pid % {self.rng.randint(2, 3)} == 0:"
        del self.scope[size:]
        return [Nested(f"for {name} in {chosen}:", body)]

    def while_loop(self, depth: int) -> list[Node]:
        """A `while` that counts."""
        self.count += 1
        name = f"w{self.count}"
        body = self.inner(depth, self.rng.randint(1, 3))
        body.append(Effect(f"{name} = {name} + 1"))
        start = Effect(f"{name} = pid * 0")
        return [start, Nested(f"while {name} < {self.rng.randint(1, 3)}:", body)]

    def kind(self) -> Kind:
        """A random kind."""
        dtype = self.rng.choice((*_COMMON, "int1"))
        known = [v.kind for v in self.scope if v.name not in self.fixed]
        if known and self.rng.random() < 0.4:
            return self.rng.choice(known)
        return Kind(dtype, self.rng.choice("SVVVVTTTTRCU"))

    # --- expressions -------------------------------------------------------------------------

    def expression(self, kind: Kind, depth: int) -> Made:
        """An expression of a kind and the bound of its magnitude."""
        if kind.dtype == "int1":
            return self.truth(kind, depth), 0
        for _ in range(6):
            text, bound = self.number(kind, depth)
            if bound <= LIMITS.get(kind.dtype, bound):
                return text, bound
        return self.leaf(kind)

    def leaf(self, kind: Kind) -> Made:
        """A variable, a load or a constant."""
        known = [v for v in self.scope if v.kind == kind]
        if known and self.rng.random() < 0.8:
            chosen = self.rng.choice(known[-6:])
            return chosen.name, chosen.bound
        loaded = [name for name, dtype in _TABLES if dtype == kind.dtype]
        if loaded and self.rng.random() < 0.85:
            return self.load(loaded[0], kind)
        value = self.rng.randint(0, 7)
        text = f"tl.full({SHAPES[kind.shape]}, {value}, tl.{kind.dtype})"
        return text, value if kind.dtype in LIMITS else 0

    def load(self, table: str, kind: Kind) -> Made:
        """A load at indices within the table, some of them computed, some masked."""
        known = [v.name for v in self.scope if v.kind == Kind("int32", kind.shape)]
        place = PLACES[kind.shape]
        index = self.rng.choice((
            f"(({place}) & 1023)",
            f"((({place}) * {self.rng.randint(2, 7)} + {self.rng.randint(0, 99)}) & 1023)",
            f"(1023 - (({place}) & 1023))",
            f"(({place}) % n & 1023)",
            f"({self.rng.choice(known)} & 1023)" if known else f"(({place}) // 3 & 1023)",
        ))  # fmt: skip
        bound = 8 if kind.dtype in LIMITS else 0
        roll = self.rng.random()
        if roll < 0.4:
            return f"tl.load({table} + {index})", bound
        mask = f"({place}) < n" if roll < 0.7 else self.expression(Kind("int1", kind.shape), 0)[0]
        other = "0" if kind.dtype != "int1" else "False"
        masked = f"tl.load({table} + {index}, mask={mask}, other={other})"
        if kind.shape == "S":
            masked = f"tl.load({table} + {index})"
        return masked, bound

    def number(self, kind: Kind, depth: int) -> Made:
        """An expression of a number kind; its bound may exceed what the dtype holds exactly."""
        if depth == 0:
            return self.leaf(kind)
        forms: list[tuple[int, Callable[[Kind, int], Made]]] = [
            (6, self.arithmetic), (3, self.select), (3, self.cast), (2, self.extremum),
            (3, self.reshaped), (3, self.reduced), (2, self.leaf_of), (1, self.call),
            (1, self.scan), (1, self.unary),
        ]  # fmt: skip
        if kind.dtype in INTEGERS:
            forms += [(3, self.bitwise), (2, self.division)]
        if kind.shape == "T" and kind.dtype in ("float32", "int32"):
            forms.append((2, self.dot))
        (form,) = self.rng.choices([f for _, f in forms], [w for w, _ in forms])
        return form(kind, depth - 1)

    def leaf_of(self, kind: Kind, depth: int) -> Made:
        """A leaf, whatever depth is left."""
        return self.leaf(kind)

    def operand(self, kind: Kind, depth: int) -> Made:
        """An operand that broadcasts to the kind."""
        narrower = {"V": "S", "T": "SRC", "U": "S", "R": "S", "C": "S"}.get(kind.shape, "")
        if narrower and self.rng.random() < 0.25:
            shape = self.rng.choice(narrower)
            text, bound = self.expression(Kind(kind.dtype, shape), depth)
            if kind.shape == "T" and shape in "RC":
                text = f"({text})[:, None]" if shape == "R" else f"({text})[None, :]"
            return text, bound
        return self.expression(kind, depth)

    def arithmetic(self, kind: Kind, depth: int) -> Made:
        (x, bx), (y, by) = self.expression(kind, depth), self.operand(kind, depth)
        sign = self.rng.choice("+-*")
        return f"({x} {sign} {y})", bx * by if sign == "*" else bx + by

    def unary(self, kind: Kind, depth: int) -> Made:
        x, bound = self.expression(kind, depth)
        return self.rng.choice((f"(-{x})", f"tl.abs({x})")), bound

    def extremum(self, kind: Kind, depth: int) -> Made:
        (x, bx), (y, by) = self.expression(kind, depth), self.operand(kind, depth)
        return f"tl.{self.rng.choice(('maximum', 'minimum'))}({x}, {y})", max(bx, by)

    def bitwise(self, kind: Kind, depth: int) -> Made:
        x, y = self.expression(kind, depth)[0], self.operand(kind, depth)[0]
        sign = self.rng.choice(("&", "|", "^", "<<", ">>"))
        return (f"({x} {sign} (({y}) & 7))" if sign in ("<<", ">>") else f"({x} {sign} {y})"), 0

    def division(self, kind: Kind, depth: int) -> Made:
        x, y = self.expression(kind, depth)[0], self.operand(kind, depth)[0]
        return f"({x} {self.rng.choice(('//', '%'))} ((({y}) & 7) + 1))", 0

    def select(self, kind: Kind, depth: int) -> Made:
        test = self.expression(Kind("int1", kind.shape), depth)[0]
        (x, bx), (y, by) = self.expression(kind, depth), self.operand(kind, depth)
        return f"tl.where({test}, {x}, {y})", max(bx, by)

    def call(self, kind: Kind, depth: int) -> Made:
        (x, bx), (y, by) = self.expression(kind, depth), self.expression(kind, depth)
        if self.rng.random() < 0.5:
            return f"helper({x}, {y})", 2 * bx + by
        test = self.expression(Kind("int32", "S"), depth)[0]
        return f"pick({x}, {y}, {test})", max(bx, by)

    def cast(self, kind: Kind, depth: int) -> Made:
        """A conversion whose result is defined and, for floats, exact."""
        source = self.rng.choice((*NUMBERS, "int1"))
        text, bound = self.expression(Kind(source, kind.shape), depth)
        target = f".to(tl.{kind.dtype})"
        if source == "int1":
            return f"({text}){target}", int(kind.dtype in LIMITS)
        if source in LIMITS and kind.dtype in LIMITS:
            return f"({text}){target}", bound
        if source in LIMITS:
            if bound > 127:
                text = f"tl.minimum(tl.maximum({text}, -100.0), 100.0)"
            text = f"tl.abs({text})" if kind.dtype.startswith("u") else f"({text})"
            return f"{text}{target}", 0
        if kind.dtype in LIMITS:
            return f"(({text}) & 15){target}", 15
        return f"({text}){target}", 0

    def reshaped(self, kind: Kind, depth: int) -> Made:
        """The same elements in another arrangement."""
        shape = kind.shape
        if shape == "V":
            if self.rng.random() < 0.3:
                x, bound = self.expression(kind, depth)
                return f"tl.flip({x}, 0)", bound
            source = self.rng.choice("TU")
            x, bound = self.expression(Kind(kind.dtype, source), depth)
            return f"tl.reshape({x}, (B,))", bound
        if shape in "TU":
            source = self.rng.choice(("V", "U" if shape == "T" else "T"))
            x, bound = self.expression(Kind(kind.dtype, source), depth)
            if source == "V":
                return f"tl.reshape({x}, {SHAPES[kind.shape]})", bound
            return f"tl.trans({x})", bound
        return self.expression(kind, depth)

    def reduced(self, kind: Kind, depth: int) -> Made:
        """A reduction of a larger tile to this kind."""
        sources = {
            "S": (("V", "axis=0", self.rows * self.columns), ("R", "axis=0", self.rows)),
            "R": (("T", "axis=1", self.columns), ("U", "axis=0", self.columns)),
            "C": (("T", "axis=0", self.rows), ("U", "axis=1", self.rows)),
        }.get(kind.shape)
        if sources is None:
            return self.expression(kind, depth)
        source, axis, count = self.rng.choice(sources)
        x, bound = self.expression(Kind(kind.dtype, source), depth)
        functions = ["sum", "max", "min"] + (["xor_sum"] if kind.dtype in INTEGERS else [])
        function = self.rng.choice(functions)
        if function in ("max", "min") and self.rng.random() < 0.2 and kind.dtype == "int32":
            return f"tl.arg{function}({x}, {axis})", 0
        text = f"tl.{function}({x}, {axis}).to(tl.{kind.dtype})"
        return text, bound * count if function == "sum" else bound

    def scan(self, kind: Kind, depth: int) -> Made:
        """A running sum."""
        if kind.shape not in "VT":
            return self.expression(kind, depth)
        x, bound = self.expression(kind, depth)
        axis = 0 if kind.shape == "V" else self.rng.randint(0, 1)
        reverse = ", reverse=True" if self.rng.random() < 0.3 else ""
        text = f"tl.cumsum({x}, axis={axis}{reverse}).to(tl.{kind.dtype})"
        return text, bound * self.rows * self.columns

    def dot(self, kind: Kind, depth: int) -> Made:
        """Two products: (M, N) with (N, M), then with (M, N) again."""
        if kind.dtype == "int32":
            x, y, z = (self.expression(Kind("int8", s), depth)[0] for s in "TUT")
            return f"tl.dot(tl.dot({x}, {y}).to(tl.int8), {z})", 0
        dtype = self.rng.choice(("float32", "float32", "float16", "bfloat16"))
        (x, bx), (y, by) = (self.expression(Kind(dtype, s), depth) for s in "TU")
        product, bound = f"tl.dot({x}, {y}, input_precision='ieee')", bx * by * self.columns
        z, bz = self.expression(Kind("float32", "T"), depth)
        text = f"tl.dot({product}, {z}, input_precision='ieee')"
        return text, max(bound, bound * bz * self.rows)

    def truth(self, kind: Kind, depth: int) -> str:
        """A condition of a kind's shape."""
        known = [v.name for v in self.scope if v.kind == kind]
        roll = self.rng.random()
        if known and roll < 0.3:
            return self.rng.choice(known)
        if roll < 0.45 and kind.shape != "S":
            return f"({PLACES[kind.shape]}) < n"
        if roll < 0.6 and depth > 0:
            x, y = self.truth(kind, depth - 1), self.truth(kind, depth - 1)
            return f"(({x}) {self.rng.choice('&|^')} ({y}))"
        number = Kind(self.rng.choice(_COMMON), kind.shape)
        x, y = (self.expression(number, max(0, depth - 1))[0] for _ in range(2))
        return f"({x} {self.rng.choice(('<', '<=', '>', '>=', '==', '!='))} {y})"


def generate(seed: int) -> Program:
    """The program of a seed."""
    return Generator(seed).program()
