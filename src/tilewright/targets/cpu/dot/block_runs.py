"""How a `dot` is cut into blocks that fit in the register file: runs of rows and of panels."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.support.dataclass import dataclass
from tilewright.targets.cpu.dot.block_spec import BlockVector
from tilewright.targets.cpu.dot.panels import Instruction, Multiply, PanelLayout, VectorUnit
from tilewright.targets.cpu.dot.spec import DotSpec
from tilewright.targets.cpu.dot.vectors import counted_loop, counted_while, scaled

MIN_CHAINS = 8
"""Accumulators that keep two FMA units of latency 4 busy; a block has more where it can.

Source: the optimization guides of Intel (Skylake and later) and AMD (Zen 3 and later)."""


MAX_ADDRESSES = 10
"""Rows of A in memory, in blocks of one vector, whose addresses stay in x86's 16 registers.

A spilled one is loaded for each multiply-add of a row and a step; with two vectors that shows less.
Measured on Zen 3 (AVX2), 2026-11-26, one thread, f32, least CPU time, in tiles of 128x8x128, with
14 / 10 rows: 1024x8x1024 742 / 468 µs, 4096x8x4096 13.1 / 8.6 ms, 256x8x512 47 / 42 µs."""


@dataclass(frozen=True)
class Run:
    """Equal blocks one after the other: `count` blocks of `size` rows or panels each."""

    first: int
    count: int
    size: int

    def emit(self, fn: FunctionBuilder, body: Callable[[str], None], limit: str = "") -> None:
        """Emit `body(start)` for every block, `start` being its first row or panel.

        With `limit`, an i64 value of 1 at least, only for those that start before it.
        """

        def at(index: str) -> None:
            body(scaled(fn, index, self.size, self.first))

        if not limit or (self.first == 0 and self.count == 1):
            counted_loop(fn, self.count, at)
            return
        room = fn.value(f"add nsw i64 {limit}, {self.size - 1 - self.first}")
        started = fn.value(f"sdiv i64 {room}, {self.size}")
        fits = fn.value(f"icmp slt i64 {started}, {self.count}")
        count = fn.value(f"select i1 {fits}, i64 {started}, i64 {self.count}")
        counted_while(fn, count, at)


@dataclass(frozen=True)
class ColumnRun:
    """Equal column blocks and the vectors of each."""

    run: Run
    vectors: tuple[BlockVector, ...]


@dataclass(frozen=True)
class ProductBlock:
    """One call of a microkernel: first row and panel (values) and sizes.

    At a right edge it computes no more than `most_rows` of its rows, so that blocks of two
    heights share one function.
    """

    row: str
    rows: int
    panel: str
    column: ColumnRun
    is_first: bool
    most_rows: int | None = None


def split_rows(m: int, most: int) -> list[Run]:
    """`m` rows as blocks of at most `most` whose heights differ by at most one."""
    blocks = -(-m // most)
    low, tall = divmod(m, blocks)
    runs = [Run(0, tall, low + 1), Run(tall * (low + 1), blocks - tall, low)]
    return [run for run in runs if run.count]


def with_first_apart(runs: list[Run]) -> list[Run]:
    """The same blocks, the first one a run of its own."""
    head, *tail = runs
    rest = Run(head.first + head.size, head.count - 1, head.size)
    return [Run(head.first, 1, head.size), *([rest] if rest.count else []), *tail]


def split_panels(whole: int, most: int) -> list[Run]:
    """`whole` panels as blocks of `most` and one block of the rest."""
    blocks, rest = divmod(whole, most)
    runs = [Run(0, blocks, most), Run(blocks * most, 1, rest)]
    return [run for run in runs if run.count and run.size]


def max_rows(
    unit: VectorUnit, multiply: Multiply, num_vectors: int, a_in_place: bool = False
) -> int:
    """The rows of a block of `num_vectors` vectors that leave no register spilled.

    Live are the accumulators, one step's vectors of B and one splat of A; a separate product
    takes one more, and the excess of a biased A an accumulator per vector and a constant. Of 2x2
    products, each of two rows, the A of two steps is loaded at once, so that of one waits.
    """
    if multiply.rows == 2:
        return 2 * max(1, (unit.num_registers - 1 - num_vectors) // (num_vectors + 1))
    extra = 1
    if multiply.instruction is Instruction.FMA:
        extra = 0
    if multiply.bias_a:
        extra = num_vectors + 1
    most = max(1, (unit.num_registers - 1 - num_vectors - extra) // num_vectors)
    has_addresses = a_in_place and num_vectors == 1 and not unit.is_arm
    return min(most, MAX_ADDRESSES) if has_addresses else most


def panels_per_block(spec: DotSpec) -> int:
    """How many panels a block spans, so that few rows still give enough chains."""
    per_panel = spec.b_layout.columns // spec.b_layout.lanes
    whole = max(1, spec.n // spec.b_layout.columns)
    rows = -(-spec.m // spec.multiply.rows)
    return min(whole, max(1, -(-MIN_CHAINS // (per_panel * min(rows, MIN_CHAINS)))))


def column_runs(spec: DotSpec) -> list[ColumnRun]:
    """The blocks of whole panels, then that of a partial last one."""
    whole, rest = divmod(spec.n, spec.b_layout.columns)
    runs = [
        ColumnRun(run, _whole_vectors(spec, run.size))
        for run in split_panels(whole, panels_per_block(spec))
    ]
    if rest:
        runs.append(ColumnRun(Run(whole, 1, 1), _partial_vectors(spec.b_layout, rest)))
    return runs


def row_runs(spec: DotSpec, most: int) -> list[Run]:
    """The blocks of at most `most` rows; one that packs B stands apart."""
    if spec.multiply.rows == 2:
        return _runs_of_two(spec.m, most)
    runs = split_rows(spec.m, most)
    return with_first_apart(runs) if spec.packs_b else runs


def _runs_of_two(m: int, most: int) -> list[Run]:
    """The blocks of two rows and two, of which the last has one row less where `m` is odd."""
    runs = [
        Run(2 * run.first, run.count, 2 * run.size) for run in split_rows(-(-m // 2), most // 2)
    ]
    if m % 2 == 0:
        return runs
    *others, last = runs
    rest = Run(last.first, last.count - 1, last.size)
    end = Run(m - last.size + 1, 1, last.size - 1)
    return [*others, *([rest] if rest.count else []), end]


def _whole_vectors(spec: DotSpec, num_panels: int) -> tuple[BlockVector, ...]:
    layout = spec.b_layout
    stride = layout.panel_elems(spec.k)
    return tuple(
        BlockVector(
            panel * stride + column * layout.k_group,
            panel * layout.columns + column,
            layout.lanes,
        )
        for panel in range(num_panels)
        for column in range(0, layout.columns, layout.lanes)
    )


def _partial_vectors(layout: PanelLayout, rest: int) -> tuple[BlockVector, ...]:
    return tuple(
        BlockVector(column * layout.k_group, column, min(layout.lanes, rest - column))
        for column in range(0, rest, layout.lanes)
    )
