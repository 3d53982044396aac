"""A block of a product with a matrix that lies transposed in memory; see `transposed_b.py`."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.support.dataclass import dataclass
from tilewright.targets.cpu.dot.multiply_add import (
    add_column_sums,
    emit_multiply_add,
    row_of_2x2,
    take_off_bias,
)
from tilewright.targets.cpu.dot.panels import ELEMENT_BYTES, Multiply, VectorUnit
from tilewright.targets.cpu.dot.vectors import (
    element_address,
    scaled,
    shuffle,
    splat,
    transpose,
)
from tilewright.targets.cpu.dot.widen import STORAGE_BYTES, STORAGE_TYPE, emit_widen


@dataclass(frozen=True)
class TransposedProduct:
    """A product of `m` rows with `[N, K]` in memory, of the dtype `source`.

    *Units* `lda` in elements, None where it is known at run time; `ldc` in elements.
    `fetches`: it asks for the lines of the next product's B.
    """

    m: int
    n: int
    k: int
    multiply: Multiply
    unit: VectorUnit
    lanes: int
    source: str
    lda: int | None
    ldc: int
    zero_init: bool
    fetches: bool

    @property
    def per_lane(self) -> int:
        """Elements of the source that a lane of a square holds."""
        return self.multiply.lane_bytes // STORAGE_BYTES[STORAGE_TYPE[self.source]]

    @property
    def square_type(self) -> str:
        """The LLVM type of a lane of a square."""
        is_pair = self.per_lane > self.multiply.k_group
        return "i32" if is_pair else self.multiply.lane_type

    @property
    def square_lanes(self) -> int:
        """The lanes of a square's vectors."""
        return self.lanes // self.multiply.rows

    @property
    def line(self) -> int:
        """How many k a square covers."""
        return self.lanes * self.per_lane

    @property
    def most_rows(self) -> int:
        """The rows of A in a block: with a square and a splat they fill the registers.

        Where there are 32 registers an instruction takes its splat from memory.
        """
        spare = 0 if self.unit.num_registers == 32 else 2
        return max(1, self.unit.num_registers - self.lanes - spare - self.multiply.bias_a)

    @property
    def acc_type(self) -> str:
        """The LLVM type of one accumulator."""
        return f"<{self.lanes} x {self.multiply.accumulator_type}>"


@dataclass(frozen=True, eq=False)
class TransposedBlock:
    """The code of a block: a few rows of A by `lanes` rows of the source."""

    fn: FunctionBuilder
    product: TransposedProduct
    rows: int

    @property
    def num_chains(self) -> int:
        """The accumulators, that of a biased A's excess included; of two rows there are two."""
        per_chain = self.product.multiply.rows
        return -(-self.rows // per_chain) * per_chain + self.product.multiply.bias_a

    def add_line(self, number: str, chains: Sequence[str]) -> Sequence[str]:
        """A square: its columns one after the other."""
        fn, product = self.fn, self.product
        first = scaled(fn, number, product.line)
        loaded, size = self._load_square(first), product.square_lanes
        squares = [
            transpose(fn, size, product.square_type, loaded[at : at + size])
            for at in range(0, product.lanes, size)
        ]
        rows = self._rows_of_a(first)
        step = 0
        for columns in zip(*squares, strict=True):
            for vectors in self._vectors(columns):
                chains = self._add(rows, step, vectors, chains)
                step += product.multiply.k_group
        return chains

    def add_group(self, number: str, chains: Sequence[str]) -> Sequence[str]:
        """One k-group of each row, element by element; rows beyond the last are the last."""
        first = scaled(self.fn, number, self.product.multiply.k_group)
        vectors = self._gathered(first)
        return self._add(self._rows_of_a(first), 0, vectors, chains)

    def store(self, chains: Sequence[str]) -> None:
        """Add the sums to the rows of the result."""
        fn, product = self.fn, self.product
        scalar = product.multiply.accumulator_type
        align = ELEMENT_BYTES[product.multiply.accumulator]
        for row in range(self.rows):
            value = self._sum_of_row(chains, row)
            if product.multiply.bias_a:
                value = take_off_bias(fn, product.multiply, product.lanes, value, chains[-1])
            at = element_address(fn, scalar, "%c", row * product.ldc)
            if not product.zero_init:
                old = fn.value(f"load {product.acc_type}, ptr {at}, align {align}")
                add = "add" if scalar == "i32" else "fadd"
                value = fn.value(f"{add} {product.acc_type} {old}, {value}")
            fn.emit(f"store {product.acc_type} {value}, ptr {at}, align {align}")

    def _sum_of_row(self, chains: Sequence[str], row: int) -> str:
        """The sums of one row of A."""
        if self.product.multiply.rows == 1:
            return chains[row]
        first = row // 2 * 2
        return row_of_2x2(self.fn, self.product.multiply, chains[first : first + 2], row % 2)

    def _load_square(self, first: str) -> list[str]:
        """A vector along k of each row of the source; what comes later is asked for."""
        fn, product = self.fn, self.product
        type_ = STORAGE_TYPE[product.source]
        vector = f"<{product.square_lanes} x {product.square_type}>"
        fetch = fn.module.declare("llvm.prefetch.p0", "void", "ptr, i32, i32, i32")
        at = element_address(fn, type_, "%b", first)
        loaded: list[str] = []
        for _ in range(product.lanes):
            if loaded:
                at = element_address(fn, type_, at, "%ldb")
            align = STORAGE_BYTES[type_]
            loaded.append(fn.value(f"load {vector}, ptr {at}, align {align}"))
            if product.fetches:
                later = fn.value(f"getelementptr i8, ptr {at}, i64 %ahead")
                fn.emit(f"call void {fetch}(ptr {later}, i32 0, i32 2, i32 1)")
        return loaded

    def _vectors(self, columns: tuple[str, ...]) -> list[tuple[str, ...]]:
        """The vectors of B in a column of each square, by k-groups: themselves, or two of 16 bits a
        lane, widened."""
        fn, product = self.fn, self.product
        if product.per_lane <= product.multiply.k_group:
            return [columns]
        (column,), lanes = columns, product.lanes
        upper = fn.value(f"lshr <{lanes} x i32> {column}, splat (i32 16)")
        narrow = [
            fn.value(f"trunc <{lanes} x i32> {value} to <{lanes} x i16>")
            for value in (column, upper)
        ]
        return [(self._widened(value),) for value in narrow]

    def _widened(self, value: str) -> str:
        product = self.product
        element, features = product.multiply.b_element, product.unit.features
        return emit_widen(self.fn, product.source, element, product.lanes, value, features)

    def _gathered(self, first: str) -> tuple[str, ...]:
        """The vectors of B from its elements; those of a group beyond the depth are zero."""
        fn, product = self.fn, self.product
        type_, group = STORAGE_TYPE[product.source], product.multiply.k_group
        kind = f"<{product.lanes * group} x {type_}>"
        vector = "zeroinitializer"
        last = fn.value("sub nsw i64 %columns, 1")
        smin = fn.module.declare("llvm.smin.i64", "i64", "i64, i64")
        end = fn.value("sub nsw i64 %depth, 1")
        for lane in range(product.lanes):
            row = fn.value(f"call i64 {smin}(i64 {lane}, i64 {last})")
            start = element_address(fn, type_, "%b", scaled(fn, row, "%ldb"))
            for part in range(group):
                k = scaled(fn, first, 1, part)
                near = fn.value(f"call i64 {smin}(i64 {k}, i64 {end})") if part else k
                at = element_address(fn, type_, start, near)
                element = fn.value(f"load {type_}, ptr {at}, align {STORAGE_BYTES[type_]}")
                if part:
                    exists = fn.value(f"icmp sle i64 {k}, {end}")
                    element = fn.value(f"select i1 {exists}, {type_} {element}, {type_} 0")
                place = lane * group + part
                vector = fn.value(f"insertelement {kind} {vector}, {type_} {element}, i64 {place}")
        if group == 1:
            return (self._widened(vector),)
        lane = product.multiply.lane_type
        groups = fn.value(f"bitcast {kind} {vector} to <{product.lanes} x {lane}>")
        if product.multiply.rows == 1:
            return (groups,)
        halves = ((0, 1), (2, 3))
        return tuple(shuffle(fn, 4, lane, groups, "poison", half) for half in halves)

    def _rows_of_a(self, first: str) -> list[str]:
        """Where each row of A has its element `first`; rows beyond the last are the last.

        Of an A that was packed there are as many as the product has.
        """
        fn, product = self.fn, self.product
        type_ = STORAGE_TYPE[product.multiply.a_element]
        at_once = product.multiply.rows
        rows = [element_address(fn, type_, "%a", scaled(fn, first, at_once))]
        if product.lda is not None:
            offsets = (row * product.lda for row in range(0, self.rows, at_once))
            return [element_address(fn, type_, rows[0], offset) for offset in offsets]
        while len(rows) < self.rows:
            exists = fn.value(f"icmp slt i64 {len(rows)}, %rows")
            step = fn.value(f"select i1 {exists}, i64 %lda, i64 0")
            rows.append(element_address(fn, type_, rows[-1], step))
        return rows

    def _add(
        self, rows: Sequence[str], offset: int, vectors: Sequence[str], chains: Sequence[str]
    ) -> list[str]:
        """Add the products of a k-group, at `offset` in the rows of A, to each chain."""
        fn, multiply, lanes = self.fn, self.product.multiply, self.product.lanes
        type_, count = STORAGE_TYPE[multiply.a_element], len(vectors)
        following: list[str] = []
        for number, row in enumerate(rows):
            at = element_address(fn, type_, row, offset * multiply.rows)
            value = self._load_a(at)
            for vector, chain in zip(vectors, chains[number * count :], strict=False):
                following.append(emit_multiply_add(fn, multiply, lanes, chain, value, vector))
        if multiply.bias_a:
            following.append(add_column_sums(fn, multiply, lanes, chains[-1], vectors[0]))
        return following

    def _load_a(self, at: str) -> str:
        """A k-group of a row in every lane, or those of two rows."""
        fn, multiply = self.fn, self.product.multiply
        lane, align = multiply.lane_type, ELEMENT_BYTES[multiply.a_element]
        if multiply.rows == 2:
            return fn.value(f"load <2 x {lane}>, ptr {at}, align {align}")
        scalar = fn.value(f"load {lane}, ptr {at}, align {align}")
        return splat(fn, self.product.lanes, lane, scalar)
