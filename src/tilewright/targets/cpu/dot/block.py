"""One block of a `dot`: rows by vectors of accumulators that live in registers through k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

from tilewright.codegen.llvm_builder import FunctionBuilder, ModuleBuilder
from tilewright.machine.cpus import LINE_BYTES
from tilewright.support.dataclass import dataclass
from tilewright.targets.cpu.dot.line_fetches import (
    TURN_STEPS,
    LineFetch,
    emit_fetches,
    fetch_parameters,
)
from tilewright.targets.cpu.dot.multiply_add import (
    add_column_sums,
    emit_multiply_add,
    take_off_bias,
)
from tilewright.targets.cpu.dot.panels import ELEMENT_BYTES, Multiply, PanelLayout
from tilewright.targets.cpu.dot.vectors import (
    carried_loop,
    carried_while,
    element_address,
    load_masked,
    load_prefix,
    prefix_mask,
    scaled,
    splat,
    store_masked,
    store_prefix,
)
from tilewright.targets.cpu.dot.widen import STORAGE_BYTES, STORAGE_TYPE, emit_widen

UNROLL = 4
"""The steps of k that one turn of the loop takes, so that its own instructions do not show.

Measured on Emerald Rapids, 2026-11-22: a block of 6x4 vectors unrolled by 1 is 4 to 6 % slower
than one unrolled by 8."""

TARGET_ARGUMENTS = ", ptr %target, i64 %target_stride, i1 %is_first"
"""The arguments of a product, and of a block of it, that is told where its sums go.

A block is told in `ptr %later_target`, after them, where the sums of the block after the next
one go."""

STEPS_AHEAD = 16
"""How many rows of B before it multiplies them a block of few rows fetches its columns.

Measured on Zen 5, 2026-11-23, one thread, f32, tiles of 16x64x64, with fetches / without, GB/s:
M x 4096 x 4096 with M of 1: 10.8 / 6.2, of 4: 10.4 / 6.3, of 8: 8.9 / 6.3; in the cache, 1024x1024,
M of 1: 43 / 45, of 8: 25 / 30. 8, 32 and 64 steps ahead give the same: each step is a page further,
which has to be found."""


@dataclass(frozen=True)
class BlockVector:
    """A vector of a block's columns.

    *Units* `offset` in elements of B from the block's first panel; `column` in columns of the
    block; `valid` lanes that belong to the tile.
    """

    offset: int
    column: int
    valid: int


@dataclass(frozen=True)
class BlockSpec:
    """One microkernel; equal blocks of a module are one function.

    *Units* `lda`, `ldc` in elements; an `lda` of None comes as an argument at run time.
    `fetches`: what is fetched meanwhile. `source`: the
    block reads row-major B of that dtype, and packs it if it `keeps` it for other blocks; if it
    may wait for memory alone, it `fetches_ahead`, by as many rows as it is told.
    `is_limited`: rows, columns of the source and depth are limited at run time.
    `has_target`: where the sums go, and whether anything is added to them, is told at run time.
    `is_edge`: short code rather than the last percents, for the block at a result's right edge.
    """

    multiply: Multiply
    layout: PanelLayout
    k: int
    rows: int
    vectors: tuple[BlockVector, ...]
    lda: int | None
    ldc: int
    zero_init: bool
    fetches: tuple[LineFetch, ...] = ()
    source: str | None = None
    keeps: bool = False
    fetches_ahead: bool = False
    features: frozenset[str] = frozenset()
    is_limited: bool = False
    has_target: bool = False
    is_edge: bool = False

    @property
    def num_steps(self) -> int:
        """The number of k-groups."""
        return self.layout.num_groups(self.k)

    @property
    def acc_type(self) -> str:
        """The LLVM type of one accumulator."""
        return f"<{self.layout.lanes} x {self.multiply.accumulator_type}>"

    @property
    def num_chains(self) -> int:
        """The number of accumulators, those of a biased A's excess included."""
        return (self.rows + self.multiply.bias_a) * len(self.vectors)

    @property
    def unroll(self) -> int:
        """How many steps one turn of the loop takes; divides `num_steps`."""
        if self.source is not None or self.is_edge:
            return 1  # loads and stores are what it waits for, and few rows are packed with
        if self.fetches:
            return TURN_STEPS
        if self.is_limited:
            return min(UNROLL, self.num_steps)
        return next(factor for factor in (UNROLL, 2, 1) if self.num_steps % factor == 0)


def emit_block(module: ModuleBuilder, spec: BlockSpec) -> str:
    """Define `fastcc void @name(ptr %a, ptr %b, ptr %c, i64 %lda)` and return `@name`.

    `%a` and `%c` point to the block's first row, `%b` to its first panel; `%lda` is read
    where the spec has none. `fetch_parameters` follow,
    with `source` `ptr %source, i64 %source_stride` (elements) of the block's columns, `i64
    %rows_ahead` if it `fetches_ahead`, and
    where it is limited `i64 %rows, i64 %columns, i64 %depth`, from 1 on: rows from the last on
    are the last one again, columns of the source from `%columns` on are zero. Where it has a
    target `ptr %target, i64 %target_stride` (elements), `i1 %is_first`, `ptr %later_target` follow.
    """
    digest = sha256(repr(replace(spec, features=frozenset())).encode()).hexdigest()[:12]
    name = f"tw.dot.block{spec.rows}x{len(spec.vectors)}.{digest}"
    if module.has_function(name):
        return f"@{name}"
    c = "ptr %c" if spec.has_target else "ptr noalias %c"
    arguments = f"ptr noalias %a, ptr noalias %b, {c}, i64 %lda"
    arguments += fetch_parameters(spec.fetches)
    arguments += ", ptr %source, i64 %source_stride" * bool(spec.source)
    arguments += ", i64 %rows_ahead" * spec.fetches_ahead
    arguments += ", i64 %rows, i64 %columns, i64 %depth" * spec.is_limited
    arguments += (TARGET_ARGUMENTS + ", ptr %later_target") * spec.has_target
    header = f"define internal fastcc void @{name}({arguments}) noinline nounwind"
    fn = FunctionBuilder(module, header)
    if spec.has_target:
        _fetch_target(fn, spec)
    chains = _accumulate(fn, spec)
    if spec.has_target:
        _send_block(fn, spec, chains)
    else:
        _store_block(fn, spec, chains)
    fn.emit("ret void")
    return module.add_function(name, fn.text())


def _accumulate(fn: FunctionBuilder, spec: BlockSpec) -> Sequence[str]:
    """The k loop. Accumulators must be separate phis: as one wide phi or in memory the same
    loop runs at a tenth of the speed."""
    group = spec.multiply.k_group
    a_type = STORAGE_TYPE[spec.multiply.a_element]
    b_type = STORAGE_TYPE[spec.multiply.b_element]

    rows = _row_addresses(fn, spec)
    masks = [None] * len(spec.vectors) if spec.source is None else _column_masks(fn, spec)

    def steps(
        index: str, chains: Sequence[str], count: int = spec.unroll, is_tail: bool = False
    ) -> Sequence[str]:
        first = scaled(fn, index, count * group)
        a = [element_address(fn, a_type, row, first) for row in rows]
        b = element_address(fn, b_type, "%b", scaled(fn, first, spec.layout.columns))
        fetches = () if is_tail else spec.fetches
        source = _source_rows(fn, spec, index, count)
        for step in range(count):
            emit_fetches(fn, fetches, index, step, count)
            b_vectors = [
                _load_b(fn, spec, b, step, vector, (source, mask))
                for vector, mask in zip(spec.vectors, masks, strict=True)
            ]
            chains = _emit_step(fn, spec, a, b_vectors, step, chains)
        return chains

    zeros = ["zeroinitializer"] * spec.num_chains
    if not spec.is_limited:
        return carried_loop(fn, spec.num_steps // spec.unroll, spec.acc_type, zeros, steps)
    if spec.unroll == 1:
        return carried_while(fn, ("0", "%depth"), spec.acc_type, zeros, steps)
    turns = fn.value(f"udiv i64 %depth, {spec.unroll}")
    chains = carried_while(fn, ("0", turns), spec.acc_type, zeros, steps)
    first = scaled(fn, turns, spec.unroll)
    return carried_while(
        fn, (first, "%depth"), spec.acc_type, chains, lambda i, c: steps(i, c, 1, True)
    )


def _column_masks(fn: FunctionBuilder, spec: BlockSpec) -> list[str | None]:
    """Which lanes of each vector are before the limit of the columns."""
    if not spec.is_limited:
        return [None] * len(spec.vectors)
    return [
        prefix_mask(fn, spec.layout.lanes, "%columns", vector.column) for vector in spec.vectors
    ]


def _row_addresses(fn: FunctionBuilder, spec: BlockSpec) -> list[str]:
    """Where each row of A starts; one address, from which rows are constants, if it can be."""
    if spec.lda is not None:
        return ["%a"]
    return _strided_rows(fn, spec, STORAGE_TYPE[spec.multiply.a_element], "%a", "%lda")


def _strided_rows(
    fn: FunctionBuilder, spec: BlockSpec, type_: str, first: str, stride: str
) -> list[str]:
    """Where each row of a block is; from a limit on, the last row again."""
    rows = [first]
    while len(rows) < spec.rows:
        step = stride
        if spec.is_limited:
            exists = fn.value(f"icmp slt i64 {len(rows)}, %rows")
            step = fn.value(f"select i1 {exists}, i64 {stride}, i64 0")
        rows.append(element_address(fn, type_, rows[-1], step))
    return rows


def _emit_step(
    fn: FunctionBuilder,
    spec: BlockSpec,
    a: Sequence[str],
    b_vectors: Sequence[str],
    step: int,
    chains: Sequence[str],
) -> list[str]:
    """One k-group: a splat of A per row, its products with all vectors of B."""
    group = spec.multiply.k_group
    count = len(b_vectors)
    following: list[str] = []
    for row in range(spec.rows):
        if spec.lda is None:
            a_splat = _load_a(fn, spec, a[row], step * group)
        else:
            a_splat = _load_a(fn, spec, a[0], row * spec.lda + step * group)
        for position, b_vector in enumerate(b_vectors):
            chain = chains[row * count + position]
            following.append(
                emit_multiply_add(fn, spec.multiply, spec.layout.lanes, chain, a_splat, b_vector)
            )
    for position, chain in enumerate(chains[spec.rows * count :]):
        following.append(
            add_column_sums(fn, spec.multiply, spec.layout.lanes, chain, b_vectors[position])
        )
    return following


def _source_rows(fn: FunctionBuilder, spec: BlockSpec, turn: str, count: int) -> list[str]:
    """Where each of the `count` steps of a turn finds its row of an unpacked B."""
    if spec.source is None:
        return []
    type_ = STORAGE_TYPE[spec.source]
    first = scaled(fn, scaled(fn, turn, count), "%source_stride")
    rows = [element_address(fn, type_, "%source", first)]
    while len(rows) < count:
        rows.append(element_address(fn, type_, rows[-1], "%source_stride"))
    return rows


def _load_b(
    fn: FunctionBuilder,
    spec: BlockSpec,
    b: str,
    step: int,
    vector: BlockVector,
    source: tuple[Sequence[str], str | None],
) -> str:
    """A vector of B; one that comes from the source (rows, mask) is packed on its way."""
    rows, mask = source
    multiply, layout = spec.multiply, spec.layout
    element = STORAGE_TYPE[multiply.b_element]
    offset = vector.offset + step * layout.columns * multiply.k_group
    address = element_address(fn, element, b, offset)
    if spec.source is None:
        type_ = f"<{layout.lanes} x {multiply.lane_type}>"
        align = ELEMENT_BYTES[multiply.b_element]
        return fn.value(f"load {type_}, ptr {address}, align {align}")
    from_type = STORAGE_TYPE[spec.source]
    at = element_address(fn, from_type, rows[step], vector.column)
    if mask is None:
        loaded = load_prefix(fn, layout.lanes, from_type, at, vector.valid)
    else:
        loaded = load_masked(fn, layout.lanes, from_type, at, mask)
    value = emit_widen(fn, spec.source, multiply.b_element, layout.lanes, loaded, spec.features)
    if spec.keeps:
        store_prefix(fn, layout.lanes, element, value, address, layout.lanes)
    if spec.fetches_ahead:
        _fetch_ahead(fn, spec, rows[step], vector)
    return value


def _fetch_ahead(fn: FunctionBuilder, spec: BlockSpec, row: str, vector: BlockVector) -> None:
    """Ask for the line that a vector of a later row of B begins in."""
    assert spec.source is not None
    type_ = STORAGE_TYPE[spec.source]
    if vector.column * STORAGE_BYTES[type_] % LINE_BYTES:
        return
    later = element_address(fn, type_, row, scaled(fn, "%source_stride", "%rows_ahead"))
    at = element_address(fn, type_, later, vector.column)
    callee = fn.module.declare("llvm.prefetch.p0", "void", "ptr, i32, i32, i32")
    fn.emit(f"call void {callee}(ptr {at}, i32 0, i32 2, i32 1)")


def _load_a(fn: FunctionBuilder, spec: BlockSpec, a: str, offset: int) -> str:
    multiply = spec.multiply
    address = element_address(fn, STORAGE_TYPE[multiply.a_element], a, offset)
    align = ELEMENT_BYTES[multiply.a_element]
    scalar = fn.value(f"load {multiply.lane_type}, ptr {address}, align {align}")
    return splat(fn, spec.layout.lanes, multiply.lane_type, scalar)


def _store_block(fn: FunctionBuilder, spec: BlockSpec, chains: Sequence[str]) -> None:
    count = len(spec.vectors)
    excess = chains[spec.rows * count :]
    for row in range(spec.rows):
        for position, vector in enumerate(spec.vectors):
            value = chains[row * count + position]
            if excess:
                value = take_off_bias(fn, spec.multiply, spec.layout.lanes, value, excess[position])
            _store_vector(fn, spec, row * spec.ldc + vector.column, vector.valid, value)


def _store_vector(
    fn: FunctionBuilder, spec: BlockSpec, offset: int, valid: int, value: str
) -> None:
    scalar, lanes = spec.multiply.accumulator_type, spec.layout.lanes
    address = element_address(fn, scalar, "%c", offset)
    if not spec.zero_init:
        old = load_prefix(fn, lanes, scalar, address, valid)
        add = "add" if scalar == "i32" else "fadd"
        value = fn.value(f"{add} {spec.acc_type} {old}, {value}")
    store_prefix(fn, lanes, scalar, value, address, valid)


def _fetch_target(fn: FunctionBuilder, spec: BlockSpec) -> None:
    """Ask for the lines that later sums go to, which come while blocks multiply: a block's own
    would come too late for a product that is not deep, as they do for the first rows.

    Not for those that are added to: they are near, and a burst of fetches costs 3 % of a block
    that is 256 deep (Emerald Rapids, 2026-11-22).
    """
    away, here = fn.new_label(), fn.new_label()
    fn.branch_if(fn.value("icmp ne ptr %target, %c"), away, here)
    fn.place(away)
    for first in ("%target", "%later_target") if spec.source else ("%later_target",):
        _fetch_rows(fn, spec, first)
    fn.branch(here)
    fn.place(here)


def _fetch_rows(fn: FunctionBuilder, spec: BlockSpec, first: str) -> None:
    """Ask for the lines in which a block's vectors end, in rows of the target from `first` on.

    Where rows do not begin with a line, that in which they begin ends what another block writes.
    An edge block is followed by whole ones.
    """
    callee = fn.module.declare("llvm.prefetch.p0", "void", "ptr, i32, i32, i32")
    scalar, lanes = spec.multiply.accumulator_type, spec.layout.lanes
    columns = max(spec.layout.columns, spec.vectors[-1].column + lanes)

    for row in _strided_rows(fn, spec, scalar, first, "%target_stride"):
        for end in range(lanes, columns + 1, lanes):
            at = element_address(fn, scalar, row, end - 1)
            fn.emit(f"call void {callee}(ptr {at}, i32 1, i32 2, i32 1)")


def _send_block(fn: FunctionBuilder, spec: BlockSpec, chains: Sequence[str]) -> None:
    """Store the sums at the target, added to `%c` where this is not the first product.

    A branch, since a load waits for its line even where its mask hides every lane: a first
    product that is 17 deep takes 1.09 to 1.16 times as long with such loads (Zen 5, 2026-11-23).
    That no zero is added changes no sum, for one that began at +0 is never -0.

    Rows beyond the limit are the last one again, in both places: the same sums, to be stored
    twice. So all rows are read before the first is written, for the target may be what is added
    to.
    """
    assert spec.is_limited and not spec.multiply.bias_a, spec
    scalar, lanes, count = spec.multiply.accumulator_type, spec.layout.lanes, len(spec.vectors)
    masks = _column_masks(fn, spec)
    before, later, done = fn.block, fn.new_label(), fn.new_label()
    fn.branch_if("%is_first", done, later)
    fn.place(later)
    sums = _added(fn, spec, chains, masks)
    fn.branch(done)
    fn.place(done)
    totals = [
        fn.value(f"phi {spec.acc_type} [ {chain}, %{before} ], [ {total}, %{later} ]")
        for chain, total in zip(chains, sums, strict=True)
    ]
    for row, at in enumerate(_strided_rows(fn, spec, scalar, "%target", "%target_stride")):
        of_row = totals[row * count : (row + 1) * count]
        for vector, mask, total in zip(spec.vectors, masks, of_row, strict=True):
            assert mask is not None
            place = element_address(fn, scalar, at, vector.column)
            store_masked(fn, lanes, scalar, total, place, mask)


def _added(
    fn: FunctionBuilder, spec: BlockSpec, chains: Sequence[str], masks: Sequence[str | None]
) -> list[str]:
    """The sums of a block with what is at `%c`."""
    scalar, lanes, count = spec.multiply.accumulator_type, spec.layout.lanes, len(spec.vectors)
    sums: list[str] = []
    for row, at in enumerate(_strided_rows(fn, spec, scalar, "%c", str(spec.ldc))):
        of_row = chains[row * count : (row + 1) * count]
        for vector, mask, chain in zip(spec.vectors, masks, of_row, strict=True):
            assert mask is not None
            place = element_address(fn, scalar, at, vector.column)
            old = load_masked(fn, lanes, scalar, place, mask)
            sums.append(fn.value(f"fadd {spec.acc_type} {old}, {chain}"))
    return sums
