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

from tilewright.codegen.llvm_builder import FunctionBuilder, ModuleBuilder
from tilewright.targets.cpu.dot.amx_blocks import AmxBlocks
from tilewright.targets.cpu.dot.amx_product import emit_amx_product
from tilewright.targets.cpu.dot.amx_results import AmxTarget
from tilewright.targets.cpu.dot.amx_transposed import emit_amx_transposed
from tilewright.targets.cpu.dot.block_calls import block_limits, emit_block_call, emit_edge_call
from tilewright.targets.cpu.dot.block_results import TARGET_ARGUMENTS
from tilewright.targets.cpu.dot.block_runs import (
    ColumnRun,
    ProductBlock,
    Run,
    column_runs,
    max_rows,
    row_runs,
)
from tilewright.targets.cpu.dot.few_rows import emit_few_rows
from tilewright.targets.cpu.dot.spec import DotSpec
from tilewright.targets.cpu.dot.transposed_b import TransposedProduct, emit_transposed_product


def dot_name(spec: DotSpec) -> str:
    """The name of the function of a spec; injective on specs of one machine."""
    lda = "r" if spec.a_in_place else spec.a_stride
    shape = f"{spec.m}x{spec.n}x{spec.k}.{lda}.{spec.acc_stride}"
    name = f"tw.dot.{spec.a_dtype}.{spec.b_dtype}.{spec.multiply.instruction.value}.{shape}"
    if spec.next_b is not None:
        name += f".next{spec.next_b.rows}.{spec.next_b.element_bytes}"
    name += ".rows" * spec.packs_b + ".zero" * spec.zero_init + ".part" * spec.is_limited
    name += ".top" * spec.has_row_limit
    name += ".to" * spec.has_target + (spec.target_dtype or "")
    return name + ".across" * spec.transposed_b


def emit_dot(module: ModuleBuilder, spec: DotSpec) -> str:
    """Define the function of a spec and return `@name`.

    `void @name(ptr %a, ptr %b_panels, ptr %acc)`, then `i64 %a_stride` (elements) if
    `a_in_place`, then `ptr %room` if it has `room_bytes`, then `ptr %next_b, i64
    %next_b_stride` (elements) if `next_b`, then `ptr %b_source, i64 %b_source_stride`
    (elements) if `packs_b`, `%b_panels` being its room, or `transposed_b`, then `i64 %rows,
    i64 %columns, i64 %depth` (at least 1) if `is_limited`, or `i64 %rows` if `has_row_limit`, then
    `ptr %target,
    i64 %target_stride` (elements), `i1 %is_first` if `has_target`, then `i1 %is_last`
    if it `is_amx`, too.
    *Constraints* the three buffers do not overlap, nor the target the operands; they are aligned
    to their elements (to 64 bytes for speed). A is padded with zeros to whole k-groups and B as
    `PanelLayout` says.
    """
    assert spec.can_read_a_in_place or not spec.a_in_place, spec
    assert spec.can_pack_b or not spec.packs_b, spec
    has_sources = spec.a_in_place or spec.transposed_b
    assert has_sources or spec.has_amx_limits or not spec.is_limited, spec
    assert spec.can_read_transposed_b or not spec.transposed_b, spec
    assert not (spec.has_row_limit and (spec.is_limited or spec.is_amx or spec.transposed_b)), spec
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
    arguments += ", i64 %rows" * spec.has_row_limit
    arguments += TARGET_ARGUMENTS * spec.has_target
    arguments += ", i1 %is_last" * (spec.has_target and spec.is_amx)
    header = f"define internal void @{name}({arguments}) noinline nounwind"
    fn = FunctionBuilder(module, header)
    if spec.amx_transposed is not None:
        emit_amx_transposed(fn, spec.amx_transposed)
    elif spec.amx_blocks is not None:
        _emit_amx(fn, spec, spec.amx_blocks)
    elif spec.transposed_b:
        sizes = (str(spec.m), str(spec.n), str(spec.k))
        limits = ("%rows", "%columns", "%depth") if spec.is_limited else sizes
        emit_transposed_product(fn, _transposed_product(spec), limits)
    else:
        emit = _emit_in_place if spec.a_in_place else _emit_columns_outside
        emit_few_rows(fn, spec, lambda part: emit(fn, part, column_runs(part)))
    fn.emit("ret void")
    return module.add_function(name, fn.text())


def _emit_amx(fn: FunctionBuilder, spec: DotSpec, blocks: AmxBlocks) -> None:
    strides = ("%a_stride" if spec.a_in_place else str(spec.a_stride), spec.acc_stride)
    emit_amx_product(fn, blocks, strides, spec.zero_init, _amx_target(spec), spec.is_limited)


def _amx_target(spec: DotSpec) -> AmxTarget | None:
    if not spec.has_target:
        return None
    return AmxTarget(spec.target_dtype or spec.acc_dtype, spec.features)


def _transposed_product(spec: DotSpec) -> TransposedProduct:
    return TransposedProduct(
        *(spec.m, spec.n, spec.k, spec.multiply, spec.unit, spec.transposed_lanes, spec.b_dtype),
        lda=None if spec.a_in_place else spec.a_stride,
        ldc=spec.acc_stride,
        zero_init=spec.zero_init,
        fetches=spec.next_b is not None,
    )


def _emit_columns_outside(fn: FunctionBuilder, spec: DotSpec, columns: list[ColumnRun]) -> None:
    limit, _ = block_limits(fn, spec)

    def row_blocks(panel: str, column: ColumnRun) -> None:
        most = max_rows(spec.unit, spec.multiply, len(column.vectors))
        for rows in row_runs(spec, most):
            rows.emit(fn, lambda row, rows=rows: block_call(row, rows, panel, column), limit)

    def block_call(row: str, rows: Run, panel: str, column: ColumnRun) -> None:
        emit_block_call(fn, spec, ProductBlock(row, rows.size, panel, column, rows.first == 0))

    for column in columns:
        column.run.emit(fn, lambda panel, column=column: row_blocks(panel, column))


def _emit_in_place(fn: FunctionBuilder, spec: DotSpec, columns: list[ColumnRun]) -> None:
    """The blocks of an A that lies where the user has it: a small one is near from the first
    panel on, of a large one each block of rows comes from far away once."""
    most = min(
        max_rows(spec.unit, spec.multiply, len(each.vectors), a_in_place=True) for each in columns
    )
    row_limit, panel_limit = block_limits(fn, spec)
    runs = row_runs(spec, most)
    tallest = max(rows.size for rows in runs)

    def block_call(row: str, rows: Run, panel: str, column: ColumnRun) -> None:
        block = ProductBlock(row, rows.size, panel, column, rows.first == 0)
        emit_edge_call(fn, spec, block, tallest)

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
