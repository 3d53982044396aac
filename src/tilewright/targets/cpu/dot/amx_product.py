"""A `dot` on AMX's tile registers: blocks of two by two tiles, rows outside.

    for block of 32 rows
      copy its rows of A to a room that stays in the first-level cache  (where B is wide)
      for block of 32 columns (a panel of B)
        C's four tiles: zero, or loaded
        for 64 bytes of k: load two tiles of A and two of B, four products
        store C's four tiles: where they were, or at their target, rounded on the way

*Why* the copy: rows of A that lie a multiple of 1 KiB apart share few sets of the cache, and are
read once for each panel. *Why* the hint at B's loads: the panels stream from the second-level
cache, and must not drive A's rows out of the first.
*Source* measured (Emerald Rapids, bf16 1024³, one thread): the copy 1.2 times the speed, the
hint 1.2 times, the fetch of the next block of C 1.1 times.

*Semantics* `tdpbf16ps` sums the even and the odd k of a tile's row apart, each product and sum
rounded once (fused, to nearest even), and adds both sums to C. Denormal inputs and results are
zeros, whatever the thread's rounding mode says. The byte products are exact modulo 2^32.
Limits, where a product has them, leave out blocks, panels and steps that begin behind them.
An f16 is the sum of two bf16 (`widen.py`): four products, each exact, and none of them denormal;
infinities and NaNs are those of arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.machine.cpus import LINE_BYTES
from tilewright.support.dataclass import dataclass
from tilewright.targets.cpu.dot.amx_blocks import AmxBlocks
from tilewright.targets.cpu.dot.amx_results import AmxResults, AmxTarget, Place, amx_results
from tilewright.targets.cpu.dot.amx_tiles import (
    A_TILES,
    ACCUMULATOR_BYTES,
    B_TILES,
    SIDE,
    TILE_BYTES,
    TILE_ROWS,
    emit_configure,
    emit_load,
    emit_release,
    emit_tile_product,
)
from tilewright.targets.cpu.dot.vectors import (
    counted_loop,
    counted_while,
    element_address,
    scaled,
)

STREAMED_BYTES = 16 << 10
"""Bytes of B from which its tiles are loaded with the hint of a stream.

Source: measured (Emerald Rapids, 48 KiB of first-level cache): a panel of 16 KiB stays there
beside the rows of A, one of 32 KiB with plain loads takes a quarter of the speed."""

FETCHING_STEPS = 8
"""Steps of k over which the 64 lines of the next block of C are spread, or they are not fetched.

Source: the fetch was measured with 8 and 16 steps; fewer would be a burst that stalls."""

PART_PAIRS = {1: ((0, 0),), 3: ((0, 0), (1, 2), (2, 2), (2, 1))}
"""Which parts of A and B are multiplied, by their number.

By definition: all products of upper bits and rests (`widen.py`), infinities in the first alone."""

MAX_STRAIGHT_LINES = 16
"""Lines of a row that are copied at once: half the vector registers, all loads in flight.

Chosen, not measured: any number gives the same copy."""


def emit_amx_product(
    fn: FunctionBuilder,
    blocks: AmxBlocks,
    strides: tuple[str, int],
    zero_init: bool,
    target: AmxTarget | None = None,
    is_limited: bool = False,
) -> None:
    """Emit the body of a product of `%a`, `%b` and `%c`, with `%room` where rows are copied.

    Where it `is_limited`, `%rows`, `%columns` and `%depth` (i64) say how much of it is wanted;
    operands are zero from there to the end of a step.
    *Units* `strides`: elements between the rows of A (a value or a number) and of C.
    """
    a_stride, c_stride = scaled(fn, strides[0], blocks.a_bytes), strides[1] * ACCUMULATOR_BYTES
    results = amx_results(fn, blocks, c_stride, zero_init, target, is_limited)
    extents = ("%rows", "%columns", "%depth") if is_limited else ()
    sizes = blocks.rows, blocks.row_columns, blocks.step_depth
    counts = tuple(_chunks(fn, *each) for each in zip(extents, sizes, strict=False))
    _Emission(fn, blocks, a_stride, results, counts).emit()


def _chunks(fn: FunctionBuilder, extent: str, size: int) -> str:
    """How many chunks of a size an extent takes."""
    return fn.value(f"udiv i64 {fn.value(f'add nsw i64 {extent}, {size - 1}')}, {size}")


@dataclass(frozen=True)
class _Emission:
    """The product being written: the stride of A in bytes, known or a value.

    `counts`: values, how many blocks of rows, panels and steps there are, where it has limits.
    """

    fn: FunctionBuilder
    blocks: AmxBlocks
    a_stride: str
    results: AmxResults
    counts: tuple[str, ...] = ()

    def emit(self) -> None:
        """The loops over blocks of rows and columns."""
        emit_configure(self.fn, self.blocks.tiles)
        self._loop(0, self.blocks.num_row_blocks, self._row_block)
        emit_release(self.fn)

    def _loop(self, which: int, count: int, body: Callable[[str], None]) -> None:
        """Over all of so many, or as many as its limit leaves."""
        if self.counts:
            counted_while(self.fn, self.counts[which], body)
        else:
            counted_loop(self.fn, count, body)

    def _row_block(self, block: str) -> None:
        fn, blocks = self.fn, self.blocks
        a = self._rows_from("%a", scaled(fn, block, blocks.rows))
        row = self.results.block_row(block)
        if blocks.copies_rows:
            self._copy_rows(a)
        self._loop(1, blocks.num_panels, lambda panel: self._block(panel, a, row))

    def _rows_from(self, base: str, row: str) -> str:
        offset = "0" if row == "0" else scaled(self.fn, row, self.a_stride)
        return element_address(self.fn, "i8", base, offset)

    def _copy_rows(self, a: str) -> None:
        """The rows of a block, one tile after the other, into the room."""
        fn, steps = self.fn, self.blocks.parts * self.blocks.num_steps
        step_bytes = self.blocks.rows * TILE_BYTES

        def copy_row(row: str) -> None:
            source = self._rows_from(a, row)
            target = element_address(fn, "i8", "%room", scaled(fn, row, TILE_BYTES))

            def copy_lines(first: str, count: int) -> None:
                start = element_address(fn, "i8", source, scaled(fn, first, TILE_BYTES))
                end = element_address(fn, "i8", target, scaled(fn, first, step_bytes))
                lines = [
                    fn.value(f"load <16 x i32>, ptr {at}, align 1")
                    for line in range(count)
                    for at in [element_address(fn, "i8", start, line * TILE_BYTES)]
                ]
                for line, value in enumerate(lines):
                    at = element_address(fn, "i8", end, line * step_bytes)
                    fn.emit(f"store <16 x i32> {value}, ptr {at}, align 64")

            whole, rest = divmod(steps, MAX_STRAIGHT_LINES)
            counted_loop(
                fn,
                whole,
                lambda turn: copy_lines(scaled(fn, turn, MAX_STRAIGHT_LINES), MAX_STRAIGHT_LINES),
            )
            if rest:
                copy_lines(str(whole * MAX_STRAIGHT_LINES), rest)

        counted_loop(fn, self.blocks.rows, copy_row)

    def _block(self, panel: str, a: str, row: Place) -> None:
        fn, blocks = self.fn, self.blocks
        place = self.results.block(row, panel)
        b = element_address(fn, "i8", "%b", scaled(fn, panel, blocks.panel_bytes))
        self.results.begin(place)
        next_rows = self._fetched_rows(panel, a)
        following = self.results.following(place)

        def step(index: str) -> None:
            self._fetch_c(following, index)
            self._fetch_a(next_rows, index)
            self._step(index, a, b)

        self._loop(2, blocks.num_steps, step)
        self.results.end(place)

    def _step(self, index: str, a: str, b: str) -> None:
        """One step of k: the tiles of B and A in turn, then their products, part by part."""
        loaded: tuple[int, int] | None = None
        for a_part, b_part in PART_PAIRS[self.blocks.parts]:
            for position in range(SIDE):
                if loaded is None or loaded[1] != b_part:
                    self._load_b(position, index, b_part, b)
                if loaded is None or loaded[0] != a_part:
                    self._load_a(position, index, a_part, a)
            loaded = a_part, b_part
            self._multiply()

    def _multiply(self) -> None:
        blocks = self.blocks
        elements = blocks.multiply.a_element, blocks.multiply.b_element
        for row in range(blocks.row_tiles):
            for column in range(blocks.column_tiles):
                number = SIDE * row + column
                emit_tile_product(self.fn, elements, number, A_TILES[row], B_TILES[column])

    def _load_b(self, position: int, index: str, part: int, b: str) -> None:
        fn, blocks = self.fn, self.blocks
        if position >= blocks.column_tiles:
            return
        first = part * blocks.num_steps * blocks.step_bytes
        step = element_address(fn, "i8", b, scaled(fn, index, blocks.step_bytes, first))
        place = element_address(fn, "i8", step, position * blocks.tiles.columns * ACCUMULATOR_BYTES)
        is_streamed = blocks.num_panels * blocks.panel_bytes > STREAMED_BYTES
        emit_load(fn, B_TILES[position], place, blocks.panel_row_bytes, is_streamed)

    def _load_a(self, position: int, index: str, part: int, a: str) -> None:
        fn, blocks = self.fn, self.blocks
        if position >= blocks.row_tiles:
            return
        if blocks.copies_rows:
            step_bytes = blocks.rows * TILE_BYTES
            first = position * TILE_ROWS * TILE_BYTES + part * blocks.num_steps * step_bytes
            at = element_address(fn, "i8", "%room", scaled(fn, index, step_bytes, first))
            emit_load(fn, A_TILES[position], at, TILE_BYTES)
            return
        rows = self._rows_from(a, str(position * blocks.tiles.rows))
        start = part * blocks.k_bytes
        at = element_address(fn, "i8", rows, scaled(fn, index, blocks.tiles.k_bytes, start))
        emit_load(fn, A_TILES[position], at, self.a_stride)

    def _fetch_c(self, following: tuple[str, int | str], index: str) -> None:
        """A step's share of the next block of C, to be written: behind the last panel of a row
        that is a guess, which costs nothing."""
        blocks = self.blocks
        if blocks.num_steps < FETCHING_STEPS:
            return
        fn, (place, stride) = self.fn, following
        rows = -(-blocks.rows // blocks.num_steps)
        for row in range(rows):
            below = scaled(fn, scaled(fn, index, rows, row), stride)
            start = element_address(fn, "i8", place, below)
            for line in range(0, blocks.panel_row_bytes, LINE_BYTES):
                _prefetch(fn, element_address(fn, "i8", start, line), is_written=True, level=3)

    def _fetched_rows(self, panel: str, a: str) -> list[str]:
        """The rows of the next block that one panel's product fetches, each from its start.

        Behind the last block that is a guess, too.
        """
        blocks = self.blocks
        if not blocks.copies_rows or blocks.num_panels > blocks.rows:
            return []
        count = blocks.rows // blocks.num_panels
        first = scaled(self.fn, panel, count, blocks.rows)
        rows = [self._rows_from(a, first)]
        while len(rows) < count:
            rows.append(element_address(self.fn, "i8", rows[-1], self.a_stride))
        return rows

    def _fetch_a(self, rows: list[str], index: str) -> None:
        for row in rows:
            at = element_address(self.fn, "i8", row, scaled(self.fn, index, TILE_BYTES))
            _prefetch(self.fn, at, is_written=False, level=2)


def _prefetch(fn: FunctionBuilder, address: str, is_written: bool, level: int) -> None:
    callee = fn.module.declare("llvm.prefetch.p0", "void", "ptr, i32, i32, i32")
    fn.emit(f"call void {callee}(ptr {address}, i32 {int(is_written)}, i32 {level}, i32 1)")
