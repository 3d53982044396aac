"""The register-blocked `dot` of the CPU: a function per shape, a microkernel per block.

`acc[M, N] (+)= a[M, K] · b[K, N]` on operands in the arena (`panels.py`). The tile of the
result is cut into blocks that fit in the register file; a block's accumulators are phis of
its k loop, start from zero and meet the old `acc` once, after the loop:

    for column block (its panels of B stay in the first-level cache)
      for row block
        registers[rows][vectors] = 0
        for k group: registers[r][v] += splat(a[r][k]) * b[k][v]
        acc[block] += registers
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tilewright.codegen.llvm_builder import FunctionBuilder, ModuleBuilder
from tilewright.targets.cpu.dot_block import BlockSpec, BlockVector, emit_block
from tilewright.targets.cpu.packing import PackSpec
from tilewright.targets.cpu.panels import (
    ELEMENT_BYTES,
    Instruction,
    Multiply,
    PanelLayout,
    RowLayout,
    VectorUnit,
    choose_multiply,
    panel_layout,
    row_layout,
)
from tilewright.targets.cpu.vectors import counted_loop, element_address, scaled

MIN_CHAINS = 8
"""Accumulators that keep two FMA units of latency 4 busy; a block has more where it can."""


@dataclass(frozen=True)
class DotSpec:
    """One `dot`: shapes, dtypes, strides and machine; equal specs share one function.

    *Shapes* any `m, n, k ≥ 1`. *Units* `lda`, `ldc` in elements of the kept A and of the
    accumulator; `None` takes `a_layout.stride_elems(k)` and `n`.
    `zero_init` overwrites `acc` instead of adding to it. `contract` and `bf16_dot` as in
    `choose_multiply`. Input precisions tf32, bf16x3 and bf16x6 of f32 operands are computed
    as ieee f32, which is at least as exact.
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

    @property
    def unit(self) -> VectorUnit:
        """The vector registers of the machine."""
        return VectorUnit(self.features, self.vector_bytes)

    @property
    def multiply(self) -> Multiply:
        """The instruction and the element types that it keeps."""
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
    def a_layout(self) -> RowLayout:
        """The rows in which `%a` is expected."""
        return row_layout(self.multiply)

    @property
    def b_layout(self) -> PanelLayout:
        """The panels in which `%b_panels` is expected."""
        return panel_layout(self.multiply, self.unit, self.n)

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


def split_rows(m: int, most: int) -> list[Run]:
    """`m` rows as blocks of at most `most` whose heights differ by at most one."""
    blocks = -(-m // most)
    low, tall = divmod(m, blocks)
    runs = [Run(0, tall, low + 1), Run(tall * (low + 1), blocks - tall, low)]
    return [run for run in runs if run.count]


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
    flags = "z" * spec.zero_init + f".{spec.multiply.instruction.value}"
    shape = f"{spec.m}x{spec.n}x{spec.k}"
    strides = f"{_lda(spec)}.{_ldc(spec)}"
    return f"tw.dot.{spec.a_dtype}.{spec.b_dtype}.{shape}.{strides}{flags}"


def emit_dot(module: ModuleBuilder, spec: DotSpec) -> str:
    """Define `void @name(ptr %a, ptr %b_panels, ptr %acc)` for a spec and return `@name`.

    *Constraints* the three buffers do not overlap; they are aligned to their elements (to 64
    bytes for speed). A is padded with zeros to whole k-groups and B as `PanelLayout` says.
    """
    name = dot_name(spec)
    if module.has_function(name):
        return f"@{name}"
    header = f"define internal void @{name}(ptr noalias %a, ptr noalias %b, ptr noalias %c)"
    fn = FunctionBuilder(module, f"{header} noinline nounwind")
    layout = spec.b_layout
    whole, rest = divmod(spec.n, layout.columns)
    for run in split_panels(whole, panels_per_block(spec)):
        _emit_column_run(fn, spec, run, _whole_vectors(spec, run.size))
    if rest:
        _emit_column_run(fn, spec, Run(whole, 1, 1), _partial_vectors(layout, rest))
    fn.emit("ret void")
    return module.add_function(name, fn.text())


def _lda(spec: DotSpec) -> int:
    return spec.a_layout.stride_elems(spec.k) if spec.lda is None else spec.lda


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


def _emit_column_run(
    fn: FunctionBuilder, spec: DotSpec, run: Run, vectors: tuple[BlockVector, ...]
) -> None:
    layout = spec.b_layout
    most = max_rows(spec.unit, spec.multiply, len(vectors))
    panel_bytes = layout.panel_elems(spec.k) * ELEMENT_BYTES[layout.element]
    acc_bytes = ELEMENT_BYTES[spec.acc_dtype]

    def column_block(index: str) -> None:
        panel = scaled(fn, index, run.size, run.first)
        b = element_address(fn, "i8", "%b", scaled(fn, panel, panel_bytes))
        c = element_address(fn, "i8", "%c", scaled(fn, panel, layout.columns * acc_bytes))
        for rows in split_rows(spec.m, most):
            _emit_row_run(fn, spec, rows, vectors, b, c)

    counted_loop(fn, run.count, column_block)


def _emit_row_run(
    fn: FunctionBuilder, spec: DotSpec, run: Run, vectors: tuple[BlockVector, ...], b: str, c: str
) -> None:
    a_bytes = _lda(spec) * ELEMENT_BYTES[spec.a_layout.element]
    c_bytes = _ldc(spec) * ELEMENT_BYTES[spec.acc_dtype]
    block = emit_block(
        fn.module,
        BlockSpec(
            multiply=spec.multiply,
            layout=spec.b_layout,
            k=spec.k,
            rows=run.size,
            vectors=vectors,
            lda=_lda(spec),
            ldc=_ldc(spec),
            zero_init=spec.zero_init,
        ),
    )

    def row_block(index: str) -> None:
        row = scaled(fn, index, run.size, run.first)
        a_block = element_address(fn, "i8", "%a", scaled(fn, row, a_bytes))
        c_block = element_address(fn, "i8", c, scaled(fn, row, c_bytes))
        fn.emit(f"call fastcc void {block}(ptr {a_block}, ptr {b}, ptr {c_block})")

    counted_loop(fn, run.count, row_block)
