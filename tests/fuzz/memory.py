"""Statements that load and store overlapping pieces of one stretch of memory.

Every program has stretches of its own, one per dtype, and one of bytes that pointers of several
types look at. A store writes each address once, or the same value wherever an address recurs.
"""

from __future__ import annotations

from tests.fuzz.expressions import Expressions
from tests.fuzz.program import Assign, Buffer, Effect, Nested, Node
from tests.fuzz.vocabulary import ITEM_BYTES

STRETCHES = {
    "m0": "int32", "m1": "float32", "m2": "float16", "m3": "int64", "m4": "bfloat16",
    "m5": "int8", "m6": "float64", "m7": "uint16",
}  # fmt: skip
BYTES = "m9"
_WORDS = ("int8", "uint8", "int16", "int32", "uint32", "int64")
_PLACES = {"V": "i", "T": "rc", "W": "(rc[:, :, None] * 2 + tl.arange(0, 2))"}


class Memory(Expressions):
    """Writes statements whose loads and stores overlap."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.buffers += [Buffer(name, dtype, "stretch") for name, dtype in STRETCHES.items()]
        self.buffers.append(Buffer(BYTES, "uint8", "bytes"))

    def overlapping(self, depth: int) -> list[Node]:
        """Loads and stores in one stretch, in some order, perhaps in a loop."""
        forms = (self._move, self._move, self._two, self._again, self._recurring, self._product)
        forms += (self._sequence, self._sequence, self._summed)
        form = self.rng.choice(forms)
        body = form()
        if self.roll(0.3):
            body = [Nested(f"for {self.new_name('k')} in range({self.rng.randint(1, 3)}):", body)]
        return body

    def _move(self) -> list[Node]:
        """A tile stored in another place, order or type than it was loaded from."""
        shape, (source, target, dtype) = self.rng.choice("VTTW"), self._bases()
        mask, other = self._mask(shape)
        name = self.new_name("x")
        loaded = Assign(name, f"tl.load({source} + {self._place(shape)}{mask}{other})")
        if other and self.roll(0.5):
            mask = self._mask(shape)[0]
        value = f"{name}.to(tl.{dtype})"
        return [loaded, Effect(f"tl.store({target} + {self._place(shape)}, {value}{mask})")]

    def _two(self) -> list[Node]:
        """Two loads, then two stores over one another and over what was loaded."""
        shape, (source, target, dtype) = self.rng.choice("VT"), self._bases()
        names = self.new_name("x"), self.new_name("x")
        mask, other = self._mask(shape)
        loads = [Assign(n, f"tl.load({source} + {self._place(shape)}{mask}{other})") for n in names]
        stores = [
            Effect(f"tl.store({target} + {self._place(shape)}, {n}.to(tl.{dtype}){mask})")
            for n in names
        ]
        return [*loads, *stores]

    def _again(self) -> list[Node]:
        """A store between two loads; both are stored in the end."""
        shape, (source, target, dtype) = self.rng.choice("VT"), self._bases()
        first, second = self.new_name("x"), self.new_name("x")
        mask, other = self._mask(shape)
        loaded = f"tl.load({source} + {self._place(shape)}{mask}{other})"
        again = f"tl.load({source} + {self._place(shape)}{mask}{other})"
        value = f"{first}.to(tl.{dtype})"
        return [
            Assign(first, loaded),
            Effect(f"tl.store({target} + {self._place(shape)}, {value}{mask})"),
            Assign(second, again),
            Effect(f"tl.store({target} + {self._place(shape)}, {second}.to(tl.{dtype}){mask})"),
        ]

    def _recurring(self) -> list[Node]:
        """Pointers in which an address occurs several times, read, changed and written."""
        shape = self.rng.choice("VT")
        place = _PLACES[shape]
        index = self.rng.choice((
            f"{place} // {self.rng.randint(2, 5)}", f"{place} % {self.rng.choice((3, 8, 16))}",
            f"({place} ^ 1)", f"{place} * 0", f"r[:, None] * {self._scalar(3)} + c[None, :]",
            f"tl.minimum({place}, {self.rng.randint(1, 40)})",
        ))  # fmt: skip
        pointer, name = self.new_name("q"), self.new_name("x")
        base = self._base("m0")
        return [
            Effect(f"{pointer} = {base} + ({index})"),
            Assign(name, f"tl.load({pointer})"),
            Effect(f"tl.store({pointer}, {name} * 3 + 1)"),
        ]

    def _product(self) -> list[Node]:
        """A product of two tiles of one stretch, stored over them; perhaps with a store before."""
        left, right, out = self.new_name("x"), self.new_name("x"), self.new_name("x")
        mask, other = self._mask("T")
        other = ", other=0" if mask else ""
        names = [self._base("m1") for _ in range(4)]
        stored = Effect(f"tl.store({names[2]} + {self._place('T')}, {left}{mask})")
        product = f"tl.dot({left}, tl.trans({right}), input_precision='ieee')"
        place = self.rng.choice(("r[:, None] * M + r[None, :]", "r[:, None] + r[None, :] * M"))
        return [
            Assign(left, f"tl.load({names[0]} + {self._place('T')}{mask}{other})"),
            Assign(right, f"tl.load({names[1]} + {self._place('T')}{mask}{other})"),
            *([stored] if self.roll(0.5) else []),
            Assign(out, f"tl.minimum(tl.maximum({product}, -8.0), 8.0)"),
            Effect(f"tl.store({names[3]} + {place}, {out})"),
        ]

    def _summed(self) -> list[Node]:
        """A row that is read again, once or twice, after sums of it were stored as numbers."""
        shape = self.rng.choice("VVT")
        row, total, most = (self.new_name("x") for _ in range(3))
        mask, other = self._mask(shape)
        other = ", other=2" if mask else ""
        at = f"{self._base('m0')} + {self._place(shape)}"
        second = Effect(f"tl.store({self._base('m0')}, {most} + pid)")
        return [
            Assign(row, f"tl.load({at}{mask}{other})"),
            Assign(total, f"tl.sum({row}, axis=None)"),
            Effect(f"tl.store({self._base('m0')}, {total} + 1)"),
            Assign(most, f"tl.max({row} * 3 - {total}, axis=None)"),
            *([second] if self.roll(0.5) else []),
            Effect(f"tl.store({self._base('m0')} + {self._place(shape)}, {row} + {most}{mask})"),
        ]

    def _sequence(self) -> list[Node]:
        """Loads, stores, atomics and sums of tiles and of scalars in one stretch, in any order."""
        shape, body = self.rng.choice("VT"), list[Node]()
        tiles, scalars = [_PLACES[shape]], ["pid"]
        for _ in range(self.rng.randint(3, 7)):
            at, one = f"{self._base('m0')} + {self._place(shape)}", self._base("m0")
            mask, other = self._mask(shape)
            other = ", other=2" if mask else ""
            value = f"{self.rng.choice(tiles)} * 3 + {self.rng.choice(scalars)}"
            name = self.new_name("x")
            loaded = Assign(name, f"tl.load({at}{mask}{other})")
            old = Assign(
                name, f"tl.atomic_{self.rng.choice(('add', 'xchg', 'max'))}({at}, {value})"
            )
            total = Assign(name, f"tl.sum({self.rng.choice(tiles)}, axis=None)")
            single = Assign(name, f"tl.load({one})")
            stored = Effect(f"tl.store({at}, {value}{mask})")
            scalar = Effect(f"tl.store({one}, {self.rng.choice(scalars)} + 1)")
            chosen = self.rng.choice((loaded, loaded, old, total, single, stored, stored, scalar))
            body.append(chosen)
            if chosen in (loaded, old):
                tiles.append(name)
            elif chosen in (total, single):
                scalars.append(name)
        last = f"tl.store({self._base('m0')} + {_PLACES[shape]}, {tiles[-1]} + {scalars[-1]})"
        return [*body, Effect(last)]

    def _bases(self) -> tuple[str, str, str]:
        """The pointers of a load and a store in one stretch, and the store's dtype."""
        if self.roll(0.3):
            source, target = self.rng.choice(_WORDS), self.rng.choice(_WORDS)
            return self._cast(source), self._cast(target), target
        name = self.rng.choice(list(STRETCHES))
        return self._base(name), self._base(name), STRETCHES[name]

    def _base(self, name: str) -> str:
        return f"{name} + pid * (B * 8 + 256) + {self.rng.randint(48, 80)}"

    def _cast(self, dtype: str) -> str:
        """The stretch of bytes as elements of a dtype."""
        start = f"{BYTES} + pid * (B * 64 + 2048) + 512 + {self.rng.randint(0, 3) * 16}"
        if dtype == "uint8":
            return start
        shift = f" + {self.rng.randint(0, 64 // ITEM_BYTES[dtype])}"
        return f"({start}).to(tl.pointer_type(tl.{dtype})){shift}"

    def _scalar(self, value: int | str) -> str:
        """A number, known when compiling or not."""
        return self.rng.choice((f"{value}", f"({value} + tl.minimum(n, 0))"))

    def _place(self, shape: str) -> str:
        """An index of a shape whose elements differ, from -48 to 6 B + 48."""
        scalar, shift = self._scalar, self.rng.randint(0, 9)
        if shape == "V":
            return self.rng.choice((
                f"i + {shift}", f"(B - 1 - i) + {shift}", f"i * {scalar(2)}", "(i ^ 1)",
                f"(i + {shift}) % B", "i * -1 + B", f"i * 3 + {shift}", "i",
            ))  # fmt: skip
        rows, columns = "r[:, None]", "c[None, :]"
        row_major = self.rng.choice(("N", "N + 3", "2 * N", "N * 3 + 1"))
        column_major = self.rng.choice(("M", "M + 1", "2 * M"))
        text = self.rng.choice((
            f"{rows} * {scalar(row_major)} + {columns}",
            f"{rows} + {columns} * {scalar(column_major)}",
            f"(M - 1 - {rows}) * {scalar('N')} + {columns}",
            f"{rows} * N + (N - 1 - {columns})",
            f"(M - 1 - {rows}) + {columns} * {scalar('M')}",
            f"{rows} + (({columns} + 1) % N) * M",
            f"(({rows} + {shift}) % M) * N + {columns}",
            f"{rows} * 2 * N + {columns} * 2",
            f"{rows} * {scalar(2)} + {columns} * 2 * M",
            "rc", "(rc ^ 1)",
        ))  # fmt: skip
        if shape == "T":
            return text
        inner, outer = "tl.arange(0, 2)[None, None, :]", f"({text})[:, :, None]"
        far = f"{outer} + {inner} * {scalar('(4 * B)')}"
        return far if self.roll(0.5) else f"{outer} * 2 + {inner}"

    def _mask(self, shape: str) -> tuple[str, str]:
        """A mask argument, and an `other` unless masked elements are never looked at."""
        if self.roll(0.5):
            return "", ""
        place = _PLACES[shape]
        mask = self.rng.choice((
            f"{place} < {self.rng.choice((1, 17, 100, 400))}", f"{place} < B - 3",
            f"({place} % 3) != 1", f"{place} >= n % 13", f"{place} < n",
        ))  # fmt: skip
        return f", mask={mask}", self.rng.choice(("", ", other=1"))
