"""Random expressions as published kernels write them: integers of all widths, positions, views.

A text has a kind (integers, floats, bools) and a shape to which it broadcasts. Floats stay small,
and what is summed is whole, so that no order shows.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float16", "bfloat16", "float64", "float8e5", "float8e4nv")
TABLE = 1024
"""Elements of every array that is read, a power of two."""
SHAPES = {"S": "()", "V": "(N,)", "T": "(M, N)", "R": "(M, 1)", "C": "(1, N)", "O": "(1, 1)",
          "D": "(L, M, N)"}  # fmt: skip
# What broadcasts to each shape.
_FITS = {"S": "S", "V": "VVS", "T": "TTTRCOS", "R": "RROS", "C": "CCOS", "O": "OS", "D": "DDDS"}
# Where a tile of a shape comes from by a fold: the larger shape and how the fold ends.
_FOLDS = {
    "S": (("V", "0"), ("V", "None"), ("T", "None"), ("D", "None")),
    "V": (("T", "0"),),
    "R": (("T", "1, keep_dims=True"),),
    "C": (("T", "0, keep_dims=True"),),
    "T": (("D", "0"),),
}
_COUNTS = {"V": "i", "T": "(r * N + c)", "R": "r", "C": "c", "D": "(d * M * N + r * N + c)"}


@dataclass(frozen=True)
class Name:
    """A variable in scope."""

    name: str
    dtype: str
    shape: str


@dataclass
class Expressions:
    """What may be named, and the random choices."""

    rng: random.Random
    scope: list[Name] = field(default_factory=list[Name])

    def named(self, dtypes: tuple[str, ...], shape: str) -> str:
        """A variable of some of the dtypes that broadcasts to the shape, or a count."""
        fitting = [v for v in self.scope if v.dtype in dtypes and v.shape in _FITS[shape]]
        if fitting and self.rng.random() < 0.85:
            chosen = self.rng.choice(fitting)
            return f"{chosen.name}.to(tl.float32)" if "float8" in chosen.dtype else chosen.name
        count = _COUNTS.get(shape, "pid")
        if dtypes == INTEGERS:
            return count
        if dtypes == FLOATS:
            return f"({count} & 7).to(tl.{self.rng.choice(FLOATS[:4])})"
        return f"(({count} & {self.rng.randint(1, 5)}) == 1)"

    def integer(self, shape: str, depth: int) -> str:
        """Integers of any width."""
        if depth <= 0 or self.rng.random() < 0.15:
            return self.named(INTEGERS, shape)
        return self.rng.choice(_forms(_INTEGER_FORMS, shape))(self, shape, depth - 1)

    def floating(self, shape: str, depth: int) -> str:
        """Floats of any width but 8 bits."""
        if depth <= 0 or self.rng.random() < 0.15:
            return self.named(FLOATS, shape)
        return self.rng.choice(_forms(_FLOAT_FORMS, shape))(self, shape, depth - 1)

    def boolean(self, shape: str, depth: int) -> str:
        """Bools."""
        if depth <= 0 or self.rng.random() < 0.1:
            return self.named(("int1",), shape)
        return self.rng.choice(_forms(_BOOL_FORMS, shape))(self, shape, depth - 1)

    def exact(self, dtype: str, shape: str, depth: int) -> str:
        """A tile of this very dtype and shape."""
        if dtype == "int1":
            text = self.boolean(shape, depth)
        elif dtype in INTEGERS:
            text = f"({self.integer(shape, depth)}).to(tl.{dtype})"
        else:
            text = f"(({self.floating(shape, depth)}) % 32.0).to(tl.{dtype})"
        return text if shape == "S" else f"tl.broadcast_to({text}, {SHAPES[shape]})"

    def finite(self, shape: str, depth: int) -> str:
        """Floats without NaN, from -100 to 100, in float32."""
        text = f"({self.floating(shape, depth)}).to(tl.float32)"
        return f"finite({text})"

    def index(self, shape: str, depth: int, size: int | str = TABLE) -> str:
        """Positions from 0 to a power of two, 32 or 64 bits wide."""
        dtype = self.rng.choice(("int32", "int32", "int64", "uint32"))
        if self.rng.random() < 0.3:
            there = self.integer(shape, 0)
            text = f"tl.where({self.boolean(shape, 0)}, {there}, {self.integer(shape, depth)})"
        else:
            text = self.integer(shape, depth)
        return f"(({text}).to(tl.{dtype}) & ({size} - 1))"

    def load(self, table: str, shape: str, depth: int) -> str:
        """Elements of a table, by positions that are computed or loaded."""
        at = self.index(shape, depth)
        if shape != "S":
            at = f"tl.broadcast_to({at}, {SHAPES[shape]})"
        if self.rng.random() < 0.25:
            at = f"tl.load(places + {at})"
        if self.rng.random() < 0.5:
            return f"tl.load({table} + {at})"
        return f"tl.load({table} + {at}, mask={self.boolean(shape, 1)}, other=0)"


Form = Callable[[Expressions, str, int], str]
_INTEGER_FORMS: list[tuple[str, Form]] = []
_FLOAT_FORMS: list[tuple[str, Form]] = []
_BOOL_FORMS: list[tuple[str, Form]] = []


def _forms(forms: list[tuple[str, Form]], shape: str) -> list[Form]:
    return [form for shapes, form in forms if shape in shapes]


def _form(
    forms: list[tuple[str, Form]], shapes: str = "SVTRCOD", weight: int = 1
) -> Callable[[Form], Form]:
    def register(form: Form) -> Form:
        forms.extend([(shapes, form)] * weight)
        return form

    return register


@_form(_INTEGER_FORMS, weight=3)
def _arithmetic(g: Expressions, shape: str, depth: int) -> str:
    sign = g.rng.choice("+-*&|^")
    if g.rng.random() < 0.3:
        return f"({g.integer(shape, depth)} {sign} {g.rng.randint(0, 15)})"
    return f"({g.integer(shape, depth)} {sign} {g.integer(shape, depth)})"


@_form(_INTEGER_FORMS, weight=2)
def _quotient(g: Expressions, shape: str, depth: int) -> str:
    dtype, sign = g.rng.choice(INTEGERS), g.rng.choice(("//", "%"))
    x, y = g.integer(shape, depth), g.integer(shape, depth)
    if g.rng.random() < 0.4:
        return f"(({x}).to(tl.{dtype}) {sign} {g.rng.choice((1, 2, 3, 7, 8, 100))})"
    return f"(({x}).to(tl.{dtype}) {sign} ((({y}).to(tl.{dtype}) & 15) + 1))"


@_form(_INTEGER_FORMS)
def _shift(g: Expressions, shape: str, depth: int) -> str:
    dtype, sign = g.rng.choice(INTEGERS), g.rng.choice(("<<", ">>"))
    x, y = g.integer(shape, depth), g.integer(shape, 0)
    if g.rng.random() < 0.5:
        return f"(({x}).to(tl.{dtype}) {sign} {g.rng.choice((*range(8), 8, 31, 32, 64))})"
    return f"(({x}).to(tl.{dtype}) {sign} (({y}).to(tl.{dtype}) & {g.rng.choice((7, 7, 127))}))"


@_form(_INTEGER_FORMS)
def _wide(g: Expressions, shape: str, depth: int) -> str:
    """Index arithmetic beyond 32 bits that comes back."""
    far = g.rng.choice((1 << 32, (1 << 31) - 1, 3_000_000_000))
    return f"((({g.integer(shape, depth)}).to(tl.int64) & 4095) * {far} // {far})"


@_form(_INTEGER_FORMS, weight=2)
def _chosen_integer(g: Expressions, shape: str, depth: int) -> str:
    x, y = g.integer(shape, depth), g.integer(shape, depth)
    kind = g.rng.randint(0, 3)
    if kind == 0:
        return f"tl.{g.rng.choice(('maximum', 'minimum'))}({x}, {y})"
    if kind == 1:
        inner = f"tl.where({g.boolean(shape, depth)}, {y}, {g.integer(shape, 0)})"
        return f"tl.where({g.boolean(shape, depth)}, {x}, {inner})"
    if kind == 2:
        return f"({x} if {g.boolean('S', 1)} else {x} + 1)"
    return f"tl.where({g.boolean(shape, depth)}, {x}, {g.rng.randint(0, 9)})"


@_form(_INTEGER_FORMS)
def _one_integer(g: Expressions, shape: str, depth: int) -> str:
    x = g.integer(shape, depth)
    return g.rng.choice((f"(-{x})", f"(~{x})", f"tl.abs({x})",
                         f"({x}).to(tl.{g.rng.choice(INTEGERS)})"))  # fmt: skip


@_form(_INTEGER_FORMS)
def _counted_bool(g: Expressions, shape: str, depth: int) -> str:
    return f"({g.boolean(shape, depth)} + {g.integer(shape, depth)})"


@_form(_INTEGER_FORMS)
def _from_float(g: Expressions, shape: str, depth: int) -> str:
    text, dtype = g.finite(shape, depth), g.rng.choice(INTEGERS)
    return f"tl.abs({text}).to(tl.{dtype})" if dtype[0] == "u" else f"{text}.to(tl.{dtype})"


@_form(_INTEGER_FORMS)
def _bits(g: Expressions, shape: str, depth: int) -> str:
    text = g.finite(shape, depth)
    source, target = g.rng.choice((
        ("float32", "int32"), ("float16", "int16"), ("bfloat16", "uint16"), ("float64", "int64"),
        ("float8e5", "int8"), ("float8e4nv", "uint8"), ("float32", "uint32"),
    ))  # fmt: skip
    return f"({text} + 0.0).to(tl.{source}).to(tl.{target}, bitcast=True)"


@_form(_INTEGER_FORMS, weight=2)
def _loaded_integer(g: Expressions, shape: str, depth: int) -> str:
    return g.load(f"t_{g.rng.choice(INTEGERS)}", shape, depth)


@_form(_INTEGER_FORMS, "SVRCT", weight=2)
def _folded_integer(g: Expressions, shape: str, depth: int) -> str:
    source, axis = g.rng.choice(_FOLDS[shape])
    dtype = g.rng.choice(("int32", "int64", "uint32", "int8", "uint16"))
    x = g.exact(dtype, source, depth)
    if dtype in ("int8", "uint16") or g.rng.random() < 0.4:
        return f"tl.{g.rng.choice(('max', 'min'))}({x}, {axis})"
    return f"tl.sum({x}, {axis})"


@_form(_INTEGER_FORMS, "SV")
def _place(g: Expressions, shape: str, depth: int) -> str:
    source, axis = ("V", "0") if shape == "S" else ("T", "0")
    name = g.rng.choice(("argmax", "argmin"))
    return f"tl.{name}({g.exact(g.rng.choice(INTEGERS), source, depth)}, {axis})"


@_form(_INTEGER_FORMS, "SVT")
def _hits(g: Expressions, shape: str, depth: int) -> str:
    source, axis = g.rng.choice(_FOLDS[shape])
    return f"tl.sum({g.exact('int1', source, depth)}.to(tl.int32), {axis})"


@_form(_INTEGER_FORMS, "VTD", weight=2)
def _scanned(g: Expressions, shape: str, depth: int) -> str:
    axis = g.rng.randint(0, {"V": 0, "T": 1, "D": 2}[shape])
    reverse = ", reverse=True" if g.rng.random() < 0.3 else ""
    x = g.exact(g.rng.choice(("int32", "int64", "uint32")), shape, depth)
    if g.rng.random() < 0.4:
        y = g.exact("int32", shape, 0)
        kind, which = g.rng.choice(("later", "affine")), g.rng.randint(0, 1)
        return f"tl.associative_scan(({x}, {y}), {axis}, {kind}{reverse})[{which}]"
    return f"tl.cumsum({x}, {axis}{reverse})"


@_form(_INTEGER_FORMS, "VT")
def _gathered(g: Expressions, shape: str, depth: int) -> str:
    axis = g.rng.randint(0, 1) if shape == "T" else 0
    size = "N" if shape == "V" else ("M", "N")[axis]
    x = g.exact(g.rng.choice(INTEGERS), shape, depth)
    at = f"tl.broadcast_to({g.index(shape, depth, size)}, {SHAPES[shape]})"
    return f"tl.gather({x}, {at}.to(tl.int32), {axis})"


@_form(_INTEGER_FORMS, "V")
def _ordered(g: Expressions, shape: str, depth: int) -> str:
    x = g.exact(g.rng.choice(INTEGERS), "V", depth)
    return g.rng.choice((f"tl.sort({x})", f"tl.sort({x}, descending=True)", f"tl.flip({x}, 0)",
                         f"tl.histogram(({x} & 31).to(tl.int32), N)"))  # fmt: skip


@_form(_INTEGER_FORMS, "TD")
def _moved(g: Expressions, shape: str, depth: int) -> str:
    if shape == "T":
        x = g.exact(g.rng.choice(INTEGERS), "T", depth)
        turned = f"tl.reshape(tl.trans({x}), (M, N))"
        return g.rng.choice((turned, f"tl.reshape(tl.ravel({x}), (M, N))", f"tl.flip({x}, 1)"))
    x = g.exact(g.rng.choice(INTEGERS), "D", depth)
    order = g.rng.choice(("2, 0, 1", "1, 0, 2", "0, 2, 1", "2, 1, 0"))
    turned = f"tl.reshape(tl.permute({x}, ({order})), (L, M, N))"
    return g.rng.choice((turned, f"tl.flip({x}, {g.rng.randint(0, 2)})"))


@_form(_INTEGER_FORMS, "D", weight=2)
def _deepened(g: Expressions, shape: str, depth: int) -> str:
    x = g.exact(g.rng.choice(INTEGERS), "T", depth)
    return f"(tl.expand_dims({x}, 0) * (d + 1))"


@_form(_INTEGER_FORMS, "V")
def _joined(g: Expressions, shape: str, depth: int) -> str:
    x = g.exact(g.rng.choice(INTEGERS), "V", depth)
    return f"crossed({x}, N, {g.rng.randint(0, 3)})"


@_form(_INTEGER_FORMS, "SVT")
def _called(g: Expressions, shape: str, depth: int) -> str:
    x, y = g.exact("int32", shape, depth), g.exact("int32", shape, 0)
    mode = g.rng.randint(0, 3)
    return f"several({x}, {y}, {g.integer('S', 1)}, {mode})[{g.rng.randint(0, 1)}]"


@_form(_INTEGER_FORMS, "T")
def _product(g: Expressions, shape: str, depth: int) -> str:
    x, y = g.exact("int8", "T", depth), g.exact("int8", "T", 0)
    return f"tl.dot(tl.dot({x}, tl.trans({y})).to(tl.int8), {g.exact('int8', 'T', 0)})"


@_form(_FLOAT_FORMS, weight=3)
def _sum(g: Expressions, shape: str, depth: int) -> str:
    x, sign = g.floating(shape, depth), g.rng.choice("+-*")
    if g.rng.random() < 0.3:
        return f"({x} {sign} {g.rng.choice((0.5, 1.0, 2.0, 3))})"
    return f"({x} {sign} {g.floating(shape, depth)})"


@_form(_FLOAT_FORMS)
def _one_float(g: Expressions, shape: str, depth: int) -> str:
    x = g.floating(shape, depth)
    small = f"({x} % 32.0)"
    return g.rng.choice((f"(-{x})", f"tl.abs({x})", f"tl.floor(({x}).to(tl.float32))",
                         f"{small}.to(tl.{g.rng.choice(FLOATS)}).to(tl.float32)",
                         f"({x} / {g.rng.choice((2.0, 4.0, 0.5))})"))  # fmt: skip


@_form(_FLOAT_FORMS, weight=2)
def _chosen_float(g: Expressions, shape: str, depth: int) -> str:
    x, y = g.floating(shape, depth), g.floating(shape, depth)
    if g.rng.random() < 0.5:
        return f"tl.{g.rng.choice(('maximum', 'minimum'))}({x}, {y})"
    return f"tl.where({g.boolean(shape, depth)}, {x}, {g.rng.choice((y, '0.0', '-1.5'))})"


@_form(_FLOAT_FORMS)
def _from_integer(g: Expressions, shape: str, depth: int) -> str:
    x = f"({g.integer(shape, depth)} & 15)"
    return g.rng.choice((f"{x}.to(tl.{g.rng.choice(FLOATS[:4])})", f"({x} / 4)", f"({x} * 0.5)",
                         f"({x} + {g.floating(shape, depth)})"))  # fmt: skip


@_form(_FLOAT_FORMS)
def _rebuilt(g: Expressions, shape: str, depth: int) -> str:
    """Bits made of integers: a sign, an exponent near 0 and a mantissa."""
    x = f"({g.integer(shape, depth)}).to(tl.int32)"
    return f"((({x}) & -2088763393) ^ 1065353216).to(tl.float32, bitcast=True)"


@_form(_FLOAT_FORMS, weight=2)
def _loaded_float(g: Expressions, shape: str, depth: int) -> str:
    dtype = g.rng.choice(FLOATS)
    text = g.load(f"t_{dtype}", shape, depth)
    return f"{text}.to(tl.float32)" if "float8" in dtype else text


@_form(_FLOAT_FORMS, "SVRCT", weight=2)
def _folded_float(g: Expressions, shape: str, depth: int) -> str:
    source, axis = g.rng.choice(_FOLDS[shape])
    x = f"finite({g.exact('float32', source, depth)})"
    if g.rng.random() < 0.5:
        return f"tl.{g.rng.choice(('max', 'min'))}({x}, {axis})"
    return f"tl.sum(tl.floor({x} % 8.0), {axis})"


@_form(_FLOAT_FORMS, "T")
def _float_product(g: Expressions, shape: str, depth: int) -> str:
    x, y = (f"tl.floor(finite({g.exact('float32', 'T', n)}) % 4.0)" for n in (depth, 0))
    dtype = g.rng.choice(("float16", "float32", "bfloat16"))
    inner = f"tl.dot({x}.to(tl.{dtype}), tl.trans({y}.to(tl.{dtype})), input_precision='ieee')"
    z = f"tl.floor(finite({g.exact('float32', 'T', 0)}) % 4.0)"
    acc = g.rng.choice(("", ", (r + c).to(tl.float32)"))
    return f"tl.dot({inner} % 8.0, {z}{acc}, input_precision='ieee')"


@_form(_BOOL_FORMS, weight=3)
def _compared(g: Expressions, shape: str, depth: int) -> str:
    sign = g.rng.choice(("<", "<=", ">", ">=", "==", "!="))
    if g.rng.random() < 0.3:
        return f"({g.floating(shape, depth)} {sign} {g.floating(shape, depth)})"
    y = g.integer(shape, depth) if g.rng.random() < 0.7 else str(g.rng.randint(0, 9))
    return f"({g.integer(shape, depth)} {sign} {y})"


@_form(_BOOL_FORMS)
def _logic(g: Expressions, shape: str, depth: int) -> str:
    x, y = g.boolean(shape, depth), g.boolean(shape, depth)
    return g.rng.choice((f"({x} & {y})", f"({x} | {y})", f"({x} ^ {y})", f"(~{x})",
                         f"({x} == {y})", f"({x} != {y})"))  # fmt: skip


@_form(_BOOL_FORMS)
def _chosen_bool(g: Expressions, shape: str, depth: int) -> str:
    x, y = g.boolean(shape, depth), g.boolean(shape, depth)
    return f"tl.where({g.boolean(shape, 0)}, {x}, {y})"


@_form(_BOOL_FORMS)
def _nonzero(g: Expressions, shape: str, depth: int) -> str:
    return f"({g.integer(shape, depth)}).to(tl.int1)"


@_form(_BOOL_FORMS)
def _loaded_bool(g: Expressions, shape: str, depth: int) -> str:
    return g.load("t_int1", shape, depth)
