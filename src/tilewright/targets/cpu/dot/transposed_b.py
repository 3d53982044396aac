"""Products of few rows with a matrix that lies transposed in memory: `[N, K]`, as weights do.

    acc[m, n] (+)= a[m, k] · source[n, k]      m up to FEW_ROWS

Each element of such a B meets few rows of A, so a copy in panels, written and read again, costs
more than the product. A square of `lanes` rows of the source is transposed in registers instead,
and each of its columns, a vector along n, is multiplied at once:

    for `lanes` rows of the source, for `rows` rows of A
      registers[rows] = 0
      for a line of k: load `lanes` vectors along k, fetch those of the next product, transpose
        for k group: registers[r] += splat(a[r][k]) * column[k]
      acc[rows] += registers

Two rows by two columns in an instruction need no square of four: two rows of the source side by
side are a vector of B already, and `lanes` of them give two.

The sum of an element has the order that it has with panels. At the end of k, and beyond the last
row of the source, where a whole square would read what is not the user's, the elements of a column
are loaded one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256

from tilewright.codegen.llvm_builder import FunctionBuilder, ModuleBuilder
from tilewright.support.dataclass import dataclass, replace
from tilewright.targets.cpu.dot.multiply_add import (
    add_column_sums,
    emit_multiply_add,
    row_of_2x2,
    take_off_bias,
)
from tilewright.targets.cpu.dot.panels import ELEMENT_BYTES, Multiply, VectorUnit
from tilewright.targets.cpu.dot.vectors import (
    carried_while,
    counted_loop,
    counted_while,
    element_address,
    scaled,
    shuffle,
    splat,
    transpose,
)
from tilewright.targets.cpu.dot.widen import STORAGE_BYTES, STORAGE_TYPE, emit_widen

HEIGHTS = (1, 4, 8)
"""Rows for which a product whose rows are known at run time has blocks of its own.

Chosen, not measured: the one row of decoding, and halves of a tile that a kernel may not make
smaller. A block computes all its rows, seen or not."""


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


def reads_transposed(multiply: Multiply, source: str, lanes: int, n: int) -> bool:
    """Whether squares of the source give the vectors that an instruction takes.

    Lanes hold a k-group as it lies in memory, or two f16 or bf16 that are widened one by one.
    """
    storage = STORAGE_TYPE[source]
    if multiply.rows == 2:
        return n % lanes == 0
    lane_bytes = multiply.lane_bytes
    is_same = storage == STORAGE_TYPE[multiply.b_element]
    is_group = is_same and multiply.k_group * STORAGE_BYTES[storage] == lane_bytes
    is_pair = storage == "i16" and multiply.b_element == "f32" and multiply.k_group == 1
    return (is_group or is_pair) and multiply.parts == 1 and n % lanes == 0


def emit_transposed_product(
    fn: FunctionBuilder, product: TransposedProduct, limits: tuple[str, str, str]
) -> None:
    """The product of `%a`, `%b_source` and `%c`, with `%a_stride` if it knows none.

    If it `fetches`, `%next_b` is where the next product's B begins.

    `limits`: i64 values, from 1 to m, n and k: what is read and summed. Rows of `%c` beyond them
    are undefined afterwards.
    """
    rows = limits[0]
    ahead = "0"
    if product.fetches:
        here, there = (fn.value(f"ptrtoint ptr {name} to i64") for name in ("%b_source", "%next_b"))
        ahead = fn.value(f"sub i64 {there}, {here}")

    def all_rows() -> None:
        most = min(product.m, product.most_rows)
        for first in range(0, product.m, most):
            block = (first, min(most, product.m - first))
            if first == 0 or rows.isdecimal():
                _emit_columns(fn, product, block, limits, ahead)
                continue
            seen, done = fn.new_label(), fn.new_label()
            fn.branch_if(fn.value(f"icmp slt i64 {first}, {rows}"), seen, done)
            fn.place(seen)
            _emit_columns(fn, product, block, limits, ahead)
            fn.branch(done)
            fn.place(done)

    if rows.isdecimal():
        all_rows()
        return
    heights = [height for height in HEIGHTS if height < min(product.m, product.most_rows + 1)]
    _choose_height(fn, product, heights, limits, ahead, all_rows)


def _choose_height(
    fn: FunctionBuilder,
    product: TransposedProduct,
    heights: Sequence[int],
    limits: tuple[str, str, str],
    ahead: str,
    otherwise: Callable[[], None],
) -> None:
    """Blocks of the first of some heights that holds all rows; otherwise those of the tile."""
    done = fn.new_label()
    for height in heights:
        fits, more = fn.new_label(), fn.new_label()
        fn.branch_if(fn.value(f"icmp sle i64 {limits[0]}, {height}"), fits, more)
        fn.place(fits)
        _emit_columns(fn, product, (0, height), limits, ahead)
        fn.branch(done)
        fn.place(more)
    otherwise()
    fn.branch(done)
    fn.place(done)


def _emit_columns(
    fn: FunctionBuilder,
    product: TransposedProduct,
    rows: tuple[int, int],
    limits: tuple[str, str, str],
    ahead: str,
) -> None:
    """Some rows of A, (first, count), with all rows of the source."""
    first, count = rows
    all_rows, columns, depth = limits
    callee = _emit_block(fn.module, product, count)
    a_type = STORAGE_TYPE[product.multiply.a_element]
    lda = "%a_stride" if product.lda is None else str(product.lda)
    a = element_address(fn, a_type, "%a", scaled(fn, str(first), lda) if first else "0")
    left = scaled(fn, all_rows, 1, -first)
    b_type = STORAGE_TYPE[product.source]
    c_type = product.multiply.accumulator_type

    def block(number: str) -> None:
        column = scaled(fn, number, product.lanes)
        b = element_address(fn, b_type, "%b_source", scaled(fn, column, "%b_source_stride"))
        c = element_address(fn, c_type, "%c", scaled(fn, column, 1, first * product.ldc))
        seen = fn.value(f"sub nsw i64 {columns}, {column}")
        strides = f"i64 {lda}, i64 %b_source_stride"
        sizes = f"i64 {left}, i64 {seen}, i64 {depth}, i64 {ahead}"
        fn.emit(f"call fastcc void {callee}(ptr {a}, ptr {b}, ptr {c}, {strides}, {sizes})")

    if columns.isdecimal():
        counted_loop(fn, product.n // product.lanes, block)
        return
    room = fn.value(f"add nsw i64 {columns}, {product.lanes - 1}")
    counted_while(fn, fn.value(f"sdiv i64 {room}, {product.lanes}"), block)


def _emit_block(module: ModuleBuilder, product: TransposedProduct, rows: int) -> str:
    """Define `fastcc void @name(ptr %a, ptr %b, ptr %c, i64 %lda, i64 %ldb, i64 %rows,
    i64 %columns, i64 %depth, i64 %ahead)` for `rows` rows and return `@name`.

    `%rows` and `%columns` may be more than the block has; what is `%ahead` bytes behind B is
    fetched.
    """
    # A module is for one machine, whose features would be told in the order of a set.
    unit = replace(product.unit, features=frozenset())
    key = replace(product, m=rows, n=0, k=0, unit=unit)
    digest = sha256(repr(key).encode()).hexdigest()[:12]
    name = f"tw.dot.transposed{rows}.{digest}"
    if module.has_function(name):
        return f"@{name}"
    arguments = "ptr noalias %a, ptr noalias %b, ptr noalias %c, i64 %lda, i64 %ldb, "
    arguments += "i64 %rows, i64 %columns, i64 %depth, i64 %ahead"
    fn = FunctionBuilder(
        module, f"define internal fastcc void @{name}({arguments}) noinline nounwind"
    )
    block = _Block(fn, product, rows)
    is_whole = fn.value(f"icmp sge i64 %columns, {product.lanes}")
    lines = fn.value(f"udiv i64 %depth, {product.line}")
    lines = fn.value(f"select i1 {is_whole}, i64 {lines}, i64 0")
    zeros = ["zeroinitializer"] * block.num_chains
    chains = carried_while(fn, ("0", lines), product.acc_type, zeros, block.add_line)
    group = product.multiply.k_group
    start = scaled(fn, lines, product.line // group)
    end = fn.value(f"add nsw i64 %depth, {group - 1}") if group > 1 else "%depth"
    end = fn.value(f"udiv i64 {end}, {group}") if group > 1 else end
    chains = carried_while(fn, (start, end), product.acc_type, chains, block.add_group)
    block.store(chains)
    fn.emit("ret void")
    return module.add_function(name, fn.text())


@dataclass(frozen=True, eq=False)
class _Block:
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
