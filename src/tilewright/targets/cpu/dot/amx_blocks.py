"""How AMX cuts a product: blocks of two by two tiles, and what is copied.

*Source* measured (Emerald Rapids, bf16 1024³, one thread): copying the rows of a block that meet
many panels takes 1.2 times the speed.
"""

from __future__ import annotations

from tilewright.support.dataclass import dataclass
from tilewright.targets.cpu.dot.amx_tiles import (
    ACCUMULATOR_BYTES,
    SIDE,
    TILE_BYTES,
    TILE_ROWS,
    TileShape,
    tile_shape,
)
from tilewright.targets.cpu.dot.panels import ELEMENT_BYTES, Multiply

COPYING_PANELS = 8
"""Panels of B from which a copy of A's rows pays: it takes the time of half a panel's product.

Source: measured (Emerald Rapids): tiles of 64 and 128 columns are faster without, 256 with."""


@dataclass(frozen=True)
class AmxBlocks:
    """How a product of `m` rows, `n` columns and depth `k` is cut into blocks of tiles."""

    m: int
    n: int
    k: int
    multiply: Multiply
    tiles: TileShape

    @property
    def row_tiles(self) -> int:
        """Tiles of C along a block's rows."""
        return min(SIDE, self.m // self.tiles.rows)

    @property
    def column_tiles(self) -> int:
        """Tiles of C along a block's columns."""
        return min(SIDE, self.n // self.tiles.columns)

    @property
    def rows(self) -> int:
        """Rows of a block."""
        return self.row_tiles * self.tiles.rows

    @property
    def num_row_blocks(self) -> int:
        """Blocks along the rows of C."""
        return self.m // self.rows

    @property
    def num_panels(self) -> int:
        """Blocks along the columns of C: B's panels."""
        return self.n // (self.column_tiles * self.tiles.columns)

    @property
    def a_bytes(self) -> int:
        """Bytes of an element of A, and of B."""
        return ELEMENT_BYTES[self.multiply.a_element]

    @property
    def k_bytes(self) -> int:
        """Bytes of one part of a row of A."""
        return self.k * self.a_bytes

    @property
    def parts(self) -> int:
        """Numbers that stand for an element; PART_PAIRS says which are multiplied."""
        return self.multiply.parts

    @property
    def panel_bytes(self) -> int:
        """Bytes of a panel of B, all its parts."""
        return self.parts * self.num_steps * self.step_bytes

    @property
    def step_depth(self) -> int:
        """The k of a step."""
        return self.tiles.k_bytes // self.a_bytes

    @property
    def num_steps(self) -> int:
        """Steps of k, each as deep as a tile."""
        return self.k_bytes // self.tiles.k_bytes

    @property
    def row_columns(self) -> int:
        """Columns of a block, and of a panel."""
        return self.column_tiles * self.tiles.columns

    @property
    def panel_row_bytes(self) -> int:
        """Bytes of one k-group of a panel, and of a row of a block of C."""
        return self.row_columns * ACCUMULATOR_BYTES

    @property
    def step_bytes(self) -> int:
        """Bytes of one step's part of a panel."""
        return self.tiles.k_bytes // 4 * self.panel_row_bytes

    @property
    def is_square(self) -> bool:
        """Whether blocks have as many tiles along rows and columns as registers hold."""
        return self.row_tiles == self.column_tiles == SIDE

    @property
    def copies_rows(self) -> bool:
        """Whether the rows of a block are copied before they are multiplied."""
        is_full = self.tiles.k_bytes == TILE_BYTES and self.rows == SIDE * TILE_ROWS
        return is_full and self.num_panels >= COPYING_PANELS

    @property
    def room_bytes(self) -> int:
        """Bytes of the room for copied rows; 0 without a copy."""
        return self.rows * self.k_bytes * self.parts * self.copies_rows


def amx_blocks(shape: tuple[int, int, int], multiply: Multiply) -> AmxBlocks:
    """How a product of `shape` (m, n, k) that AMX covers is cut."""
    tiles = tile_shape(*shape, ELEMENT_BYTES[multiply.a_element])
    assert tiles is not None, shape
    return AmxBlocks(*shape, multiply, tiles)
