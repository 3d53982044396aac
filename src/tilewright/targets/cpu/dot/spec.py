"""What one `dot` of the CPU is: shapes, dtypes, strides, machine, and where its operands lie."""

from __future__ import annotations

from typing import Literal

from tilewright.support.dataclass import dataclass, replace
from tilewright.targets.cpu.dot.amx_blocks import AmxBlocks, amx_blocks
from tilewright.targets.cpu.dot.amx_tiles import FULL_TILES
from tilewright.targets.cpu.dot.amx_transposed import AmxTransposed, covers_transposed
from tilewright.targets.cpu.dot.pack_spec import PackSpec
from tilewright.targets.cpu.dot.panels import (
    ELEMENT_BYTES,
    Instruction,
    Multiply,
    PanelLayout,
    RowLayout,
    VectorUnit,
    amx_multiply,
    choose_multiply,
    multiply_2x2,
    panel_layout,
    row_layout,
)
from tilewright.targets.cpu.dot.transposed_b import reads_transposed

FEW_ROWS = 16
"""Rows of a product up to which reading B is all that it waits for.
Measured on Zen 5, 2026-11-23, one thread, f32: see AHEAD_BYTES."""


NEAR_A_BYTES = 16 << 10
"""Bytes of A up to which it stays in the first-level cache beside a panel of B: then all its rows
meet one panel before the next, and none is fetched.
Measured on Zen 5, 2026-11-23, one thread, f32: 32x4096x4096 with tiles of 32x128x128 1.2 to 1.27
times the speed, of 32x256x128 1.36 to 1.46; with 64 KiB 1024³ with tiles of 128x128x128 up to 1.05.
Measured on Emerald Rapids, 2026-11-23: with 64 KiB 1024³ with tiles of 128x256x128 0.93,
1024x1024x17 0.75; with 16 KiB 32x4096x4096 1.27."""


COPIED_ROWS = 8
"""Rows of A that are copied at once for 2x2 products where its columns are contiguous in memory.
By definition: a k-group of so many rows of bytes fills four registers, one for two rows."""


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
    `is_amx` multiplies tile registers, `is_2x2` two rows by two columns in an instruction;
    `units.py` says where they may.
    `is_limited` takes, at run time, how many rows and columns are seen and how many k are summed;
    both operands are then where the user has them, or AMX multiplies them (`has_amx_limits`).
    `has_row_limit` takes how many rows are seen alone, wherever the operands are.
    `transposed_b` reads B where the user has it, as `[N, K]`: see `transposed_b.py`.
    `has_target` writes the sum elsewhere than it adds to, or adds nothing, as it is told at run
    time: a loop's last step writes where the user wants the result, its first finds no zeros.
    On AMX that is rows of `target_dtype`, and it is told, too, whether they are to be written.
    `panel_columns`: the columns of a block where no panel is kept, see `few_rows.py`.
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
    is_2x2: bool = False
    is_limited: bool = False
    has_row_limit: bool = False
    has_target: bool = False
    target_dtype: str | None = None
    transposed_b: bool = False
    panel_columns: int | None = None

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
        if self.is_2x2:
            multiply = multiply_2x2(self.a_dtype, self.b_dtype, self.unit)
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
        if self.is_2x2:
            return False
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
        lanes = self.transposed_lanes
        return self.m <= FEW_ROWS and reads_transposed(self.multiply, self.b_dtype, lanes, self.n)

    @property
    def transposed_lanes(self) -> int:
        """The rows of a transposed B that are read at once."""
        return self.b_layout.lanes * self.multiply.rows

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
        layout = panel_layout(self.multiply, self.unit, self.n)
        return layout if self.panel_columns is None else replace(layout, columns=self.panel_columns)

    @property
    def a_stride(self) -> int:
        """Elements between the rows of an A that is not read in place."""
        return self.a_layout.stride_elems(self.k) if self.lda is None else self.lda

    @property
    def acc_stride(self) -> int:
        """Elements between the rows of the accumulator."""
        return self.n if self.ldc is None else self.ldc

    @property
    def amx_blocks(self) -> AmxBlocks | None:
        """How AMX cuts the product; None where it is another unit's."""
        return amx_blocks((self.m, self.n, self.k), self.multiply) if self.is_amx else None

    @property
    def has_amx_limits(self) -> bool:
        """Whether AMX leaves out what limits hide: blocks of whole tiles."""
        blocks = self.amx_blocks if not self.transposed_b else None
        return blocks is not None and blocks.tiles == FULL_TILES and blocks.is_square

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
        if self.is_2x2:
            return self._pack_spec_2x2(role, transposed)
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

    def _pack_spec_2x2(self, role: Literal["a", "b"], transposed: bool) -> PackSpec:
        """The copy of an operand of 2x2 products: A's rows are columns of its transpose.

        A source that is contiguous across k is copied in more columns at once than a vector holds.
        """
        is_a = role == "a"
        panels, along_k = self.b_layout, transposed != is_a
        if is_a:
            panels = replace(panels, element=self.multiply.a_element, columns=2)
        across = COPIED_ROWS if is_a else panels.columns
        return PackSpec(
            layout=panels,
            multiply=self.multiply,
            source=self.a_dtype if is_a else self.b_dtype,
            extent=self.m if is_a else self.n,
            k=self.k,
            lanes=panels.lanes if along_k else across,
            transposed=along_k,
            features=self.features,
            stride=2 * self.a_stride if is_a else None,
        )
