"""AMX's tile registers: how a product is cut for them, their configuration, their instructions.

Eight registers of up to 16 rows of 64 bytes. `tdpbf16ps` and `tdpb??d` add to a tile of 16 x 16
f32 or i32 the product of a tile of A (a row: 64 bytes of consecutive k) with a tile of B (a row:
one k-group of 16 columns, as in the panels). Registers are named by constants, since a
configuration that LLVM made for itself would be loaded and dropped in every function.

    register   0 1 2 3              4 5        6 7
    holds      C, two by two        A, rows    B, columns

Source: Intel's Instruction Set Extensions Programming Reference, chapter 3 (AMX).
"""

from __future__ import annotations

from tilewright.codegen.llvm_builder import FunctionBuilder, ModuleBuilder
from tilewright.support.dataclass import dataclass
from tilewright.support.powers_of_two import is_power_of_two

# By definition: the palette 1 of AMX.
TILE_ROWS, TILE_BYTES, NUM_TILES = 16, 64, 8
GROUP_BYTES, ACCUMULATOR_BYTES = 4, 4
SIDE = 2
"""Tiles of C along each side of a block: with two of A and two of B, all eight registers.
By definition: eight registers leave no larger square."""

# By definition: C's four come first.
A_TILES, B_TILES = (4, 5), (6, 7)
# By definition: where the manual has them.
_PALETTE = 1
_CONFIG_BYTES, _COLUMNS_AT, _ROWS_AT = 64, 16, 48


@dataclass(frozen=True)
class TileShape:
    """The registers of one product: `rows` of A and C, `columns` of B and C, `k_bytes` of A."""

    rows: int
    columns: int
    k_bytes: int

    def configuration(self) -> bytes:
        """The 64 bytes that `ldtilecfg` takes: width in bytes and rows of each register."""
        wide = self.columns * ACCUMULATOR_BYTES
        groups = self.k_bytes // GROUP_BYTES
        sizes = [(wide, self.rows)] * SIDE**2
        sizes += [(self.k_bytes, self.rows)] * SIDE + [(wide, groups)] * SIDE
        config = bytearray(_CONFIG_BYTES)
        config[0] = _PALETTE
        for number, (width, rows) in enumerate(sizes):
            at = _COLUMNS_AT + 2 * number
            config[at : at + 2] = width.to_bytes(2, "little")
            config[_ROWS_AT + number] = rows
        return bytes(config)


FULL_TILES = TileShape(TILE_ROWS, TILE_ROWS, TILE_BYTES)
"""What every product of at least 16 rows, 16 columns and 64 bytes of k takes."""


def tile_shape(m: int, n: int, k: int, element_bytes: int) -> TileShape | None:
    """The registers for a product of tiles, or None where they do not cover it exactly.

    *Constraints* below a register's size an extent may be any (k in whole groups, n at least
    four), above it is a multiple of a block's side: so are all powers of two.
    """
    rows, columns = min(m, TILE_ROWS), min(n, TILE_ROWS)
    k_bytes = min(k * element_bytes, TILE_BYTES)
    is_whole = (
        _is_covered(m, TILE_ROWS * SIDE)
        and _is_covered(n, TILE_ROWS * SIDE)
        and k * element_bytes % k_bytes == 0
        and k_bytes % GROUP_BYTES == 0
    )
    # Panels of fewer than four columns are padded to four, the least that a vector holds.
    is_wide = columns >= 4 and is_power_of_two(columns)
    return TileShape(rows, columns, k_bytes) if is_whole and is_wide else None


def _is_covered(extent: int, block: int) -> bool:
    return extent <= TILE_ROWS or extent % block == 0


def emit_configure(fn: FunctionBuilder, shape: TileShape) -> None:
    """Load the configuration of `shape`; the registers become zero."""
    callee = fn.module.declare("llvm.x86.ldtilecfg", "void", "ptr")
    fn.emit(f"call void {callee}(ptr {_configuration(fn.module, shape)})")


def emit_release(fn: FunctionBuilder) -> None:
    """Give the registers back, so that a context switch saves none."""
    fn.emit(f"call void {fn.module.declare('llvm.x86.tilerelease', 'void', '')}()")


def _configuration(module: ModuleBuilder, shape: TileShape) -> str:
    data = "".join(f"\\{byte:02X}" for byte in shape.configuration())
    name = f"tw.amx.config.{shape.rows}.{shape.columns}.{shape.k_bytes}"
    definition = f'private unnamed_addr constant [{_CONFIG_BYTES} x i8] c"{data}", align 64'
    return module.add_global(name, definition)


def emit_zero(fn: FunctionBuilder, number: int) -> None:
    """Set a register to zero."""
    callee = fn.module.declare("llvm.x86.tilezero", "void", "i8 immarg")
    fn.emit(f"call void {callee}(i8 {number})")


def emit_load(
    fn: FunctionBuilder, number: int, address: str, stride: str | int, is_streamed: bool = False
) -> None:
    """Load a register from rows `stride` bytes apart.

    `is_streamed` asks that the lines do not take the place of others in the first-level cache.
    """
    name = "llvm.x86.tileloaddt164" if is_streamed else "llvm.x86.tileloadd64"
    callee = fn.module.declare(name, "void", "i8 immarg, ptr, i64")
    fn.emit(f"call void {callee}(i8 {number}, ptr {address}, i64 {stride})")


def emit_store(fn: FunctionBuilder, number: int, address: str, stride: str | int) -> None:
    """Store a register to rows `stride` bytes apart."""
    callee = fn.module.declare("llvm.x86.tilestored64", "void", "i8 immarg, ptr, i64")
    fn.emit(f"call void {callee}(i8 {number}, ptr {address}, i64 {stride})")


# The first letter behind `tdpb` is A's sign, the second B's.
_PRODUCTS = {
    ("bf16", "bf16"): "tdpbf16ps",
    ("i8", "i8"): "tdpbssd",
    ("i8", "u8"): "tdpbsud",
    ("u8", "i8"): "tdpbusd",
    ("u8", "u8"): "tdpbuud",
}


def emit_tile_product(
    fn: FunctionBuilder, elements: tuple[str, str], c: int, a: int, b: int
) -> None:
    """Register `c` += register `a` · register `b`, of the given element types."""
    name = f"llvm.x86.{_PRODUCTS[elements]}"
    callee = fn.module.declare(name, "void", "i8 immarg, i8 immarg, i8 immarg")
    fn.emit(f"call void {callee}(i8 {c}, i8 {a}, i8 {b})")
