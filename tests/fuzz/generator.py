"""Random well-typed kernels without undefined behaviour, over several programs.

Floats hold whole numbers that stay exact (each variable has a bound on its magnitude), so sums
have one value in any order and results are compared exactly. Integers wrap. Indices are masked
into range, divisors and shift counts are small and positive, atomics commute, and what a
program stores belongs to it alone.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz import forms, movements, numerics, wrapping
from tests.fuzz.memory import Memory
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
)
from tests.fuzz.vocabulary import CELLS, COMMON, ITEM_BYTES, LIMITS, Variable

# The modules whose import registers the forms of expressions.
FORM_MODULES = (forms, movements, numerics, wrapping)


class Generator(Memory):
    """Makes one program from one seed; `only` names the forms of its outer statements, if any."""

    def __init__(self, seed: int, only: tuple[str, ...] = ()) -> None:
        super().__init__(seed)
        self.only = only

    def program(self) -> Program:
        """The program of this generator's seed."""
        body = self.block(self.rng.randint(2, 5) if self.only else self.rng.randint(5, 14), depth=0)
        # The last line of defence against a program that shows nothing of what it computed.
        for variable in self.changeable()[-4:]:
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
        forms: list[tuple[float, Callable[[int], list[Node]]]] = [
            (10, self.define), (3, self.reassign), (2, self.store_some), (2, self.through_memory),
            (1, self.atomic), (0.5, self.own_atomic), (1, self.exchange), (2, self.overlapping),
        ]  # fmt: skip
        if depth < 2:
            forms += [(2, self.branch), (2, self.loop), (1, self.while_loop), (1, self.walk)]
        if depth == 0:
            forms.append((0.4, self.leave))
        if self.only:
            forms = [(weight, form) for weight, form in forms if form.__name__ in self.only]
        weights = [weight for weight, _ in forms]
        (form,) = self.rng.choices([f for _, f in forms], weights)
        return form(depth)

    def kind(self) -> Kind:
        """A random kind."""
        known = [v.kind for v in self.changeable()]
        if known and self.roll(0.4):
            return self.rng.choice(known)
        dtype = self.rng.choice((*COMMON, "int1"))
        return Kind(dtype, self.rng.choice("SVVVVTTTTRCU"))

    def define(self, depth: int) -> list[Node]:
        """A new variable."""
        kind = self.kind()
        text, bound = self.expression(kind, 2)
        return [self.declare(kind, text, bound)]

    def declare(self, kind: Kind, text: str, bound: int) -> Assign:
        """Name a value."""
        variable = Variable(self.new_name("v"), kind, bound)
        self.scope.append(variable)
        return Assign(variable.name, text, kind)

    def bounded(self, variable: Variable) -> str:
        """An expression for an existing variable, within its bound."""
        text, bound = self.expression(variable.kind, 2)
        if bound <= variable.bound:
            return text
        return f"tl.minimum(tl.maximum({text}, -{variable.bound}.0), {variable.bound}.0)"

    def reassign(self, depth: int) -> list[Node]:
        """A variable gets another value of its kind and bound."""
        if not self.changeable():
            return self.define(depth)
        variable = self.rng.choice(self.changeable())
        return [Assign(variable.name, self.bounded(variable))]

    def exchange(self, depth: int) -> list[Node]:
        """Two variables of one kind change places, by way of a tuple."""
        first = self.rng.choice(self.changeable() or [Variable("", Kind("", ""))])
        alike = [v for v in self.changeable() if (v.kind, v.bound) == (first.kind, first.bound)]
        if len(alike) < 2:
            return self.define(depth)
        second = next(v for v in alike if v is not first)
        value = f"both({second.name}, {first.name})"
        if self.roll(0.3):
            value = f"[x for x in ({second.name}, {first.name})]"
        return [Effect(f"{first.name}, {second.name} = {value}")]

    def store_some(self, depth: int) -> list[Node]:
        """A store of some variable."""
        return [self.store(self.rng.choice(self.changeable()))] if self.changeable() else []

    def store(self, variable: Variable) -> Effect:
        """A store to an array of its own; sometimes only where a condition holds."""
        name, shape = f"o{len(self.buffers)}", variable.kind.shape
        self.buffers.append(Buffer(name, variable.kind.dtype, shape))
        if shape in "TU" and variable.kind.dtype != "int1" and self.roll(0.25):
            return Effect(self.block_store(name, variable))
        mask = ""
        if self.roll(0.3):
            mask = f", mask={self.expression(Kind('int1', shape), 1)[0]}"
        return Effect(f"tl.store({name} + {PLACES[shape]}, {variable.name}{mask})")

    def block_store(self, name: str, variable: Variable) -> str:
        """A store of a matrix by a block pointer or a descriptor, perhaps partly out of bounds."""
        rows, columns = "MN" if variable.kind.shape == "T" else "NM"
        offsets = f"{self.rng.randint(0, 1)}, {self.rng.choice((0, 0, 2))}"
        num_columns = self.columns if columns == "N" else self.rows
        if num_columns * ITEM_BYTES[variable.kind.dtype] >= 16 and self.roll(0.5):
            made = f"{name} + pid * B, [{rows}, {columns}], [{columns}, 1], [{rows}, {columns}]"
            return f"tl.make_tensor_descriptor({made}).store([{offsets}], {variable.name})"
        shape = SHAPES[variable.kind.shape]
        made = f"{name} + pid * B, {shape}, ({columns}, 1), ({offsets}), {shape}, (1, 0)"
        return f"tl.store(tl.make_block_ptr({made}), {variable.name}, boundary_check=(0, 1))"

    def through_memory(self, depth: int) -> list[Node]:
        """Load and store at shifted places of the program's own stretch of one array."""
        base = f"s0 + pid * (B + {SLACK}) + "
        places = (f"i + {self.rng.randint(0, SLACK)}", "(B - 1 - i)", "(i ^ 1)", "i")
        first, second = self.rng.choice(places), self.rng.choice(places)
        kind = Kind("int32", "V")
        mask = self.expression(Kind("int1", "V"), 1)[0]
        mask = f", mask={mask}" if self.roll(0.4) else ""
        other = ", other=5" if mask else ""
        load = f"tl.load({base}{first}{mask}{other})"
        if self.roll(0.3):
            stored = Effect(f"tl.store({base}{second}, {self.expression(kind, 1)[0]}{mask})")
            return [stored, self.declare(kind, load, 0)]
        loaded = self.declare(kind, load, 0)
        stored = Effect(f"tl.store({base}{second}, {self.expression(kind, 1)[0]}{mask})")
        return [loaded, stored]

    def atomic(self, depth: int) -> list[Node]:
        """An atomic that commutes with all others on its cells."""
        cells, (operation, dtype) = self.rng.choice(list(CELLS.items()))
        shape = self.rng.choice("SVVTT")
        place = self.expression(Kind("int32", shape), 1)[0]
        if dtype in LIMITS:
            number = self.expression(Kind("int32", shape), 1)[0]
            value = f"(({number}) & 15).to(tl.{dtype})"
        else:
            value = self.expression(Kind(dtype, shape), 1)[0]
        mask = f", mask={self.expression(Kind('int1', shape), 1)[0]}" if self.roll(0.5) else ""
        sem = self.rng.choice(("", "", ", sem='relaxed'"))
        return [Effect(f"tl.atomic_{operation}({cells} + (({place}) & 7), {value}{mask}{sem})")]

    def own_atomic(self, depth: int) -> list[Node]:
        """An atomic on the program's own elements, whose old values are known."""
        kind = Kind("int32", "V")
        x, y = self.expression(kind, 1)[0], self.expression(kind, 1)[0]
        place = "w0 + pid * B + i"
        text = self.rng.choice((
            f"tl.atomic_add({place}, {x})", f"tl.atomic_xchg({place}, {x})",
            f"tl.atomic_cas({place}, {x}, {y})", f"tl.atomic_min({place}, {x})",
        ))  # fmt: skip
        return [self.declare(kind, text, 0)]

    def inner(self, depth: int, count: int) -> list[Node]:
        """A nested block; its variables are out of scope after it."""
        size = len(self.scope)
        body = self.block(count, depth + 1)
        del self.scope[size:]
        return body

    def branch(self, depth: int) -> list[Node]:
        """An `if`, perhaps with `else`."""
        test = self.condition()
        body = self.inner(depth, self.rng.randint(1, 4))
        orelse = self.inner(depth, self.rng.randint(1, 3)) if self.roll(0.5) else []
        return [Nested(f"if {test}:", body, orelse)]

    def leave(self, depth: int) -> list[Node]:
        """Some programs end early."""
        body = self.inner(depth, 1) if self.roll(0.5) else []
        return [Nested(f"if pid == {self.rng.randint(0, 4)}:", [*body, Effect("return")])]

    def loop(self, depth: int) -> list[Node]:
        """A `for` over a small range, perhaps with `break` or `continue`."""
        name, trips = self.new_name("k"), self.rng.randint(0, 4)
        ranges = (f"range({trips})", f"range(n % {trips + 1})", f"range({trips}, 0, -1)",
                  f"tl.static_range({trips})", f"range(pid, pid + {trips})",
                  f"tl.range(0, {trips}, num_stages=2)")  # fmt: skip
        chosen = self.rng.choice(ranges)
        size = len(self.scope)
        if "static" not in chosen:
            self.scope.append(Variable(name, Kind("int32", "S")))
            self.fixed |= {name}
        body = self.block(self.rng.randint(1, 4), depth + 1)
        if self.roll(0.25):
            word = self.rng.choice(("break", "continue"))
            leave = Nested(f"if {self.condition()}:", [Effect(word)])
            body.insert(len(body) if word == "break" else 0, leave)
            if word == "continue":  # its condition may not name what the body defines
                leave.header = f"if pid % {self.rng.randint(2, 3)} == 0:"
        del self.scope[size:]
        return [Nested(f"for {name} in {chosen}:", body)]

    def while_loop(self, depth: int) -> list[Node]:
        """A `while` that counts."""
        name = self.new_name("w")
        body = self.inner(depth, self.rng.randint(1, 3))
        body.append(Effect(f"{name} = {name} + 1"))
        start = Effect(f"{name} = pid * 0")
        return [start, Nested(f"while {name} < {self.rng.randint(1, 3)}:", body)]

    def walk(self, depth: int) -> list[Node]:
        """A loop that moves pointers through a table and adds up what they point to."""
        dtype = self.rng.choice(("int32", "int64", "float32", "float64"))
        table, kind = self.table(dtype), Kind(dtype, "T")
        pointer, trips = self.new_name("p"), self.rng.randint(0, 4)
        total = self.declare(kind, *self.expression(kind, 1))
        if dtype in LIMITS:
            bound = self.scope.pop().bound + 8 * trips
            if bound <= LIMITS[dtype]:
                self.scope.append(Variable(total.name, kind, bound))
        if self.roll(0.5):
            made = f"tl.make_block_ptr({table} + 0, (16, 60), (60, 1), (1, 0), (M, N), (1, 0))"
            loaded = f"tl.load({pointer}, boundary_check=(0, 1), padding_option='zero')"
            step = f"tl.advance({pointer}, (1, {self.rng.randint(0, 7)}))"
        else:
            made, loaded = f"{table} + (rc & 511)", f"tl.load({pointer})"
            step = f"{pointer} + {self.rng.randint(1, 64)}"
        body: list[Node] = [
            Assign(total.name, f"{total.name} + {loaded}"),
            Effect(f"{pointer} = {step}"),
        ]
        loop = Nested(f"for {self.new_name('k')} in range({trips}):", body)
        return [total, Effect(f"{pointer} = {made}"), loop]


def generate(seed: int, only: tuple[str, ...] = ()) -> Program:
    """The program of a seed, of the named forms of statements or of all."""
    return Generator(seed, only).program()
