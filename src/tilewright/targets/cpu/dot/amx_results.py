"""The sums of a product on AMX: where its blocks find them, and where they leave them.

    at a block's start   zeros, or what is in the accumulator
    at its end           back to the accumulator; in the last product of a sum to its target,
                         which is the user's memory, rounded to the type there

*Why* the target: a sum of 512x512 is a megabyte that is written, read back and copied, a tenth and
more of the time of a product of bytes that is 512 deep. A tile register stores rows of any stride
anywhere; what is rounded goes through a block's worth of the first-level cache, and so does a block
that a limit cuts, of which no byte behind the limit is written.
Measured on a Xeon with AMX, 2026-11-28, one thread, 1000³ in tiles of 512×512×512, of torch's
speed: bytes 1.06 with cut tiles through the arena and 1.14 so, bf16 0.83 and 0.87.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.codegen.convert import emit_fp_to_fp, llvm_element
from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.support.dataclass import dataclass
from tilewright.targets.cpu.dot.amx_blocks import AmxBlocks
from tilewright.targets.cpu.dot.amx_tiles import (
    ACCUMULATOR_BYTES,
    SIDE,
    emit_load,
    emit_store,
    emit_zero,
)
from tilewright.targets.cpu.dot.vectors import (
    clamped,
    counted_loop,
    counted_while,
    element_address,
    prefix_mask_of,
    scaled,
    store_masked,
)
from tilewright.targets.cpu.dot.widen import STORAGE_BYTES, STORAGE_TYPE


@dataclass(frozen=True)
class AmxTarget:
    """Where a product's last step stores its sums: rows of `dtype` at `%target`.

    `%target_stride` is in elements; `%is_first`: nothing is added; `%is_last`: they go there, else
    to `%c`.
    """

    dtype: str
    features: frozenset[str]

    @property
    def element_bytes(self) -> int:
        """Bytes of an element there."""
        return STORAGE_BYTES[STORAGE_TYPE[self.dtype]]


@dataclass(frozen=True)
class Place:
    """Where the accumulator has a block, or a row of them, and the target (empty without one).

    Of a product with limits `rows` and `columns` say how many there are from there on.
    """

    c: str
    there: str
    rows: str = ""
    columns: str = ""


@dataclass(frozen=True)
class AmxResults:
    """The sums of a product being written; strides in bytes.

    With a target: its `stride`; `is_alone`, where nothing is read from the accumulator or written
    to it; `next_stride`, of what is fetched for the next block; `room`, where a block's sums are
    before they are rounded or cut, if they are. `is_limited`: `%rows` and `%columns` are written.
    """

    fn: FunctionBuilder
    blocks: AmxBlocks
    c_stride: int
    zero_init: bool
    target: AmxTarget | None = None
    stride: str = ""
    is_alone: str = ""
    next_stride: str = ""
    room: str = ""
    is_limited: bool = False

    def block_row(self, block: str) -> Place:
        """The places of the rows of a block."""
        fn, rows = self.fn, self.blocks.rows
        c = element_address(fn, "i8", "%c", scaled(fn, block, rows * self.c_stride))
        if self.target is None:
            return Place(c, "")
        first = scaled(fn, block, rows)
        offset = "0" if first == "0" else scaled(fn, first, self.stride)
        there = element_address(fn, "i8", "%target", offset)
        left = fn.value(f"sub nsw i64 %rows, {first}") if self.is_limited else ""
        return Place(c, there, left)

    def block(self, row: Place, panel: str) -> Place:
        """The places of the block of a panel, in a row of blocks."""
        fn = self.fn
        c = element_address(fn, "i8", row.c, scaled(fn, panel, self.blocks.panel_row_bytes))
        if self.target is None:
            return Place(c, "")
        there = element_address(fn, "i8", row.there, scaled(fn, panel, self._width()))
        if not self.is_limited:
            return Place(c, there)
        first = scaled(fn, panel, self.blocks.row_columns)
        return Place(c, there, row.rows, fn.value(f"sub nsw i64 %columns, {first}"))

    def begin(self, place: Place) -> None:
        """Set the registers of a block: to zero, or to what is added to."""
        if self.zero_init:
            self._zero()
        elif self.target is None:
            self._load(place.c)
        else:
            self._choose("%is_first", self._zero, lambda: self._load(place.c))

    def end(self, place: Place) -> None:
        """Store the registers of a block, where it is told."""

        def keep() -> None:
            self._store(place.c, self.c_stride)

        if self.target is None:
            keep()
        else:
            self._choose("%is_last", lambda: self._send(place), keep)

    def following(self, place: Place) -> tuple[str, int | str]:
        """Where the next block's lines are that are written, and the bytes from row to row.

        Those of the accumulator where anything is read or written there: of two places, the one
        that comes first.
        """
        fn = self.fn
        next_c = element_address(fn, "i8", place.c, self.blocks.panel_row_bytes)
        if self.target is None:
            return next_c, self.c_stride
        beside = element_address(fn, "i8", place.there, self._width())
        at = fn.value(f"select i1 {self.is_alone}, ptr {beside}, ptr {next_c}")
        return at, self.next_stride

    def _width(self) -> int:
        """Bytes of a row of a block at the target."""
        assert self.target is not None
        return self.blocks.row_columns * self.target.element_bytes

    def _zero(self) -> None:
        for row in range(self.blocks.row_tiles):
            for column in range(self.blocks.column_tiles):
                emit_zero(self.fn, SIDE * row + column)

    def _load(self, c: str) -> None:
        for number, place in self._tiles_at(c, self.c_stride):
            emit_load(self.fn, number, place, self.c_stride)

    def _store(self, place: str, stride: int | str) -> None:
        for number, at in self._tiles_at(place, stride):
            emit_store(self.fn, number, at, stride)

    def _tiles_at(self, place: str, stride: int | str) -> list[tuple[int, str]]:
        """The registers of a block with their places in rows `stride` bytes apart."""
        fn, blocks = self.fn, self.blocks
        found: list[tuple[int, str]] = []
        for row in range(blocks.row_tiles):
            below = "0" if row == 0 else scaled(fn, str(row * blocks.tiles.rows), stride)
            first = element_address(fn, "i8", place, below)
            for column in range(blocks.column_tiles):
                offset = column * blocks.tiles.columns * ACCUMULATOR_BYTES
                found.append((SIDE * row + column, element_address(fn, "i8", first, offset)))
        return found

    def _send(self, place: Place) -> None:
        """Store a block at its target: whole, or as far as the limits go."""
        if not self.is_limited:
            self._send_whole(place)
            return
        fn, blocks = self.fn, self.blocks
        has_rows = fn.value(f"icmp sge i64 {place.rows}, {blocks.rows}")
        has_columns = fn.value(f"icmp sge i64 {place.columns}, {blocks.row_columns}")
        is_whole = fn.value(f"and i1 {has_rows}, {has_columns}")
        self._choose(is_whole, lambda: self._send_whole(place), lambda: self._send_part(place))

    def _send_whole(self, place: Place) -> None:
        if not self._is_rounded():
            self._store(place.there, self.stride)
            return
        self._store(self.room, self.blocks.panel_row_bytes)
        lanes, kind = self.blocks.row_columns, self._element()

        def row(index: str) -> None:
            result, to = self._row(index, place)
            self.fn.emit(f"store <{lanes} x {kind}> {result}, ptr {to}, align 2")

        counted_loop(self.fn, self.blocks.rows, row)

    def _send_part(self, place: Place) -> None:
        fn, blocks = self.fn, self.blocks
        self._store(self.room, blocks.panel_row_bytes)
        columns = clamped(fn, place.columns, blocks.row_columns)
        mask = prefix_mask_of(fn, blocks.row_columns, self._element(), columns)

        def row(index: str) -> None:
            result, to = self._row(index, place)
            store_masked(fn, blocks.row_columns, self._element(), result, to, mask)

        counted_while(fn, clamped(fn, place.rows, blocks.rows), row)

    def _row(self, index: str, place: Place) -> tuple[str, str]:
        """A row of the block in the room, as it is stored, and where it goes."""
        assert self.target is not None
        fn, lanes, dtype = self.fn, self.blocks.row_columns, self.target.dtype
        offset = scaled(fn, index, self.blocks.panel_row_bytes)
        source = element_address(fn, "i8", self.room, offset)
        kind = "i32" if dtype == "i32" else "float"
        sums = fn.value(f"load <{lanes} x {kind}>, ptr {source}, align 16")
        if self._is_rounded():
            sums = emit_fp_to_fp(fn, "f32", dtype, lanes, sums, features=self.target.features)
        return sums, element_address(fn, "i8", place.there, scaled(fn, index, self.stride))

    def _is_rounded(self) -> bool:
        assert self.target is not None
        return self.target.element_bytes < ACCUMULATOR_BYTES

    def _element(self) -> str:
        """The LLVM type of an element at the target."""
        assert self.target is not None
        return "i32" if self.target.dtype == "i32" else llvm_element(self.target.dtype)

    def _choose(self, condition: str, this: Callable[[], None], other: Callable[[], None]) -> None:
        """Emit one of two pieces of code that is run where an i1 holds, and the other."""
        fn = self.fn
        labels = fn.new_label(), fn.new_label()
        done = fn.new_label()
        fn.branch_if(condition, *labels)
        for label, body in zip(labels, (this, other), strict=True):
            fn.place(label)
            body()
            fn.branch(done)
        fn.place(done)


def amx_results(
    fn: FunctionBuilder,
    blocks: AmxBlocks,
    c_stride: int,
    zero_init: bool,
    target: AmxTarget | None,
    is_limited: bool,
) -> AmxResults:
    """What every block of a product needs, computed once; `c_stride` in bytes."""
    if target is None:
        return AmxResults(fn, blocks, c_stride, zero_init)
    assert not zero_init, "whether a sum begins is told at run time, or known"
    stride = scaled(fn, "%target_stride", target.element_bytes)
    is_alone = fn.value("and i1 %is_first, %is_last")
    following = fn.value(f"select i1 {is_alone}, i64 {stride}, i64 {c_stride}")
    room = ""
    if target.element_bytes < ACCUMULATOR_BYTES or is_limited:
        room = fn.value(f"alloca [{blocks.rows * blocks.panel_row_bytes} x i8], align 64")
    strides = stride, is_alone, following
    return AmxResults(fn, blocks, c_stride, zero_init, target, *strides, room, is_limited)
