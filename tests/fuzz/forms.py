"""The forms of elementwise expressions, reductions, scans and products.

Each takes the program so far, a kind and how deep operands may be, and gives the text and the
bound of its magnitude.
"""

from __future__ import annotations

from tests.fuzz.expressions import Expressions, form
from tests.fuzz.program import Kind
from tests.fuzz.vocabulary import INTEGERS, LIMITS, NUMBERS, Made

WIDE_FLOATS = ("float32", "float64")
WORDS = ("int32", "int64", "uint32", "uint64")


@form(2)
def leaf(g: Expressions, kind: Kind, depth: int) -> Made:
    """A leaf, whatever depth is left."""
    return g.leaf(kind)


@form(6)
def arithmetic(g: Expressions, kind: Kind, depth: int) -> Made:
    (x, bx), (y, by) = g.expression(kind, depth), g.operand(kind, depth)
    sign = g.rng.choice("+-*")
    return f"({x} {sign} {y})", bx * by if sign == "*" else bx + by


@form(1)
def unary(g: Expressions, kind: Kind, depth: int) -> Made:
    x, bound = g.expression(kind, depth)
    return g.rng.choice((f"(-{x})", f"tl.abs({x})")), bound


@form(2)
def extremum(g: Expressions, kind: Kind, depth: int) -> Made:
    (x, bx), (y, by) = g.expression(kind, depth), g.operand(kind, depth)
    return f"tl.{g.rng.choice(('maximum', 'minimum'))}({x}, {y})", max(bx, by)


@form(1)
def clamp(g: Expressions, kind: Kind, depth: int) -> Made:
    x = g.expression(kind, depth)[0]
    low, high = g.rng.randint(0, 3), g.rng.randint(3, 8)
    if kind.dtype not in LIMITS:
        return f"tl.minimum(tl.maximum({x}, {low}), {high})", 0
    return f"tl.clamp({x}, {-low}.0, {high}.0)", high


@form(3)
def select(g: Expressions, kind: Kind, depth: int) -> Made:
    test = g.expression(Kind("int1", kind.shape), depth)[0]
    (x, bx), (y, by) = g.expression(kind, depth), g.operand(kind, depth)
    return f"tl.where({test}, {x}, {y})", max(bx, by)


@form(1)
def ternary(g: Expressions, kind: Kind, depth: int) -> Made:
    (x, bx), (y, by) = g.expression(kind, depth), g.expression(kind, depth)
    return f"({x} if {g.condition()} else {y})", max(bx, by)


@form(1)
def call(g: Expressions, kind: Kind, depth: int) -> Made:
    (x, bx), (y, by) = g.expression(kind, depth), g.expression(kind, depth)
    if g.roll(0.5):
        return f"helper({x}, {y})", 2 * bx + by
    test = g.expression(Kind("int32", "S"), depth)[0]
    return f"pick({x}, {y}, {test})", max(bx, by)


@form(1, dtypes=("int32", "float32", "int64", "float16"))
def mapped(g: Expressions, kind: Kind, depth: int) -> Made:
    """A function with branches for each element."""
    (x, bx), (y, by) = g.expression(kind, depth), g.expression(kind, depth)
    bound = bx + by + 1 if kind.dtype in LIMITS else 0
    return f"tl.map_elementwise(branchy, {x}, {y})", bound


@form(3)
def cast(g: Expressions, kind: Kind, depth: int) -> Made:
    """A conversion whose result is defined and, for floats, exact."""
    source = g.rng.choice((*NUMBERS, "int1"))
    text, bound = g.expression(Kind(source, kind.shape), depth)
    target = f".to(tl.{kind.dtype})"
    if source == "int1":
        return f"({text}){target}", int(kind.dtype in LIMITS)
    if source in LIMITS and kind.dtype in LIMITS:
        is_narrowing = LIMITS[source] > LIMITS[kind.dtype] and kind.dtype in ("float16", "float32")
        if is_narrowing and source in ("float32", "float64") and g.roll(0.3):
            target = f".to(tl.{kind.dtype}, fp_downcast_rounding='rtz')"
        return f"({text}){target}", bound
    if source in LIMITS:
        if bound > 127:
            text = f"tl.minimum(tl.maximum({text}, -100.0), 100.0)"
        text = f"tl.abs({text})" if kind.dtype.startswith("u") else f"({text})"
        return f"{text}{target}", 0
    if kind.dtype in LIMITS:
        mask = min(15, LIMITS[kind.dtype] - 1)
        return f"(({text}) & {mask}){target}", mask
    return f"({text}){target}", 0


@form(1, dtypes=("int32", "uint32", "int64", "int16"))
def bits(g: Expressions, kind: Kind, depth: int) -> Made:
    """The bits of a float; the sum with zero leaves one sign of zero."""
    source = {"int32": "float32", "uint32": "int32", "int64": "float64", "int16": "float16"}
    dtype = source[kind.dtype]
    x = g.expression(Kind(dtype, kind.shape), depth)[0]
    zero = " + 0.0" if dtype in LIMITS else ""
    return f"({x}{zero}).to(tl.{kind.dtype}, bitcast=True)", 0


@form(3, dtypes=INTEGERS)
def bitwise(g: Expressions, kind: Kind, depth: int) -> Made:
    x, y = g.expression(kind, depth)[0], g.operand(kind, depth)[0]
    sign = g.rng.choice(("&", "|", "^", "<<", ">>", "~"))
    if sign == "~":
        return f"(~{x})", 0
    return (f"({x} {sign} (({y}) & 7))" if sign in ("<<", ">>") else f"({x} {sign} {y})"), 0


@form(2, dtypes=INTEGERS)
def division(g: Expressions, kind: Kind, depth: int) -> Made:
    x, y = g.expression(kind, depth)[0], g.operand(kind, depth)[0]
    return f"({x} {g.rng.choice(('//', '%'))} ((({y}) & 7) + 1))", 0


@form(1, dtypes=WORDS)
def high_product(g: Expressions, kind: Kind, depth: int) -> Made:
    x, y = g.expression(kind, depth)[0], g.expression(kind, depth)[0]
    return f"tl.umulhi({x}, {y})", 0


@form(1, dtypes=WIDE_FLOATS)
def exact_math(g: Expressions, kind: Kind, depth: int) -> Made:
    """Functions of floats with exact results on whole numbers."""
    x, bound = g.expression(kind, depth)
    if bound * bound <= LIMITS[kind.dtype] and g.roll(0.4):
        return f"tl.sqrt({x} * {x})", bound
    name = g.rng.choice(("floor", "ceil"))
    return f"tl.{name}({x} * {g.rng.choice((0.5, 0.25, -0.5))})", bound + 1


@form(1, dtypes=tuple(LIMITS))
def remainder(g: Expressions, kind: Kind, depth: int) -> Made:
    """C's fmod; `%` of narrow floats gives fp32."""
    x, bound = g.expression(kind, depth)
    text = f"({x} % {g.rng.randint(1, 7)}.0)"
    return text if kind.dtype in WIDE_FLOATS else f"{text}.to(tl.{kind.dtype})", bound


_SOURCES = {
    "S": (("V", "axis=0"), ("R", "axis=0"), ("T", "axis=None")),
    "R": (("T", "axis=1"), ("U", "axis=0")),
    "C": (("T", "axis=0"), ("U", "axis=1")),
}


@form(3, shapes="SRC")
def reduced(g: Expressions, kind: Kind, depth: int) -> Made:
    """A reduction of a larger tile to this kind."""
    source, axis = g.rng.choice(_SOURCES[kind.shape])
    x, bound = g.expression(Kind(kind.dtype, source), depth)
    functions = ["sum", "max", "min"] + (["xor_sum"] if kind.dtype in INTEGERS else [])
    function = g.rng.choice(functions)
    if axis != "axis=None" and kind.dtype == "int32" and g.roll(0.3):
        return f"tl.{g.rng.choice(('argmax', 'argmin'))}({x}, {axis})", 0
    if g.roll(0.3):
        return f"tl.reduce({x}, {axis[5:]}, {g.rng.choice(('greater', 'leftmost'))})", bound
    if kind.dtype in WORDS and g.roll(0.2):
        maps = f"tl.reduce(({x} | 1, {x}), {axis[5:]}, then)"
        return f"{maps}[{g.rng.randint(0, 1)}].to(tl.{kind.dtype})", 0
    if axis != "axis=None" and kind.dtype == "int32" and g.roll(0.3):
        place = {"V": "i", "R": "r", "T": "rc", "U": "cr"}[source]
        return f"tl.reduce(({x}, {place}), {axis[5:]}, pair_max)[{g.rng.randint(0, 1)}]", 0
    text = f"tl.{function}({x}, {axis}).to(tl.{kind.dtype})"
    return text, bound * g.rows * g.columns if function == "sum" else bound


_PLACES = {"V": ("i",), "R": ("r",), "T": ("r[:, None]", "c[None, :]"),
           "U": ("c[:, None]", "r[None, :]")}  # fmt: skip


@form(2, shapes="SRC")
def masked_fold(g: Expressions, kind: Kind, depth: int) -> Made:
    """A reduction of what masks along the axis, and perhaps across it, leave."""
    source, axis = g.rng.choice(_SOURCES[kind.shape])
    (x, bound), (y, by) = (g.expression(Kind(kind.dtype, source), depth) for _ in range(2))
    ends = (str(g.rng.randint(0, 40)), "pid * 3 + 2", g.expression(Kind("int32", "S"), 0)[0])
    tests = [f"({place} < {g.rng.choice(ends)})" for place in _PLACES[source]]
    mask = " & ".join(tests if g.roll(0.5) else [g.rng.choice(tests)])
    other = g.rng.choice((0, 0, 0, 1) if kind.dtype in INTEGERS else (0.0, 0.0, -0.0, 1.0))
    chosen = f"tl.where({mask}, {x}, {other})"
    if bound * by <= LIMITS.get(kind.dtype, 0) and g.roll(0.5):
        chosen, bound = f"({chosen} * tl.where({mask}, {y}, {other}))", bound * by
    function = g.rng.choice(("sum", "sum", "max", "min"))
    text = f"tl.{function}(({chosen}).to(tl.{kind.dtype}), {axis}).to(tl.{kind.dtype})"
    if kind.dtype in INTEGERS:
        return text, 0
    return text, max(1, bound) * (g.rows * g.columns if function == "sum" else 1)


@form(1, shapes="VTU")
def scan(g: Expressions, kind: Kind, depth: int) -> Made:
    """A running sum, product or maximum."""
    x, bound = g.expression(kind, depth)
    axis = 0 if kind.shape == "V" else g.rng.randint(0, 1)
    reverse = ", reverse=True" if g.roll(0.3) else ""
    if g.roll(0.3):
        function = g.rng.choice(("greater", "leftmost"))
        return f"tl.associative_scan({x}, {axis}, {function}{reverse})", bound
    if kind.dtype == "int32" and g.roll(0.2):
        place = {"V": "i", "T": "rc", "U": "cr"}[kind.shape]
        scanned = f"tl.associative_scan(({x}, {place}), {axis}, pair_max{reverse})"
        return f"{scanned}[{g.rng.randint(0, 1)}]", 0
    name = "cumprod" if kind.dtype in WORDS and g.roll(0.4) else "cumsum"
    text = f"tl.{name}({x}, axis={axis}{reverse}).to(tl.{kind.dtype})"
    return text, bound * g.rows * g.columns


@form(4, shapes="T", dtypes=("float32", "int32", "float64"))
def dot(g: Expressions, kind: Kind, depth: int) -> Made:
    """Two products: (M, N) with (N, M), then with (M, N) again."""
    if kind.dtype == "int32":
        x, y, z = (g.expression(Kind("int8", s), depth)[0] for s in "TUT")
        return f"tl.dot(tl.dot({x}, {y}).to(tl.int8), {z})", 0
    narrow = ("float32", "float32", "float16", "bfloat16", "float8e4nv", "float8e5")
    dtype = g.rng.choice(narrow) if kind.dtype == "float32" else "float64"
    (x, bx), (y, by) = (g.expression(Kind(dtype, s), depth) for s in "TU")
    product, bound = f"tl.dot({x}, {y}, input_precision='ieee')", bx * by * g.columns
    z, bz = g.expression(Kind(kind.dtype, "T"), depth)
    acc, more = "", 0
    if g.roll(0.4):
        start, more = g.expression(kind, depth)
        acc = f", {start}"
    text = f"tl.dot({product}, {z}{acc}, input_precision='ieee')"
    return text, max(bound, bound * bz * g.rows + more)


@form(2, shapes="T", dtypes=("float32",), fits=lambda g, kind: g.columns >= 32)
def scaled_dot(g: Expressions, kind: Kind, depth: int) -> Made:
    """A product of scaled 8-bit floats with a bfloat16 tile, then back to (M, N)."""
    x, bx = g.expression(Kind("float8e4nv", "T"), depth)
    y, by = g.expression(Kind("bfloat16", "U"), depth)
    z, bz = g.leaf(kind)
    scale = f"tl.full((M, N // 32), {127 + g.rng.randint(0, 2)}, tl.uint8)"
    product = f"tl.dot_scaled({x}, {scale}, 'e4m3', {y}, None, 'bf16')"
    return (
        f"(tl.sum({product}, axis=1, keep_dims=True) + {z})",
        4 * bx * by * g.columns * g.rows + bz,
    )
