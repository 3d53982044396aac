"""Pictures of layouts in plain text: who holds each element, and in which bank it lies.

A cell is a run of elements along the last dim that are in neighbouring registers of one lane:
`w2 l13 r4:8` are registers 4 to 7 of lane 13 of warp 2. Where several places hold an element the
first is shown, and how many there are stands above the picture.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from tilewright.layout.access import WAVEFRONT_BYTES, WORD_BYTES
from tilewright.layout.build import PaddedLayout
from tilewright.layout.convert import Conversion, RegisterPermutation, WarpShuffle
from tilewright.layout.linear import LinearLayout
from tilewright.layout.map import unit
from tilewright.layout.simulate import simulate


def describe(layout: LinearLayout) -> str:
    """What a layout maps, one line a fact."""
    lines = [f"tile {_by(layout.shape)}: atom {_by(layout.atom)}"]
    if layout.repeat_order:
        lines[0] += f", repeated {_by(layout.repeats)}"
    for in_dim in layout.in_dims:
        vectors = " ".join(":".join(map(str, v)) for v in layout.basis_images(in_dim))
        lines.append(f"{in_dim:>8}: {layout.size(in_dim):>4}  {vectors}".rstrip())
    for dim in range(layout.rank) if "register" in layout.in_dims else ():
        if (vector := contiguous_elems(layout, dim)) > 1:
            lines.append(f"  vector: {vector:>4}  registers in a row along dim {dim}")
    copies = prod(layout.size(in_dim) for in_dim in layout.in_dims) // prod(layout.shape)
    if copies > 1:
        free = {name: layout.free_bits(name) for name in layout.in_dims}
        bits = ", ".join(f"{name} {mask:#b}" for name, mask in free.items() if mask)
        lines.append(f"  copies: {copies:>4}  of every element, by the bits {bits}")
    return "\n".join(lines)


def contiguous_elems(layout: LinearLayout, dim: int) -> int:
    """The number of neighbours along a dim that each lane holds, aligned, in registers."""
    vectors = layout.basis_images(layout.in_dims[0])
    elems = 1
    while elems < layout.atom[dim] and unit(layout.rank, dim, elems) in vectors:
        elems *= 2
    return elems


def draw(layout: LinearLayout, max_rows: int = 32, max_columns: int = 128) -> str:
    """The picture of a distributed layout: warp, lane and registers of each element."""
    holders = _holders(layout)
    vector = _register_run(layout)

    def cell(at: tuple[int, ...]) -> str:
        warp, lane, register = holders[at]
        registers = f"{register}:{register + vector}" if vector > 1 else f"{register}"
        return f"w{warp} l{lane:02d} r{registers}"

    return _picture(layout.shape, vector, cell, max_rows, max_columns)


def draw_shared(
    layout: LinearLayout | PaddedLayout,
    element_bytes: int,
    max_rows: int = 32,
    max_columns: int = 128,
) -> str:
    """The picture of a layout in shared memory: the bank and row of 128 bytes of each element.

    A cell is what lies in one bank, or in a chunk of 16 bytes where chunks stay together:
    `r3 b08` is row 3 of 128 bytes, from bank 8 on.
    """
    linear = layout.linear if isinstance(layout, PaddedLayout) else layout
    offsets = {at: offset for offset, at in enumerate(linear.register_offsets())}
    vector = min(contiguous_elems(linear, linear.rank - 1), max(1, 16 // element_bytes))

    def cell(at: tuple[int, ...]) -> str:
        offset = offsets[at]
        place = layout.address(offset) if isinstance(layout, PaddedLayout) else offset
        row, inside = divmod(place * element_bytes, WAVEFRONT_BYTES)
        return f"r{row} b{inside // WORD_BYTES:02d}"

    return _picture(linear.shape, vector, cell, max_rows, max_columns)


def describe_conversion(
    plan: Conversion, source: LinearLayout, target: LinearLayout, element_bytes: int
) -> str:
    """What a conversion does, and what it costs a warp."""
    cost = f"about {plan.cost()} cycles a warp"
    if isinstance(plan, RegisterPermutation):
        return f"registers are renamed, nothing moves: {cost}"
    if isinstance(plan, WarpShuffle):
        counts = f"{plan.num_shuffles} shuffles and {plan.num_selects} selections"
        return f"lanes exchange registers, {counts}: {cost}"
    done = simulate(plan, source, target, element_bytes)
    parts = f", in {plan.num_passes} parts" if plan.num_passes > 1 else ""
    lines = [f"through shared memory, {plan.bytes} bytes{parts}: {cost}"]
    for name, access in (("store", plan.store), ("load", plan.load)):
        count = sum(map(len, access.passes))
        moved = access.vector_elems * element_bytes
        kind = access.kind.replace("_", " ")
        lines.append(f"{name:>7}: {count} instructions of {moved} bytes a lane ({kind})")
    conflicts = f"{done.wavefronts} wavefronts, {done.ideal} without bank conflicts"
    return "\n".join([*lines, f"  banks: {conflicts}", f"  order: {plan.shared.text()}"])


def _by(extents: Sequence[int]) -> str:
    return "x".join(map(str, extents)) or "scalar"


def _holders(layout: LinearLayout) -> dict[tuple[int, ...], tuple[int, int, int]]:
    """For each element the first warp, lane and register that hold it."""
    places = layout.coordinates()
    holders: dict[tuple[int, ...], tuple[int, int, int]] = {}
    for warp in range(layout.num_warps):
        for lane in range(layout.num_lanes):
            for register, at in enumerate(places[:, lane, warp].tolist()):
                holders.setdefault(tuple(at), (warp, lane, register))
    return holders


def _register_run(layout: LinearLayout) -> int:
    """The number of neighbours along the last dim that are in neighbouring registers."""
    elems = 1
    for vector in layout.basis_images("register"):
        if layout.rank == 0 or vector != unit(layout.rank, layout.rank - 1, elems):
            break
        elems *= 2
    return elems


def _picture(
    shape: tuple[int, ...],
    vector: int,
    cell: Callable[[tuple[int, ...]], str],
    max_rows: int,
    max_columns: int,
) -> str:
    """Rows along the last dim but one, columns along the last; other dims at 0."""
    lead = (0,) * (len(shape) - 2)
    num_rows, num_columns = shape[-2] if len(shape) > 1 else 1, shape[-1] if shape else 1
    rows, columns = range(min(num_rows, max_rows)), range(0, min(num_columns, max_columns), vector)
    table = [["", *map(str, columns)]]
    for row in rows:
        at = (*lead, row) if len(shape) > 1 else ()
        table.append([str(row), *(cell((*at, c) if shape else ()) for c in columns)])
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines: list[str] = []
    for number, *cells in table:
        texts = (text.ljust(width) for text, width in zip(cells, widths[1:], strict=True))
        lines.append("  ".join((number.rjust(widths[0]), *texts)).rstrip())
    if len(columns) * vector < num_columns:
        lines[0] += f"  … {num_columns} columns"
    if len(rows) < num_rows:
        lines.append(f"… {num_rows} rows")
    return "\n".join(lines)
