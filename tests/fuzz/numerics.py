"""The forms where number formats show: NaN, saturation, mixed signedness, long narrow sums.

What leaves a form is a whole number again, exact in its dtype.
"""

from __future__ import annotations

from tests.fuzz.expressions import Expressions, form
from tests.fuzz.program import Kind
from tests.fuzz.vocabulary import INTEGERS, Made

FLOATS = ("float32", "float64", "float16", "bfloat16")
# Each with the largest magnitude that a whole number keeps or takes there.
FP8 = {"float8e4nv": 448, "float8e5": 57344, "float8e4b8": 240, "float8e5b16": 57344}
AXES = {
    "S": (("V", "0"), ("T", "None"), ("U", "None")),
    "R": (("T", "1"), ("U", "0")),
    "C": (("T", "0"), ("U", "1")),
}


def _with_nans(g: Expressions, dtype: str, shape: str, depth: int) -> Made:
    """Numbers of which some are NaN or infinite, or all."""
    x, bound = g.expression(Kind(dtype, shape), depth)
    test = g.expression(Kind("int1", shape), 0)[0]
    text = f"tl.where({test}, ({x}).to(tl.float32), float('nan'))"
    if g.roll(0.3):
        other = g.expression(Kind("int1", shape), 0)[0]
        text = f"tl.where({other}, {text}, {g.rng.choice(('', '-'))}float('inf'))"
    return f"{text}.to(tl.{dtype})", bound


@form(4, shapes="SRC", dtypes=("int32",))
def position(g: Expressions, kind: Kind, depth: int) -> Made:
    """Where the extreme element is, among ties and NaNs."""
    shape, axis = g.rng.choice(AXES[kind.shape])
    if g.roll(0.3):
        dtype = g.rng.choice(INTEGERS)
        x = f"(({g.expression(Kind(dtype, shape), depth)[0]}) & 3)"
    else:
        x = _with_nans(g, g.rng.choice((*FLOATS, "float8e5")), shape, depth)[0]
    name, left = g.rng.choice(("max", "min")), g.roll(0.6)
    if g.roll(0.5) and axis != "None":
        return f"tl.arg{name}({x}, {axis}, tie_break_left={left})", 0
    tie = f"return_indices_tie_break_left={left}"
    return f"tl.{name}({x}, {axis}, return_indices=True, {tie})[1]", 0


@form(2, shapes="SRC", dtypes=("float32",))
def extreme(g: Expressions, kind: Kind, depth: int) -> Made:
    """An extreme value among NaNs; NaN and infinity leave as numbers."""
    shape, axis = g.rng.choice(AXES[kind.shape])
    x, bound = _with_nans(g, g.rng.choice(FLOATS), shape, depth)
    name = g.rng.choice(("max", "min"))
    text = g.rng.choice((
        f"tl.{name}({x}, {axis})", f"tl.{name}({x}, {axis}, return_indices=True)[0]",
        f"tl.reduce({x}, {axis}, nan_wins)",
    ))  # fmt: skip
    return f"finite({text}.to(tl.float32))", max(bound, 3)


@form(2, dtypes=("float32",))
def saturated(g: Expressions, kind: Kind, depth: int) -> Made:
    """A conversion to 8 bits at and beyond the greatest number."""
    x, bound = g.expression(kind, depth)
    factor = g.rng.choice((1, 7, 29, 113, 3001))
    name = g.rng.choice((*FP8, "float8e4b15"))
    rounding = ", fp_downcast_rounding='rtz'" if g.roll(0.3) else ""
    if name == "float8e4b15":
        return f"(({x}).to(tl.{name}{rounding}).to(tl.float32) * 8.0)", 15
    most = min(2 * factor * bound, FP8[name])
    if g.roll(0.2):
        test = g.expression(Kind("int1", kind.shape), 0)[0]
        x, most = f"tl.where({test}, {x}, float('inf'))", FP8[name]
    text = f"(({x}) * {factor}.0).to(tl.{name}{rounding}).to(tl.float32)"
    return f"finite({text})", max(most, 3)


@form(2, dtypes=INTEGERS)
def mixed_shift(g: Expressions, kind: Kind, depth: int) -> Made:
    """A shift whose operands may differ in width and signedness, also by more than the width."""
    left, right = g.rng.choice(INTEGERS), g.rng.choice(INTEGERS)
    x = g.expression(Kind(left, kind.shape), depth)[0]
    y = g.operand(Kind(right, kind.shape), depth)[0]
    sign = g.rng.choice((">>", ">>", "<<"))
    by = g.rng.choice((f"(({y}) & 7)", f"(({y}) & 7)", f"(({y}) & 127)", f"({y})"))
    return f"(({x}) {sign} {by}).to(tl.{kind.dtype})", 0


@form(2, shapes="VTU", dtypes=("float32",))
def long_scan(g: Expressions, kind: Kind, depth: int) -> Made:
    """Running sums that their dtype does not hold exactly, each rounded once."""
    dtype = g.rng.choice(("bfloat16", "float16", "float8e5"))
    x, bound = g.expression(Kind(dtype, kind.shape), depth)
    axis = 0 if kind.shape == "V" else g.rng.randint(0, 1)
    reverse = ", reverse=True" if g.roll(0.4) else ""
    # Added to a constant so that sums leave the range in which all whole numbers are exact.
    text = f"tl.cumsum({x} + 5.0, axis={axis}{reverse}).to(tl.float32)"
    most = 2 * (bound + 5) * g.rows * g.columns
    return (text, most) if most < 30000 else g.leaf(kind)


@form(1, shapes="SRC", dtypes=("float32",))
def long_sum(g: Expressions, kind: Kind, depth: int) -> Made:
    """A sum that its dtype does not hold exactly, rounded once."""
    shape, axis = g.rng.choice(AXES[kind.shape])
    x, bound = g.expression(Kind(g.rng.choice(("bfloat16", "float16")), shape), depth)
    most = 2 * (bound + 5) * g.rows * g.columns
    text = f"tl.sum({x} + 5.0, {axis}).to(tl.float32)"
    return (text, most) if most < 30000 else g.leaf(kind)
