"""Products of few rows with a transposed matrix on AMX: the weights are the operand of rows.

    accᵀ[n, m] (+)= source[n, k] · aᵀ[k, m]

AMX reads its first operand by rows of 64 bytes along k, wherever they lie: so do weights
`[outputs, inputs]`, and of a copy in panels, which costs as much as the product of 16 rows, only
the few rows of A are left. Their transpose is made in the room, once for all weights; the sums of
16 outputs are transposed back in registers.
"""

from __future__ import annotations

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.support.dataclass import dataclass
from tilewright.targets.cpu.dot.amx_tiles import (
    ACCUMULATOR_BYTES,
    FULL_TILES,
    TILE_BYTES,
    TILE_ROWS,
    emit_configure,
    emit_load,
    emit_release,
    emit_store,
    emit_tile_product,
    emit_zero,
)
from tilewright.targets.cpu.dot.panels import ELEMENT_BYTES, Multiply
from tilewright.targets.cpu.dot.vectors import counted_loop, element_address, scaled, transpose

# By definition: a tile register holds 16 rows of a line.
_REGISTER_BYTES = TILE_ROWS * TILE_BYTES
# By definition: four sums, two tiles of weights in turn and one of A fit in eight registers.
_MOST_SUMS, _WEIGHTS, _ROWS_OF_A = 4, (4, 5), 6


@dataclass(frozen=True)
class AmxTransposed:
    """A product of `m` rows, at most 16, with `[n, k]` in memory.

    *Units* `lda`, `ldc` in elements. `fetches`: it asks for the lines of the next product's B.
    """

    m: int
    n: int
    k: int
    multiply: Multiply
    lda: int
    ldc: int
    zero_init: bool
    fetches: bool

    @property
    def steps(self) -> int:
        """Steps of k, each as deep as a tile."""
        return self.k * ELEMENT_BYTES[self.multiply.a_element] // TILE_BYTES

    @property
    def num_sums(self) -> int:
        """Registers of sums that are computed together."""
        return next(count for count in (_MOST_SUMS, 2, 1) if self.n // TILE_ROWS % count == 0)

    @property
    def room_bytes(self) -> int:
        """Bytes of the room: the transpose of A, and sums on their way."""
        return (self.steps + self.num_sums) * _REGISTER_BYTES


def covers_transposed(shape: tuple[int, int, int], multiply: Multiply) -> bool:
    """Whether whole registers cover the weights of a product of `shape` (m, n, k)."""
    m, n, k = shape
    is_whole = n % TILE_ROWS == 0 and k * ELEMENT_BYTES[multiply.a_element] % TILE_BYTES == 0
    return m <= TILE_ROWS and is_whole and multiply.parts == 1


def emit_amx_transposed(fn: FunctionBuilder, product: AmxTransposed) -> None:
    """The product of `%a`, `%b_source` with `%b_source_stride` and `%c`, with `%room`.

    If it `fetches`, `%next_b` is where the next product's B begins.
    """
    _Emission(fn, product).emit()


@dataclass(frozen=True, eq=False)
class _Emission:
    """The product being written."""

    fn: FunctionBuilder
    product: AmxTransposed

    def emit(self) -> None:
        """The transpose of A, then blocks of weights."""
        fn, product = self.fn, self.product
        counted_loop(fn, product.steps, self._turn_rows)
        width = ELEMENT_BYTES[product.multiply.b_element]
        stride = scaled(fn, "%b_source_stride", width)
        emit_configure(fn, FULL_TILES)
        rows = TILE_ROWS * product.num_sums
        counted_loop(fn, product.n // rows, lambda block: self._block(block, stride))
        emit_release(fn)

    def _turn_rows(self, step: str) -> None:
        """A step's square of A: row g of its register has the k-groups g of all rows."""
        fn, product = self.fn, self.product
        row_bytes = product.lda * ELEMENT_BYTES[product.multiply.a_element]
        start = element_address(fn, "i8", "%a", scaled(fn, step, TILE_BYTES))
        rows = ["zeroinitializer"] * TILE_ROWS
        for row in range(product.m):
            at = element_address(fn, "i8", start, row * row_bytes)
            rows[row] = fn.value(f"load <16 x i32>, ptr {at}, align 1")
        place = element_address(fn, "i8", "%room", scaled(fn, step, _REGISTER_BYTES))
        for group, value in enumerate(transpose(fn, TILE_ROWS, "i32", rows)):
            at = element_address(fn, "i8", place, group * TILE_BYTES)
            fn.emit(f"store <16 x i32> {value}, ptr {at}, align 64")

    def _block(self, block: str, stride: str) -> None:
        """The sums of a few registers of weights, through all of k."""
        fn, product = self.fn, self.product
        first = scaled(fn, block, TILE_ROWS * product.num_sums)
        weights = element_address(fn, "i8", "%b_source", scaled(fn, first, stride))
        starts = [
            element_address(fn, "i8", weights, scaled(fn, stride, number * TILE_ROWS))
            for number in range(product.num_sums)
        ]
        for number in range(product.num_sums):
            emit_zero(fn, number)
        counted_loop(fn, product.steps, lambda step: self._step(step, starts, stride))
        sums = element_address(fn, "i8", "%room", product.steps * _REGISTER_BYTES)
        for number in range(product.num_sums):
            at = element_address(fn, "i8", sums, number * _REGISTER_BYTES)
            emit_store(fn, number, at, TILE_BYTES)
            self._add_sums(at, scaled(fn, first, 1, number * TILE_ROWS))

    def _step(self, step: str, starts: list[str], stride: str) -> None:
        fn, product = self.fn, self.product
        multiply = product.multiply
        rows = element_address(fn, "i8", "%room", scaled(fn, step, _REGISTER_BYTES))
        emit_load(fn, _ROWS_OF_A, rows, TILE_BYTES)
        for number, start in enumerate(starts):
            at = element_address(fn, "i8", start, scaled(fn, step, TILE_BYTES))
            register = _WEIGHTS[number % len(_WEIGHTS)]
            emit_load(fn, register, at, stride, is_streamed=True)
            if product.fetches:
                self._fetch(at, stride)
            elements = multiply.b_element, multiply.a_element
            emit_tile_product(fn, elements, number, register, _ROWS_OF_A)

    def _fetch(self, at: str, stride: str) -> None:
        """Ask for the same lines of the next product's weights."""
        fn = self.fn
        callee = fn.module.declare("llvm.prefetch.p0", "void", "ptr, i32, i32, i32")
        here, there = (fn.value(f"ptrtoint ptr {name} to i64") for name in ("%b_source", "%next_b"))
        ahead = fn.value(f"sub i64 {there}, {here}")
        row = fn.value(f"getelementptr i8, ptr {at}, i64 {ahead}")
        for _ in range(TILE_ROWS):
            fn.emit(f"call void {callee}(ptr {row}, i32 0, i32 2, i32 1)")
            row = fn.value(f"getelementptr i8, ptr {row}, i64 {stride}")

    def _add_sums(self, sums: str, column: str) -> None:
        """Add the transpose of a register's sums to 16 columns of the result."""
        fn, product = self.fn, self.product
        scalar = product.multiply.accumulator_type
        vector = f"<{TILE_ROWS} x {scalar}>"
        loaded: list[str] = []
        for row in range(TILE_ROWS):
            at = element_address(fn, "i8", sums, row * TILE_BYTES)
            loaded.append(fn.value(f"load {vector}, ptr {at}, align 64"))
        turned = transpose(fn, TILE_ROWS, scalar, loaded)[: product.m]
        place = element_address(fn, scalar, "%c", column)
        add = "add" if scalar == "i32" else "fadd"
        for row, value in enumerate(turned):
            at = element_address(fn, scalar, place, row * product.ldc)
            total = value
            if not product.zero_init:
                old = fn.value(f"load {vector}, ptr {at}, align {ACCUMULATOR_BYTES}")
                total = fn.value(f"{add} {vector} {old}, {value}")
            fn.emit(f"store {vector} {total}, ptr {at}, align {ACCUMULATOR_BYTES}")
