"""The forms of integers that wrap at their type, and then go where it shows."""

from __future__ import annotations

from tests.fuzz.expressions import Expressions, form
from tests.fuzz.indices import PLACE, counting, irregular
from tests.fuzz.program import Kind
from tests.fuzz.vocabulary import INTEGERS, ITEM_BYTES, Made


def _counted(g: Expressions, dtype: str, shape: str) -> str:
    start = g.expression(Kind(dtype, "S"), 0)[0]
    return counting(g.rng, PLACE[shape], dtype, start)


@form(1, shapes="VRCTU", dtypes=INTEGERS)
def counted(g: Expressions, kind: Kind, depth: int) -> Made:
    """Numbers that count and wrap."""
    return _counted(g, kind.dtype, kind.shape), 0


@form(2, shapes="T", dtypes=INTEGERS)
def broadcast_sum(g: Expressions, kind: Kind, depth: int) -> Made:
    """[M, 1] ± [1, N], one side loaded and the other one counting."""
    column, row = g.leaf(Kind(kind.dtype, "R"))[0], _counted(g, kind.dtype, "C")
    if g.roll(0.4):
        column, row = _counted(g, kind.dtype, "R"), g.leaf(Kind(kind.dtype, "C"))[0]
    text = f"(({column})[:, None] {g.rng.choice('+-')} ({row})[None, :])"
    if g.roll(0.3):
        text = f"({text} * {g.rng.randint(2, 9)} {g.rng.choice('+-')} ({column})[:, None])"
    return text, 0


def _is_wide(g: Expressions, kind: Kind) -> bool:
    return ITEM_BYTES[kind.dtype] > 1


@form(1, shapes="VRCTU", dtypes=INTEGERS, fits=_is_wide)
def widened(g: Expressions, kind: Kind, depth: int) -> Made:
    """A narrower number that wraps, and then what shows whether it did."""
    narrower = [name for name in INTEGERS if ITEM_BYTES[name] < ITEM_BYTES[kind.dtype]]
    source = g.rng.choice(narrower)
    if kind.shape == "T":
        x = broadcast_sum(g, Kind(source, "T"), 0)[0]
    else:
        x = _counted(g, source, kind.shape)
    return f"({x}).to(tl.{kind.dtype})", 0


@form(1, shapes="VRCTU", dtypes=("int32",))
def uneven(g: Expressions, kind: Kind, depth: int) -> Made:
    """An index that is consecutive but for some places."""
    return irregular(g.rng, PLACE[kind.shape]), 0
