"""One block of a `dot`: rows by vectors of accumulators that live in registers through k."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from tilewright.codegen.llvm_builder import FunctionBuilder, ModuleBuilder
from tilewright.machine.cpus import LINE_BYTES
from tilewright.support.dataclass import replace
from tilewright.targets.cpu.dot.block_results import (
    TARGET_ARGUMENTS,
    fetch_target,
    send_block,
    store_block,
)
from tilewright.targets.cpu.dot.block_spec import BlockSpec, BlockVector, column_masks, strided_rows
from tilewright.targets.cpu.dot.line_fetches import (
    addresses_of_turn,
    emit_fetches,
    fetch_parameters,
)
from tilewright.targets.cpu.dot.multiply_add import add_column_sums, emit_multiply_add
from tilewright.targets.cpu.dot.panels import ELEMENT_BYTES
from tilewright.targets.cpu.dot.vectors import (
    carried_loop,
    carried_while,
    element_address,
    load_masked,
    load_prefix,
    scaled,
    splat,
    store_prefix,
)
from tilewright.targets.cpu.dot.widen import STORAGE_BYTES, STORAGE_TYPE, emit_widen


def emit_block(module: ModuleBuilder, spec: BlockSpec) -> str:
    """Define `fastcc void @name(ptr %a, ptr %b, ptr %c, i64 %lda)` and return `@name`.

    `%a` and `%c` point to the block's first row, `%b` to its first panel; `%lda` is read
    where the spec has none. `fetch_parameters` follow,
    with `source` `ptr %source, i64 %source_stride` (elements) of the block's columns, `i64
    %pitch` (elements) if it `has_pitch`, `i64 %rows_ahead` if it `fetches_ahead`, and
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
    arguments += ", i64 %pitch" * spec.has_pitch
    arguments += ", i64 %rows_ahead" * spec.fetches_ahead
    arguments += ", i64 %rows, i64 %columns, i64 %depth" * spec.is_limited
    arguments += (TARGET_ARGUMENTS + ", ptr %later_target") * spec.has_target
    header = f"define internal fastcc void @{name}({arguments}) noinline nounwind"
    fn = FunctionBuilder(module, header)
    if spec.has_target:
        fetch_target(fn, spec)
    chains = _accumulate(fn, spec)
    if spec.has_target:
        send_block(fn, spec, chains)
    else:
        store_block(fn, spec, chains)
    fn.emit("ret void")
    return module.add_function(name, fn.text())


def _accumulate(fn: FunctionBuilder, spec: BlockSpec) -> Sequence[str]:
    """The k loop. Accumulators must be separate phis: as one wide phi or in memory the same
    loop runs at a tenth of the speed."""
    group = spec.multiply.k_group
    a_type = STORAGE_TYPE[spec.multiply.a_element]
    b_type = STORAGE_TYPE[spec.multiply.b_element]

    rows = _row_addresses(fn, spec)
    masks = [None] * len(spec.vectors) if spec.source is None else column_masks(fn, spec)

    def steps(
        index: str, chains: Sequence[str], count: int = spec.unroll, is_tail: bool = False
    ) -> Sequence[str]:
        first = scaled(fn, index, count * group)
        a_first = scaled(fn, first, spec.multiply.rows)
        a = [element_address(fn, a_type, row, a_first) for row in rows]
        pitch = "%pitch" if spec.has_pitch else spec.layout.columns
        b = element_address(fn, b_type, "%b", scaled(fn, first, pitch))
        fetched = addresses_of_turn(fn, () if is_tail else spec.fetches, index)
        source = _source_rows(fn, spec, index, count)
        for step in range(count):
            emit_fetches(fn, fetched, step, count)
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


def _row_addresses(fn: FunctionBuilder, spec: BlockSpec) -> list[str]:
    """Where each row of A starts; one address, from which rows are constants, if it can be."""
    if spec.lda is not None:
        return ["%a"]
    return strided_rows(fn, spec, STORAGE_TYPE[spec.multiply.a_element], "%a", "%lda")


def _emit_step(
    fn: FunctionBuilder,
    spec: BlockSpec,
    a: Sequence[str],
    b_vectors: Sequence[str],
    step: int,
    chains: Sequence[str],
) -> list[str]:
    """One k-group: a splat of A per row, or two rows, its products with all vectors of B."""
    group = spec.multiply.k_group * spec.multiply.rows
    count = len(b_vectors)
    following: list[str] = []
    for number, row in enumerate(spec.row_starts):
        if spec.lda is None:
            a_value = _load_a(fn, spec, a[row], step * group)
        else:
            a_value = _load_a(fn, spec, a[0], row * spec.lda + step * group)
        for position, b_vector in enumerate(b_vectors):
            chain = chains[number * count + position]
            following.append(
                emit_multiply_add(fn, spec.multiply, spec.layout.lanes, chain, a_value, b_vector)
            )
    for position, chain in enumerate(chains[len(spec.row_starts) * count :]):
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
    """Ask for the line that a vector of a later row of B begins in, and for the row's last one,
    which is one more where rows do not begin with a line."""
    assert spec.source is not None
    type_ = STORAGE_TYPE[spec.source]
    begins = vector.column * STORAGE_BYTES[type_] % LINE_BYTES == 0
    columns = [vector.column] if begins else []
    columns += [vector.column + vector.valid - 1] if vector == spec.vectors[-1] else []
    later = element_address(fn, type_, row, scaled(fn, "%source_stride", "%rows_ahead"))
    callee = fn.module.declare("llvm.prefetch.p0", "void", "ptr, i32, i32, i32")
    for column in columns:
        at = element_address(fn, type_, later, column)
        fn.emit(f"call void {callee}(ptr {at}, i32 0, i32 2, i32 1)")


def _load_a(fn: FunctionBuilder, spec: BlockSpec, a: str, offset: int) -> str:
    multiply = spec.multiply
    address = element_address(fn, STORAGE_TYPE[multiply.a_element], a, offset)
    align = ELEMENT_BYTES[multiply.a_element]
    if multiply.rows == 2:
        return fn.value(f"load <2 x {multiply.lane_type}>, ptr {address}, align {align}")
    scalar = fn.value(f"load {multiply.lane_type}, ptr {address}, align {align}")
    return splat(fn, spec.layout.lanes, multiply.lane_type, scalar)
