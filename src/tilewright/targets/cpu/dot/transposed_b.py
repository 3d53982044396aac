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
from tilewright.support.dataclass import replace
from tilewright.targets.cpu.dot.panels import Multiply
from tilewright.targets.cpu.dot.transposed_block import TransposedBlock, TransposedProduct
from tilewright.targets.cpu.dot.vectors import (
    carried_while,
    counted_loop,
    counted_while,
    element_address,
    scaled,
)
from tilewright.targets.cpu.dot.widen import STORAGE_BYTES, STORAGE_TYPE

HEIGHTS = (1, 4, 8)
"""Rows for which a product whose rows are known at run time has blocks of its own.

Chosen, not measured: the one row of decoding, and halves of a tile that a kernel may not make
smaller. A block computes all its rows, seen or not."""


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
    block = TransposedBlock(fn, product, rows)
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
