"""Random expressions of a kind; `forms` holds the many ways to build one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.fuzz.indices import PLACE, counting, irregular
from tests.fuzz.program import PLACES, SHAPES, Kind
from tests.fuzz.vocabulary import COMMON, LIMITS, NUMBERS, Made, Vocabulary


class Expressions(Vocabulary):
    """Writes expressions over the variables in scope."""

    def expression(self, kind: Kind, depth: int) -> Made:
        """An expression of a kind and the bound of its magnitude."""
        if kind.dtype == "int1":
            return self.truth(kind, depth), 0
        for _ in range(6):
            text, bound = self.number(kind, depth)
            if bound <= LIMITS.get(kind.dtype, bound):
                return text, bound
        return self.leaf(kind)

    def number(self, kind: Kind, depth: int) -> Made:
        """An expression of a number kind; its bound may exceed what the dtype holds exactly."""
        if depth == 0:
            return self.leaf(kind)
        forms = [form for form in FORMS if form.fits(self, kind)]
        (chosen,) = self.rng.choices(forms, [form.weight for form in forms])
        return chosen.write(self, kind, depth - 1)

    def operand(self, kind: Kind, depth: int) -> Made:
        """An operand that broadcasts to the kind."""
        narrower = {"V": "S", "T": "SRC", "U": "S", "R": "S", "C": "S"}.get(kind.shape, "")
        if narrower and self.roll(0.25):
            shape = self.rng.choice(narrower)
            text, bound = self.expression(Kind(kind.dtype, shape), depth)
            if kind.shape == "T" and shape in "RC":
                text = f"({text})[:, None]" if shape == "R" else f"({text})[None, :]"
            return text, bound
        return self.expression(kind, depth)

    def leaf(self, kind: Kind) -> Made:
        """A variable, a load or a constant."""
        known = [v for v in self.scope if v.kind == kind]
        if known and self.roll(0.8):
            chosen = self.rng.choice(known[-6:])
            return chosen.name, chosen.bound
        if self.roll(0.85):
            return self.load(self.table(kind.dtype), kind)
        value = self.rng.randint(0, 7)
        text = f"tl.full({SHAPES[kind.shape]}, {value}, tl.{kind.dtype})"
        return text, value if kind.dtype in LIMITS else 0

    def load(self, table: str, kind: Kind) -> Made:
        """A load at indices within the table, some of them computed, some masked."""
        index = self.rng.choice(list(self.indices(kind)))
        bound = 8 if kind.dtype in LIMITS else 0
        roll = self.rng.random()
        if roll < 0.4 or kind.shape == "S":
            return f"tl.load({table} + {index})", bound
        in_range = f"({PLACES[kind.shape]}) < n"
        mask = in_range if roll < 0.7 else self.expression(Kind("int1", kind.shape), 0)[0]
        other = "0" if kind.dtype != "int1" else "False"
        return f"tl.load({table} + {index}, mask={mask}, other={other})", bound

    def indices(self, kind: Kind) -> Iterator[str]:
        """Index expressions of a shape that stay within a table."""
        place = PLACES[kind.shape]
        yield f"(({place}) & 1023)"
        yield f"((({place}) * {self.rng.randint(2, 7)} + {self.rng.randint(0, 99)}) & 1023)"
        yield f"(1023 - (({place}) & 1023))"
        yield f"(({place}) % n & 1023)"
        known = [v.name for v in self.scope if v.kind == Kind("int32", kind.shape)]
        yield f"({self.rng.choice(known)} & 1023)" if known else f"(({place}) // 3 & 1023)"
        scalar = self.expression(Kind("int32", "S"), 0)[0]
        if kind.shape != "S":
            yield irregular(self.rng, PLACE[kind.shape])
            dtype = self.rng.choice(("int8", "uint8"))
            start = self.expression(Kind(dtype, "S"), 0)[0]
            narrow = counting(self.rng, PLACE[kind.shape], dtype, start)
            yield f"{self.rng.randint(130, 700)} + {narrow}"
        if kind.shape == "V":
            yield f"tl.multiple_of(({scalar} & 15) * 16, 16) + (tl.max_contiguous(i, B) & 511)"

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
        number = Kind(self.rng.choice(COMMON), kind.shape)
        x, y = (self.expression(number, max(0, depth - 1))[0] for _ in range(2))
        return f"({x} {self.rng.choice(('<', '<=', '>', '>=', '==', '!='))} {y})"

    def condition(self) -> str:
        """A scalar condition, by the program's id or by data."""
        return self.rng.choice((
            f"pid % {self.rng.randint(2, 3)} == 0",
            f"n > {self.rng.randint(1, 2000)}",
            self.expression(Kind("int1", "S"), 1)[0],
        ))  # fmt: skip


Write = Callable[[Expressions, Kind, int], Made]


@dataclass(frozen=True)
class Form:
    """One way to write an expression: how often, for which kinds, and the writer."""

    weight: int
    shapes: str
    dtypes: tuple[str, ...]
    fits_more: Callable[[Expressions, Kind], bool]
    write: Write

    def fits(self, made: Expressions, kind: Kind) -> bool:
        """Whether the form writes expressions of this kind."""
        is_listed = kind.shape in self.shapes and kind.dtype in self.dtypes
        return is_listed and self.fits_more(made, kind)


FORMS: list[Form] = []


def form(
    weight: int,
    shapes: str = "SVRCTU",
    dtypes: tuple[str, ...] = NUMBERS,
    fits: Callable[[Expressions, Kind], bool] = lambda made, kind: True,
) -> Callable[[Write], Write]:
    """Register a writer of expressions."""

    def declare(write: Write) -> Write:
        FORMS.append(Form(weight, shapes, dtypes, fits, write))
        return write

    return declare
