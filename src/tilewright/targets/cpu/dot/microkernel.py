"""The register-blocked `dot` of the CPU: a function per shape, a microkernel per block.

`acc[M, N] (+)= a[M, K] · b[K, N]` on operands in the arena (`panels.py`). The tile of the
result is cut into blocks that fit in the register file; a block's accumulators are phis of
its k loop, start from zero and meet the old `acc` once, after the loop:

    for column block (its panels of B stay in the first-level cache)
      for row block
        registers[rows][vectors] = 0
        for k group: registers[r][v] += splat(a[r][k]) * b[k][v]
        acc[block] += registers

With a large A that is read where the user has it, the two outer loops change places: the rows of
a block are then fetched once from far away and all panels of B stream from the second-level cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from tilewright.codegen.llvm_builder import FunctionBuilder, ModuleBuilder
from tilewright.machine.cpus import LINE_BYTES
from tilewright.support.dataclass import dataclass, replace
from tilewright.targets.cpu.dot.amx_blocks import AmxBlocks, amx_blocks
from tilewright.targets.cpu.dot.amx_product import emit_amx_product
from tilewright.targets.cpu.dot.amx_results import AmxTarget
from tilewright.targets.cpu.dot.amx_transposed import (
    AmxTransposed,
    covers_transposed,
    emit_amx_transposed,
)
from tilewright.targets.cpu.dot.block import (
    STEPS_AHEAD,
    TARGET_ARGUMENTS,
    BlockSpec,
    BlockVector,
    emit_block,
)
from tilewright.targets.cpu.dot.edge_packing import emit_edge_pack
from tilewright.targets.cpu.dot.line_fetches import TURN_STEPS, LineFetch
from tilewright.targets.cpu.dot.packing import PackSpec
from tilewright.targets.cpu.dot.panels import (
    ELEMENT_BYTES,
    Instruction,
    Multiply,
    PanelLayout,
    RowLayout,
    VectorUnit,
    amx_multiply,
    choose_multiply,
    panel_layout,
    row_layout,
)
from tilewright.targets.cpu.dot.transposed_b import (
    TransposedProduct,
    emit_transposed_product,
    reads_transposed,
)
from tilewright.targets.cpu.dot.vectors import (
    counted_loop,
    counted_while,
    element_address,
    scaled,
)
from tilewright.targets.cpu.dot.widen import STORAGE_TYPE

MIN_CHAINS = 8
"""Accumulators that keep two FMA units of latency 4 busy; a block has more where it can.

Source: the optimization guides of Intel (Skylake and later) and AMD (Zen 3 and later)."""


FEW_ROWS = 16
"""Rows of a product up to which reading B is all that it waits for.
Measured on Zen 5, 2026-11-23, one thread, f32: see STEPS_AHEAD."""


NEAR_PANELS = 2
"""Panels of B up to which the next block's rows of A are fetched into the first-level cache: more
of them would push the rows out again before they are used.
Measured on Emerald Rapids, 2026-11-22, one thread, f32, near: 4096x64x512 1.25 times the speed;
with four panels 0.95 to 0.97, with eight 0.91. On Zen 5, 2026-11-23, with four panels far: 1.02 to
1.04 at 512³ to 2048³."""


NEAR_A_BYTES = 16 << 10
"""Bytes of A up to which it stays in the first-level cache beside a panel of B: then all its rows
meet one panel before the next, and none is fetched.
Measured on Zen 5, 2026-11-23, one thread, f32: 32x4096x4096 with tiles of 32x128x128 1.2 to 1.27
times the speed, of 32x256x128 1.36 to 1.46; with 64 KiB 1024³ with tiles of 128x128x128 up to 1.05.
Measured on Emerald Rapids, 2026-11-23: with 64 KiB 1024³ with tiles of 128x256x128 0.93,
1024x1024x17 0.75; with 16 KiB 32x4096x4096 1.27."""


EDGE_VECTORS = 2
"""Vectors of a block at the right edge of a result, where they hold all columns that are left.

Source: the FMA units of Intel (Skylake and later): six rows by two vectors take 6 cycles a step, by
four 12; by one 4, which is latency."""


BLOCKS_AHEAD = 2
"""How many blocks before its sums come a block's place in the user's memory is fetched.
Measured on Emerald Rapids, 2026-11-23, one thread, 6x4 vectors stored 17 steps after each other in
tiles of 126x128: 2016x4096 f32 in 2.5 ms, one block ahead 5.4, none 7.1; 1008x1024 279 µs, 383 and
473."""


@dataclass(frozen=True)
class SourceTile:
    """The B of the next `dot` as it lies in memory: what this one fetches meanwhile.

    *Units* `element_bytes` scales the runtime stride of its `rows`.
    """

    rows: int
    element_bytes: int


@dataclass(frozen=True)
class DotSpec:
    """One `dot`: shapes, dtypes, strides and machine; equal specs share one function.

    *Shapes* any `m, n, k ≥ 1`. *Units* `lda`, `ldc` in elements of the kept A and of the
    accumulator; `None` takes `a_layout.stride_elems(k)` and `n`.
    `zero_init` overwrites `acc` instead of adding to it. `contract` and `bf16_dot` as in
    `choose_multiply`. Input precisions tf32, bf16x3 and bf16x6 of f32 operands are computed
    as ieee f32, which is at least as exact.
    `a_in_place` takes A from memory that nobody packed, with its stride at run time. It saves
    the copy (5 % of a 256x256x128 step); see `can_read_a_in_place`.
    `next_b` is fetched into the second-level cache meanwhile: worth 5 % where rows of B are
    too short for the hardware to see them coming; for A, whose rows go on, it is a loss.
    `packs_b` takes B as rows in memory: the first block of rows packs what it multiplies for
    the others, where stores cost nothing beside the multiply-adds; see `can_pack_b`.
    `is_amx` multiplies tile registers; `units.py` says where it may.
    `is_limited` takes, at run time, how many rows and columns are seen and how many k are summed;
    both operands are then where the user has them.
    `transposed_b` reads B where the user has it, as `[N, K]`: see `transposed_b.py`.
    `has_target` writes the sum elsewhere than it adds to, or adds nothing, as it is told at run
    time: a loop's last step writes where the user wants the result, its first finds no zeros.
    On AMX that is rows of `target_dtype`, and it is told, too, whether they are to be written.
    *Source* all measured on Emerald Rapids, f32 1024³.
    """

    m: int
    n: int
    k: int
    a_dtype: str
    b_dtype: str
    features: frozenset[str]
    vector_bytes: int
    lda: int | None = None
    ldc: int | None = None
    zero_init: bool = False
    contract: bool = True
    bf16_dot: bool | None = None
    a_in_place: bool = False
    next_b: SourceTile | None = None
    packs_b: bool = False
    is_amx: bool = False
    is_limited: bool = False
    has_target: bool = False
    target_dtype: str | None = None
    transposed_b: bool = False

    @property
    def unit(self) -> VectorUnit:
        """The vector registers of the machine."""
        return VectorUnit(self.features, self.vector_bytes)

    @property
    def multiply(self) -> Multiply:
        """The instruction and the element types that it keeps."""
        if self.is_amx:
            multiply = amx_multiply(self.a_dtype, self.b_dtype)
            assert multiply is not None, self
            return multiply
        return choose_multiply(
            self.a_dtype,
            self.b_dtype,
            self.unit,
            contract=self.contract,
            bf16_dot=self.bf16_dot,
        )

    @property
    def acc_dtype(self) -> str:
        """The dtype of the accumulator: f32, f64 or i32."""
        return self.multiply.accumulator

    @property
    def can_read_a_in_place(self) -> bool:
        """Whether A as it lies in memory is what the kernel reads: no conversion, no padding."""
        multiply = self.multiply
        same = multiply.a_element == self.a_dtype and not multiply.bias_a
        return same and self.k % multiply.k_group == 0

    @property
    def can_pack_b(self) -> bool:
        """Whether a row of B in memory, converted, is a row of its panels."""
        return self.multiply.instruction in (Instruction.FMA, Instruction.MULTIPLY_ADD)

    @property
    def can_read_transposed_b(self) -> bool:
        """Whether B as `[N, K]` in memory is what the kernel reads: where rows are few."""
        if self.is_amx:
            return covers_transposed((self.m, self.n, self.k), self.multiply)
        lanes = self.b_layout.lanes
        return self.m <= FEW_ROWS and reads_transposed(self.multiply, self.b_dtype, lanes, self.n)

    @property
    def amx_transposed(self) -> AmxTransposed | None:
        """How AMX multiplies with a transposed B; None where it does not."""
        if not (self.is_amx and self.transposed_b):
            return None
        return AmxTransposed(
            *(self.m, self.n, self.k, self.multiply, self.a_stride),
            ldc=self.n if self.ldc is None else self.ldc,
            zero_init=self.zero_init,
            fetches=self.next_b is not None,
        )

    @property
    def a_layout(self) -> RowLayout:
        """The rows in which `%a` is expected."""
        return row_layout(self.multiply)

    @property
    def b_layout(self) -> PanelLayout:
        """The panels in which `%b_panels` is expected."""
        return panel_layout(self.multiply, self.unit, self.n)

    @property
    def a_stride(self) -> int:
        """Elements between the rows of an A that is not read in place."""
        return self.a_layout.stride_elems(self.k) if self.lda is None else self.lda

    @property
    def amx_blocks(self) -> AmxBlocks | None:
        """How AMX cuts the product; None where it is another unit's."""
        return amx_blocks((self.m, self.n, self.k), self.multiply) if self.is_amx else None

    @property
    def a_bytes(self) -> int:
        """The bytes of A."""
        return self.m * self.k * ELEMENT_BYTES[self.a_layout.element]

    @property
    def has_columns_outside(self) -> bool:
        """Whether all rows of A meet one panel of B before the next: see `NEAR_A_BYTES`."""
        return not self.a_in_place or self.a_bytes <= NEAR_A_BYTES

    @property
    def fetches_ahead(self) -> bool:
        """Whether the rows that pack B may be all there are, so that B is all they wait for."""
        return self.packs_b and (self.is_limited or self.m <= FEW_ROWS)

    @property
    def room_bytes(self) -> int:
        """Bytes of `%room`, where the product keeps copies of A's rows; 0 for none."""
        if self.amx_transposed is not None:
            return self.amx_transposed.room_bytes
        return 0 if self.amx_blocks is None else self.amx_blocks.room_bytes

    def pack_spec(self, role: Literal["a", "b"], transposed: bool = False) -> PackSpec:
        """The copy that brings an operand from memory into the layout that this `dot` reads."""
        lanes = self.vector_bytes // self.multiply.lane_bytes
        return PackSpec(
            layout=self.a_layout if role == "a" else self.b_layout,
            multiply=self.multiply,
            source=self.a_dtype if role == "a" else self.b_dtype,
            extent=self.m if role == "a" else self.n,
            k=self.k,
            lanes=lanes if role == "a" else self.b_layout.lanes,
            transposed=transposed,
            features=self.features,
            stride=self.lda if role == "a" else None,
        )


@dataclass(frozen=True)
class Run:
    """Equal blocks one after the other: `count` blocks of `size` rows or panels each."""

    first: int
    count: int
    size: int

    def emit(self, fn: FunctionBuilder, body: Callable[[str], None], limit: str = "") -> None:
        """Emit `body(start)` for every block, `start` being its first row or panel.

        With `limit`, an i64 value, only for those that start before it.
        """

        def at(index: str) -> None:
            body(scaled(fn, index, self.size, self.first))

        if not limit:
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
class _Block:
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


def max_rows(unit: VectorUnit, multiply: Multiply, num_vectors: int) -> int:
    """The rows of a block of `num_vectors` vectors that leave no register spilled.

    Live are the accumulators, one step's vectors of B and one splat of A; a separate product
    takes one more, and the excess of a biased A an accumulator per vector and a constant.
    """
    extra = 1
    if multiply.instruction is Instruction.FMA:
        extra = 0
    if multiply.bias_a:
        extra = num_vectors + 1
    return max(1, (unit.num_registers - 1 - num_vectors - extra) // num_vectors)


def panels_per_block(spec: DotSpec) -> int:
    """How many panels a block spans, so that few rows still give enough chains."""
    per_panel = spec.b_layout.columns // spec.b_layout.lanes
    whole = max(1, spec.n // spec.b_layout.columns)
    return min(whole, max(1, -(-MIN_CHAINS // (per_panel * min(spec.m, MIN_CHAINS)))))


def dot_name(spec: DotSpec) -> str:
    """The name of the function of a spec; injective on specs of one machine."""
    lda = "r" if spec.a_in_place else spec.a_stride
    shape = f"{spec.m}x{spec.n}x{spec.k}.{lda}.{_ldc(spec)}"
    name = f"tw.dot.{spec.a_dtype}.{spec.b_dtype}.{spec.multiply.instruction.value}.{shape}"
    if spec.next_b is not None:
        name += f".next{spec.next_b.rows}.{spec.next_b.element_bytes}"
    name += ".rows" * spec.packs_b + ".zero" * spec.zero_init + ".part" * spec.is_limited
    name += ".to" * spec.has_target + (spec.target_dtype or "")
    return name + ".across" * spec.transposed_b


def emit_dot(module: ModuleBuilder, spec: DotSpec) -> str:
    """Define the function of a spec and return `@name`.

    `void @name(ptr %a, ptr %b_panels, ptr %acc)`, then `i64 %a_stride` (elements) if
    `a_in_place`, then `ptr %room` if it has `room_bytes`, then `ptr %next_b, i64
    %next_b_stride` (elements) if `next_b`, then `ptr %b_source, i64 %b_source_stride`
    (elements) if `packs_b`, `%b_panels` being its room, or `transposed_b`, then `i64 %rows,
    i64 %columns, i64 %depth` (at least 1) if `is_limited`, then `ptr %target,
    i64 %target_stride` (elements), `i1 %is_first` if `has_target`, then `i1 %is_last`
    if it `is_amx`, too.
    *Constraints* the three buffers do not overlap, nor the target the operands; they are aligned
    to their elements (to 64 bytes for speed). A is padded with zeros to whole k-groups and B as
    `PanelLayout` says.
    """
    assert spec.can_read_a_in_place or not spec.a_in_place, spec
    assert spec.can_pack_b or not spec.packs_b, spec
    has_sources = (spec.a_in_place and spec.packs_b) or spec.transposed_b
    assert has_sources or not spec.is_limited, spec
    assert spec.can_read_transposed_b or not spec.transposed_b, spec
    assert spec.is_limited or spec.is_amx or not spec.has_target, spec
    name = dot_name(spec)
    if module.has_function(name):
        return f"@{name}"
    arguments = "ptr noalias %a, ptr noalias %b, ptr" + " noalias" * (not spec.has_target) + " %c"
    arguments += ", i64 %a_stride" * spec.a_in_place
    arguments += ", ptr noalias %room" * bool(spec.room_bytes)
    arguments += ", ptr %next_b, i64 %next_b_stride" * (spec.next_b is not None)
    arguments += ", ptr %b_source, i64 %b_source_stride" * (spec.packs_b or spec.transposed_b)
    arguments += ", i64 %rows, i64 %columns, i64 %depth" * spec.is_limited
    arguments += TARGET_ARGUMENTS * spec.has_target
    arguments += ", i1 %is_last" * (spec.has_target and spec.is_amx)
    header = f"define internal void @{name}({arguments}) noinline nounwind"
    fn = FunctionBuilder(module, header)
    if spec.amx_transposed is not None:
        emit_amx_transposed(fn, spec.amx_transposed)
    elif spec.amx_blocks is not None:
        strides = ("%a_stride" if spec.a_in_place else str(spec.a_stride), _ldc(spec))
        emit_amx_product(fn, spec.amx_blocks, strides, spec.zero_init, _amx_target(spec))
    elif spec.transposed_b:
        sizes = (str(spec.m), str(spec.n), str(spec.k))
        limits = ("%rows", "%columns", "%depth") if spec.is_limited else sizes
        emit_transposed_product(fn, _transposed_product(spec), limits)
    else:
        emit = _emit_in_place if spec.a_in_place else _emit_columns_outside
        emit(fn, spec, _column_runs(spec))
    fn.emit("ret void")
    return module.add_function(name, fn.text())


def _amx_target(spec: DotSpec) -> AmxTarget | None:
    if not spec.has_target:
        return None
    return AmxTarget(spec.target_dtype or spec.acc_dtype, spec.features)


def _transposed_product(spec: DotSpec) -> TransposedProduct:
    return TransposedProduct(
        *(spec.m, spec.n, spec.k, spec.multiply, spec.unit, spec.b_layout.lanes, spec.b_dtype),
        lda=None if spec.a_in_place else spec.a_stride,
        ldc=_ldc(spec),
        zero_init=spec.zero_init,
        fetches=spec.next_b is not None,
    )


def _column_runs(spec: DotSpec) -> list[ColumnRun]:
    whole, rest = divmod(spec.n, spec.b_layout.columns)
    runs = [
        ColumnRun(run, _whole_vectors(spec, run.size))
        for run in split_panels(whole, panels_per_block(spec))
    ]
    if rest:
        runs.append(ColumnRun(Run(whole, 1, 1), _partial_vectors(spec.b_layout, rest)))
    return runs


def _row_runs(spec: DotSpec, most: int) -> list[Run]:
    runs = split_rows(spec.m, most)
    return with_first_apart(runs) if spec.packs_b else runs


def _emit_columns_outside(fn: FunctionBuilder, spec: DotSpec, columns: list[ColumnRun]) -> None:
    def row_blocks(panel: str, column: ColumnRun) -> None:
        most = max_rows(spec.unit, spec.multiply, len(column.vectors))
        for rows in _row_runs(spec, most):
            rows.emit(fn, lambda row, rows=rows: block_call(row, rows, panel, column))

    def block_call(row: str, rows: Run, panel: str, column: ColumnRun) -> None:
        _emit_block_call(fn, spec, _Block(row, rows.size, panel, column, rows.first == 0))

    for column in columns:
        column.run.emit(fn, lambda panel, column=column: row_blocks(panel, column))


def _emit_in_place(fn: FunctionBuilder, spec: DotSpec, columns: list[ColumnRun]) -> None:
    """The blocks of an A that lies where the user has it: a small one is near from the first
    panel on, of a large one each block of rows comes from far away once."""
    most = min(max_rows(spec.unit, spec.multiply, len(each.vectors)) for each in columns)
    row_limit, panel_limit = _block_limits(fn, spec)
    runs = _row_runs(spec, most)
    tallest = max(rows.size for rows in runs)

    def block_call(row: str, rows: Run, panel: str, column: ColumnRun) -> None:
        block = _Block(row, rows.size, panel, column, rows.first == 0)
        _emit_edge_call(fn, spec, block, tallest)

    def column_blocks(row: str, rows: Run) -> None:
        for column in columns:
            column.run.emit(
                fn, lambda panel, column=column: block_call(row, rows, panel, column), panel_limit
            )

    def row_blocks(panel: str, column: ColumnRun) -> None:
        for rows in runs:
            rows.emit(fn, lambda row, rows=rows: block_call(row, rows, panel, column), row_limit)

    if spec.has_columns_outside:
        for column in columns:
            column.run.emit(fn, lambda panel, column=column: row_blocks(panel, column), panel_limit)
        return
    for rows in runs:
        rows.emit(fn, lambda row, rows=rows: column_blocks(row, rows), row_limit)


def _emit_edge_call(fn: FunctionBuilder, spec: DotSpec, block: _Block, tallest: int) -> None:
    """A block, or one of few vectors where no more columns of it are left.

    That one has `tallest` rows if those that are too many are written where the last one is.
    """
    vectors = block.column.vectors
    if not spec.is_limited or len(vectors) <= EDGE_VECTORS:
        _emit_block_call(fn, spec, block)
        return
    narrow, whole, done = fn.new_label(), fn.new_label(), fn.new_label()
    left = fn.value(f"sub nsw i64 %columns, {scaled(fn, block.panel, spec.b_layout.columns)}")
    fits = fn.value(f"icmp sle i64 {left}, {EDGE_VECTORS * spec.b_layout.lanes}")
    fn.branch_if(fits, narrow, whole)
    fn.place(narrow)
    column = ColumnRun(block.column.run, vectors[:EDGE_VECTORS])
    rows = tallest if spec.has_target else block.rows
    edge = replace(block, column=column, rows=rows, most_rows=block.rows)
    if spec.packs_b and block.is_first and block.rows < spec.m:
        _emit_edge_pack(fn, spec, block.panel, left)
        edge = replace(edge, is_first=False)
    _emit_block_call(fn, replace(spec, next_b=None), edge)
    fn.branch(done)
    fn.place(whole)
    _emit_block_call(fn, spec, block)
    fn.branch(done)
    fn.place(done)


def _emit_edge_pack(fn: FunctionBuilder, spec: DotSpec, panel: str, columns: str) -> None:
    """Pack the last `columns` columns of B, of a panel."""
    callee = emit_edge_pack(fn.module, spec.b_layout, EDGE_VECTORS)
    source, stride = _source_of(fn, spec, panel), "i64 %b_source_stride"
    b = _panel_of(fn, spec, panel)
    more = f"{stride}, i64 {columns}, i64 %depth"
    fn.emit(f"call fastcc void {callee}(ptr {b}, ptr {source}, {more})")


def _panel_of(fn: FunctionBuilder, spec: DotSpec, panel: str) -> str:
    """Where a panel of packed B is."""
    layout = spec.b_layout
    panel_bytes = layout.panel_elems(spec.k) * ELEMENT_BYTES[layout.element]
    return element_address(fn, "i8", "%b", scaled(fn, panel, panel_bytes))


def _source_of(fn: FunctionBuilder, spec: DotSpec, panel: str) -> str:
    """Where the columns of a panel are in an unpacked B."""
    column = scaled(fn, panel, spec.b_layout.columns)
    return element_address(fn, STORAGE_TYPE[spec.b_dtype], "%b_source", column)


def _block_limits(fn: FunctionBuilder, spec: DotSpec) -> tuple[str, str]:
    """Before which row, and which panel, a block has to start to be seen."""
    if not spec.is_limited:
        return "", ""
    columns = spec.b_layout.columns
    room = fn.value(f"add nsw i64 %columns, {columns - 1}")
    return "%rows", fn.value(f"sdiv i64 {room}, {columns}")


def _ldc(spec: DotSpec) -> int:
    return spec.n if spec.ldc is None else spec.ldc


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


def _emit_block_call(fn: FunctionBuilder, spec: DotSpec, block: _Block) -> None:
    layout = spec.b_layout
    a_bytes = ELEMENT_BYTES[spec.a_layout.element]
    c_bytes = ELEMENT_BYTES[spec.acc_dtype]
    packs = spec.packs_b and block.is_first
    fetches = _fetches(fn, spec, block)
    callee = emit_block(
        fn.module,
        BlockSpec(
            multiply=spec.multiply,
            layout=layout,
            k=spec.k,
            rows=block.rows,
            vectors=block.column.vectors,
            lda=None if spec.a_in_place else spec.a_stride,
            ldc=_ldc(spec),
            zero_init=spec.zero_init,
            fetches=tuple(fetch for fetch, _ in fetches),
            source=spec.b_dtype if packs else None,
            keeps=packs and block.rows < spec.m,
            fetches_ahead=packs and spec.fetches_ahead,
            features=spec.features,
            is_limited=spec.is_limited,
            has_target=spec.has_target,
            is_edge=block.most_rows is not None,
        ),
    )
    more = "".join(arguments for _, arguments in fetches)
    more += _source_arguments(fn, spec, block) if packs else ""
    more += _limit_arguments(fn, spec, block) if spec.is_limited else ""
    more += _target_arguments(fn, spec, block) if spec.has_target else ""
    b = _panel_of(fn, spec, block.panel)
    c_column = scaled(fn, block.panel, layout.columns * c_bytes)
    c = element_address(fn, "i8", "%c", scaled(fn, block.row, _ldc(spec) * c_bytes, c_column))
    stride = "%a_stride" if spec.a_in_place else spec.a_stride
    a_row = scaled(fn, block.row, stride) if block.row != "0" else "0"
    a = element_address(fn, "i8", "%a", scaled(fn, a_row, a_bytes))
    lda = "%a_stride" if spec.a_in_place else "poison"
    fn.emit(f"call fastcc void {callee}(ptr {a}, ptr {b}, ptr {c}, i64 {lda}{more})")


def _fetches(fn: FunctionBuilder, spec: DotSpec, block: _Block) -> list[tuple[LineFetch, str]]:
    """What a block fetches and its arguments: of the next step's B, of the next block's A.

    Not the block that packs B, which has loads enough: with fetches too it runs at 0.85 of its
    speed.
    """
    is_whole = all(vector.valid == spec.b_layout.lanes for vector in block.column.vectors)
    packs = spec.packs_b and block.is_first
    if not is_whole or packs or block.most_rows is not None or _num_turns(spec) == 0:
        return []
    found: list[tuple[LineFetch, str]] = []
    if spec.next_b is not None:
        found.append(_next_b(fn, spec, block, spec.next_b))
    if not spec.has_columns_outside:
        found.append(_next_rows(fn, spec, block))
    return found


def _num_turns(spec: DotSpec) -> int:
    """The turns in which a block may fetch, 0 where its steps are no whole turns."""
    turns, rest = divmod(spec.b_layout.num_groups(spec.k), TURN_STEPS)
    return 0 if rest else turns


def _next_b(
    fn: FunctionBuilder, spec: DotSpec, block: _Block, tile: SourceTile
) -> tuple[LineFetch, str]:
    """The next step's rows of B above a block's columns: the last blocks of rows share them.

    Fetched early, they would leave the cache again while A and the result pass through it.
    """
    columns = block.column.run.size * spec.b_layout.columns
    lines = -(-columns * tile.element_bytes // LINE_BYTES)
    total = lines * tile.rows
    others = max(1, -(-spec.m // block.rows) - spec.packs_b)
    per_turn = -(-total // (others * _num_turns(spec)))
    share = per_turn * _num_turns(spec)
    number = scaled(fn, _blocks_before(fn, block.row, block.rows), 1, -int(spec.packs_b))
    skipped = str(others * share - total)
    if spec.is_limited:
        blocks = _blocks_before(fn, "%rows", block.rows)
        smax = fn.module.declare("llvm.smax.i64", "i64", "i64, i64")
        left = scaled(fn, blocks, share, -total - share * spec.packs_b)
        skipped = fn.value(f"call i64 {smax}(i64 {left}, i64 0)")
    first = fn.value(f"sub nsw i64 {scaled(fn, number, share)}, {skipped}")
    stride = scaled(fn, "%next_b_stride", tile.element_bytes)
    column = scaled(fn, block.panel, spec.b_layout.columns * tile.element_bytes)
    at = element_address(fn, "i8", "%next_b", column)
    return LineFetch(lines, total, per_turn), f", ptr {at}, i64 {stride}, i64 {first}"


def _blocks_before(fn: FunctionBuilder, row: str, size: int) -> str:
    """The number of whole blocks of `size` rows before a row."""
    return str(int(row) // size) if row.isdecimal() else fn.value(f"udiv i64 {row}, {size}")


def _next_rows(fn: FunctionBuilder, spec: DotSpec, block: _Block) -> tuple[LineFetch, str]:
    """The rows of A of the next block, shared among the panels; behind the last it is a guess."""
    size = ELEMENT_BYTES[spec.a_layout.element]
    lines = -(-spec.k * size // LINE_BYTES)
    panels = spec.b_layout.num_panels(spec.n)
    blocks = -(-panels // block.column.run.size)
    per_turn = -(-lines * block.rows // (blocks * _num_turns(spec)))
    fetch = LineFetch(lines, lines * block.rows, per_turn, panels <= NEAR_PANELS)
    number = _blocks_before(fn, block.panel, block.column.run.size)
    first = scaled(fn, number, per_turn * _num_turns(spec))
    stride = scaled(fn, "%a_stride", size)
    at = element_address(fn, "i8", "%a", scaled(fn, scaled(fn, block.row, 1, block.rows), stride))
    return fetch, f", ptr {at}, i64 {stride}, i64 {first}"


def _limit_arguments(fn: FunctionBuilder, spec: DotSpec, block: _Block) -> str:
    """How much of a block is seen: what is left of the rows and columns, and the depth."""
    column = scaled(fn, block.panel, spec.b_layout.columns)
    rows = fn.value(f"sub nsw i64 %rows, {block.row}")
    if block.most_rows is not None and block.most_rows < block.rows:
        is_less = fn.value(f"icmp slt i64 {rows}, {block.most_rows}")
        rows = fn.value(f"select i1 {is_less}, i64 {rows}, i64 {block.most_rows}")
    columns = fn.value(f"sub nsw i64 %columns, {column}")
    return f", i64 {rows}, i64 {columns}, i64 %depth"


def _source_arguments(fn: FunctionBuilder, spec: DotSpec, block: _Block) -> str:
    """Where a block finds its columns of an unpacked B."""
    source = _source_of(fn, spec, block.panel)
    arguments = f", ptr {source}, i64 %b_source_stride"
    return arguments + f", i64 {_rows_ahead(fn, spec)}" if spec.fetches_ahead else arguments


def _rows_ahead(fn: FunctionBuilder, spec: DotSpec) -> str:
    """How many rows of B ahead of themselves the first rows fetch it: none where more follow."""
    if spec.m <= FEW_ROWS:
        return str(STEPS_AHEAD)
    is_few = fn.value(f"icmp sle i64 %rows, {FEW_ROWS}")
    return fn.value(f"select i1 {is_few}, i64 {STEPS_AHEAD}, i64 0")


def _target_arguments(fn: FunctionBuilder, spec: DotSpec, block: _Block) -> str:
    """Where the sums of a block go, and those of the next one."""
    at = _target_of(fn, spec, block.row, block.panel)
    later = _later_target(fn, spec, block, at)
    return f", ptr {at}, i64 %target_stride, i1 %is_first, ptr {later}"


def _target_of(fn: FunctionBuilder, spec: DotSpec, row: str, panel: str) -> str:
    """Where the sums of the block go that starts at a row and a panel."""
    c_bytes = ELEMENT_BYTES[spec.acc_dtype]
    column = scaled(fn, panel, spec.b_layout.columns)
    first = "0" if row == "0" else scaled(fn, row, "%target_stride")
    return element_address(fn, "i8", "%target", scaled(fn, scaled(fn, first, 1, column), c_bytes))


def _later_target(fn: FunctionBuilder, spec: DotSpec, block: _Block, here: str) -> str:
    """Where the sums of the block after the next one go; this one's where that is not seen.

    What lies behind the last row is another program's.
    """
    is_below = spec.has_columns_outside or spec.n <= spec.b_layout.columns * block.column.run.size
    if is_below:
        row, panel = scaled(fn, block.row, 1, BLOCKS_AHEAD * block.rows), block.panel
    else:
        row, panel = _second_next(fn, spec, block)
    columns = scaled(fn, panel, spec.b_layout.columns)
    is_row = fn.value(f"icmp slt i64 {row}, %rows")
    is_column = fn.value(f"icmp slt i64 {columns}, %columns")
    is_there = fn.value(f"and i1 {is_row}, {is_column}")
    there = _target_of(fn, spec, row, panel)
    return fn.value(f"select i1 {is_there}, ptr {there}, ptr {here}")


def _second_next(fn: FunctionBuilder, spec: DotSpec, block: _Block) -> tuple[str, str]:
    """The row and the panel of the block after the next one, along the panels and then below."""
    size, columns = block.column.run.size, spec.b_layout.columns
    following, second = (scaled(fn, block.panel, 1, count * size) for count in (1, BLOCKS_AHEAD))
    has_next, has_second = (
        fn.value(f"icmp slt i64 {scaled(fn, panel, columns)}, %columns")
        for panel in (following, second)
    )
    below = scaled(fn, block.row, 1, block.most_rows or block.rows)
    row = fn.value(f"select i1 {has_second}, i64 {block.row}, i64 {below}")
    first = fn.value(f"select i1 {has_next}, i64 0, i64 {size}")
    return row, fn.value(f"select i1 {has_second}, i64 {second}, i64 {first}")
