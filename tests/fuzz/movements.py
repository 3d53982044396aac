"""The forms of expressions that move elements: views, sorting, gathers, blocks of memory."""

from __future__ import annotations

from tests.fuzz.expressions import Expressions, form
from tests.fuzz.program import SHAPES, Kind
from tests.fuzz.vocabulary import INTEGERS, ITEM_BYTES, LIMITS, Made

TABLE_COLUMNS = 64
TABLE_ROWS = 16


@form(2, shapes="V")
def flat(g: Expressions, kind: Kind, depth: int) -> Made:
    """The elements of a matrix in a row, or of a row in another order."""
    if g.roll(0.4):
        x, bound = g.expression(kind, depth)
        return g.rng.choice((f"tl.flip({x}, 0)", f"swapped({x}, B)", f"twice({x}, B)")), bound
    x, bound = g.expression(Kind(kind.dtype, g.rng.choice("TU")), depth)
    return g.rng.choice((f"tl.reshape({x}, (B,))", f"tl.ravel({x})")), bound


@form(2, shapes="TU")
def matrix(g: Expressions, kind: Kind, depth: int) -> Made:
    """The elements of a row or of the transposed matrix."""
    other = "U" if kind.shape == "T" else "T"
    x, bound = g.expression(Kind(kind.dtype, g.rng.choice(("V", other))), depth)
    if g.roll(0.2):
        y, bound = g.expression(kind, depth)
        return f"tl.flip({y}, {g.rng.randint(0, 1)})", bound
    if g.roll(0.5):
        x, bound = g.expression(Kind(kind.dtype, "V"), depth)
        return f"tl.reshape({x}, {SHAPES[kind.shape]})", bound
    x, bound = g.expression(Kind(kind.dtype, other), depth)
    return g.rng.choice((f"tl.trans({x})", f"({x}).T", f"tl.permute({x}, (1, 0))")), bound


@form(1, shapes="TU")
def spread(g: Expressions, kind: Kind, depth: int) -> Made:
    """A row or a column repeated."""
    is_row = g.roll(0.5)
    shape = "CR"[(kind.shape == "U") == is_row]
    x, bound = g.expression(Kind(kind.dtype, shape), depth)
    index = "[None, :]" if is_row else "[:, None]"
    return f"tl.broadcast_to(({x}){index}, {SHAPES[kind.shape]})", bound


@form(1, shapes="VT")
def sort(g: Expressions, kind: Kind, depth: int) -> Made:
    """The last dimension in order."""
    x, bound = g.expression(kind, depth)
    size = "B" if kind.shape == "V" else "N"
    forms = (f"tl.sort({x})", f"tl.sort({x}, descending=True)", f"tl.topk({x}, {size})")
    if kind.dtype == "int32" and g.roll(0.3):
        return f"tl.argsort({x})", 0
    return g.rng.choice(forms), bound


@form(1, shapes="VT")
def gather(g: Expressions, kind: Kind, depth: int) -> Made:
    """Elements by computed positions along one dimension."""
    x, bound = g.expression(kind, depth)
    index = g.expression(Kind("int32", kind.shape), depth)[0]
    axis = 0 if kind.shape == "V" else g.rng.randint(0, 1)
    size = "B" if kind.shape == "V" else "MN"[axis]
    return f"tl.gather({x}, (({index}) & ({size} - 1)), {axis})", bound


@form(8, shapes="C", dtypes=("int32",))
def histogram(g: Expressions, kind: Kind, depth: int) -> Made:
    """Counts of values; those out of the bins are not counted."""
    x = g.expression(Kind("int32", "V"), depth)[0]
    mask = g.expression(Kind("int1", "V"), 0)[0]
    mask = f", mask={mask}" if g.roll(0.4) else ""
    return f"tl.histogram(({x}) & {g.rng.choice((7, 31, 127))}, N{mask})", 0


def _offset(g: Expressions) -> str:
    """A scalar that may lie outside of a table's matrix."""
    return f"((({g.expression(Kind('int32', 'S'), 0)[0]}) & 31) - {g.rng.randint(0, 12)})"


@form(1, shapes="TU")
def block_pointer(g: Expressions, kind: Kind, depth: int) -> Made:
    """A block of a table seen as a matrix, partly out of bounds."""
    table, bound = g.table(kind.dtype), 8 if kind.dtype in LIMITS else 0
    rows, columns = TABLE_ROWS, TABLE_COLUMNS
    shape, strides, order = f"({rows}, {columns})", f"({columns}, 1)", "(1, 0)"
    if g.roll(0.4):
        shape, strides, order = f"({columns}, {rows})", f"(1, {columns})", "(0, 1)"
    offsets = f"({_offset(g)}, {_offset(g)})"
    block = f"tl.make_block_ptr({table} + 0, {shape}, {strides}, {offsets}, {SHAPES[kind.shape]}, "
    if g.roll(0.3):
        step = f"({g.rng.randint(-3, 9)}, {g.rng.randint(-3, 9)})"
        block = f"tl.advance({block}{order}), {step}"
        order = ""
    text = f"tl.load({block}{order}), boundary_check=(0, 1), padding_option='zero')"
    return text, bound


def _has_wide_rows(g: Expressions, kind: Kind) -> bool:
    last = {"V": g.rows * g.columns, "T": g.columns, "U": g.rows}[kind.shape]
    return last * ITEM_BYTES[kind.dtype] >= 16


@form(1, shapes="VTU", fits=_has_wide_rows)
def descriptor(g: Expressions, kind: Kind, depth: int) -> Made:
    """A block of a table through a descriptor, partly out of bounds."""
    table, bound = g.table(kind.dtype), 8 if kind.dtype in LIMITS else 0
    if kind.shape == "V":
        made = f"tl.make_tensor_descriptor({table} + 0, [900], [1], [B])"
        return f"{made}.load([{_offset(g)} * 32])", bound
    block = SHAPES[kind.shape].replace("(", "[").replace(")", "]")
    shape, strides = f"[{TABLE_ROWS}, {TABLE_COLUMNS}]", f"[{TABLE_COLUMNS}, 1]"
    made = f"tl.make_tensor_descriptor({table} + 0, {shape}, {strides}, {block})"
    return f"{made}.load([{_offset(g)}, {_offset(g)}])", bound


@form(1, shapes="V", dtypes=INTEGERS)
def joined(g: Expressions, kind: Kind, depth: int) -> Made:
    """The halves of two tiles that were joined and split again."""
    x, y = g.expression(kind, depth)[0], g.expression(kind, depth)[0]
    return f"tl.split(tl.join({x}, {y}))[{g.rng.randint(0, 1)}]", 0


@form(1, shapes="T")
def folded(g: Expressions, kind: Kind, depth: int) -> Made:
    """Three dimensions on the way: permuted, scanned, sorted or reduced and spread again."""
    x, bound = g.expression(kind, depth)
    cube, axis = "(M, 2, N // 2)", g.rng.randint(0, 2)
    inner = f"tl.reshape({x}, {cube})"
    order = g.rng.choice(((2, 0, 1), (1, 2, 0), (0, 2, 1), (2, 1, 0)))
    name = g.rng.choice(("max", "min"))
    if g.roll(0.5):
        reduced = f"tl.{name}({inner}, {axis}, keep_dims=True).to(tl.{kind.dtype})"
    else:
        reduced = f"tl.reduce({inner}, {axis}, leftmost, keep_dims=True)"
    moved = g.rng.choice((
        f"tl.permute({inner}, {order})", f"tl.sort({inner})", f"tl.flip({inner}, {axis})",
        f"tl.associative_scan({inner}, {axis}, greater)", f"tl.broadcast_to({reduced}, {cube})",
    ))  # fmt: skip
    return f"tl.reshape({moved}, (M, N))", bound


@form(1, shapes="T", dtypes=("float32",), fits=lambda g, kind: g.rows >= 4)
def batched_dot(g: Expressions, kind: Kind, depth: int) -> Made:
    """Two products at once, their rows added up."""
    dtype = g.rng.choice(("float32", "float16", "bfloat16"))
    (x, bx), (y, by) = (g.expression(Kind(dtype, shape), depth) for shape in "TU")
    z, bz = g.leaf(kind)
    left, right = f"tl.reshape({x}, (2, M // 2, N))", f"tl.reshape({y}, (2, N, M // 2))"
    product = f"tl.dot({left}, {right}, input_precision='ieee')"
    text = f"(tl.reshape(tl.sum({product}, 2), (M, 1)) + {z})"
    return text, bx * by * g.columns * g.rows + bz
