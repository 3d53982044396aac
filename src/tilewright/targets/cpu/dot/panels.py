"""Operand layouts of the CPU's `dot`: how A, B and the accumulator lie in the arena.

A machine multiplies with one of a few instructions (`Multiply`); the instruction fixes the
element type in which the operands are kept and how many consecutive k one lane holds
(`k_group`). A stays row-major. B is cut into panels of `columns` columns, each panel a
stack of k-groups, so that the inner loop reads B as one stream of whole vectors:

    B[K, N]         panel 0            panel 1
    k ─┬───────┬───────┐      ┌ group 0: c0 c1 … c(columns-1) ┐
       │panel 0│panel 1│  →   │ group 1: c0 c1 …              │ …
       └───────┴───────┘      └ each c holds k_group k-values ┘
"""

from __future__ import annotations

from enum import Enum

from tilewright.support.dataclass import dataclass
from tilewright.targets.cpu.dot.amx_tiles import SIDE

# By definition: the widths of the types.
ELEMENT_BYTES = {"f64": 8, "f32": 4, "i32": 4, "i16": 2, "bf16": 2, "i8": 1, "u8": 1}
"""Bytes of the element types in which operands and accumulators are kept."""

LANE_TYPE = {"f64": "double", "f32": "float"}
"""LLVM type of one panel lane; every element type not listed packs a group into an `i32`, or into
an `i64` for 2x2 products."""

INTEGER_DTYPES = ("i8", "u8")
# By definition: the vectors of SSE2 and NEON, which every x86-64 and AArch64 core has.
MIN_VECTOR_BYTES = 16


class Instruction(Enum):
    """The instruction that one step of the inner loop is made of."""

    FMA = "fma"
    MULTIPLY_ADD = "multiply_add"
    BF16_DOT = "bf16_dot"
    BF16_DOT_NEON = "bf16_dot_neon"
    I8_DOT = "i8_dot"
    I8_DOT_NEON = "i8_dot_neon"
    BF16_2X2_NEON = "bf16_2x2_neon"
    I8_2X2_NEON = "i8_2x2_neon"
    I16_PAIRS = "i16_pairs"
    I32 = "i32"
    AMX = "amx"


# By definition: the instructions that multiply two rows by two columns.
_2X2 = (Instruction.BF16_2X2_NEON, Instruction.I8_2X2_NEON)


@dataclass(frozen=True)
class Multiply:
    """How a machine multiplies two tiles: instruction, kept element types, k-group.

    *Semantics* `acc[m, n] + Σ_k a[m, k]·b[k, n]`, summed over k in ascending order from zero
    and then added to `acc`. `FMA` rounds once per step; `MULTIPLY_ADD` rounds product and
    sum; `BF16_DOT` adds the two products of a pair with the rounding of `vdpbf16ps`
    (round to nearest even without exceptions, denormal inputs and results flushed to
    zero), `BF16_DOT_NEON` with that of `bfdot` (products exact, their sum and its addition rounded
    to odd, denormals flushed alike), `BF16_2X2_NEON` with that of two `bfdot` one after the other;
    the integer instructions are exact modulo 2^32. `AMX`
    multiplies tiles, not vectors (`amx_product.py`).
    `bias_a`: A is kept with its top bit flipped (`vpdpbusd` takes one unsigned and one signed
    operand); the kernel takes the excess `128·Σ_k b[k, n]` off again.
    `parts`: each operand is kept in so many parts, one behind the other along k (`widen.py`).
    """

    instruction: Instruction
    a_element: str
    b_element: str
    accumulator: str
    k_group: int = 1
    bias_a: bool = False
    parts: int = 1

    @property
    def lane_type(self) -> str:
        """The LLVM type of one k-group of one column."""
        return "i64" if self.rows == 2 else LANE_TYPE.get(self.b_element, "i32")

    @property
    def rows(self) -> int:
        """The rows of A, and of the result, that one instruction multiplies."""
        return 2 if self.instruction in _2X2 else 1

    @property
    def has_columns_first(self) -> bool:
        """Whether the sums of two rows by two columns lie column by column.

        `usmmla` takes the unsigned operand first: where that is B, the product is the transpose.
        """
        return self.rows == 2 and (self.a_element, self.b_element) == ("i8", "u8")

    @property
    def accumulator_type(self) -> str:
        """The LLVM type of one accumulator lane."""
        return LANE_TYPE.get(self.accumulator, "i32")

    @property
    def lane_bytes(self) -> int:
        """Bytes of one lane of an accumulator; of a k-group of operands, too, but for 2x2 ones."""
        return ELEMENT_BYTES[self.accumulator]


@dataclass(frozen=True)
class VectorUnit:
    """The vector registers of a machine, by feature names, never by CPU name."""

    features: frozenset[str]
    vector_bytes: int

    @property
    def is_arm(self) -> bool:
        """Whether the features are those of a 64-bit ARM machine."""
        return "neon" in self.features

    @property
    def has_fma(self) -> bool:
        """Whether a fused multiply-add is one instruction."""
        return self.is_arm or "fma" in self.features or "avx512f" in self.features

    @property
    def num_registers(self) -> int:
        """Number of architectural vector registers."""
        return 32 if self.is_arm or "avx512f" in self.features else 16

    @property
    def has_byte_dot(self) -> bool:
        """Whether `vpdpbusd` exists at this vector width."""
        if self.vector_bytes == 64:
            return "avx512vnni" in self.features
        return {"avx512vnni", "avx512vl"} <= self.features or "avxvnni" in self.features

    @property
    def has_bf16_dot(self) -> bool:
        """Whether `vdpbf16ps` exists at this vector width, or `bfdot`."""
        if self.is_arm:
            return "bf16" in self.features
        return "avx512bf16" in self.features and (
            self.vector_bytes == 64 or "avx512vl" in self.features
        )

    @property
    def is_bf16_dot_fast(self) -> bool:
        """Whether the instruction for pairs of bf16 beats conversion to f32 and FMA.

        No feature bit tells, so a bit that only one maker sets stands for it; a wrong guess
        costs speed, not correctness.
        *Source* measured: Zen 4 starts a 512-bit `vdpbf16ps` and an FMA in each cycle, so the
        instruction doubles the rate; Emerald Rapids starts one `vdpbf16ps` in two cycles but
        two FMAs in one, so f32 is twice as fast as the instruction made for bf16. Arm's guide to
        optimization for Neoverse V2: `bfdot` and `fmla` start equally often.
        """
        return self.has_bf16_dot and (self.is_arm or "sse4a" in self.features)


def choose_multiply(
    a_dtype: str,
    b_dtype: str,
    unit: VectorUnit,
    *,
    contract: bool = True,
    bf16_dot: bool | None = None,
) -> Multiply:
    """The way to multiply tiles of two dtypes on a machine.

    *Dtypes* f64 with anything: f64. i8/u8: exact, accumulated in i32. Every other pair
    (f32, f16, bf16, fp8): kept and accumulated in f32, which is exact for the operands.
    `contract=False` asks for separately rounded products and sums. `bf16_dot` decides for or
    against products of pairs; `None` takes it where it is the faster way.
    """
    if a_dtype in INTEGER_DTYPES and b_dtype in INTEGER_DTYPES:
        return _choose_integer(a_dtype, b_dtype, unit)
    use_dot = unit.is_bf16_dot_fast if bf16_dot is None else bf16_dot
    if a_dtype == b_dtype == "bf16" and use_dot and contract and unit.has_bf16_dot:
        pairs = Instruction.BF16_DOT_NEON if unit.is_arm else Instruction.BF16_DOT
        return Multiply(pairs, "bf16", "bf16", "f32", k_group=2)
    wide = "f64" if "f64" in (a_dtype, b_dtype) else "f32"
    instruction = Instruction.FMA if contract and unit.has_fma else Instruction.MULTIPLY_ADD
    return Multiply(instruction, wide, wide, wide)


def amx_multiply(a_dtype: str, b_dtype: str) -> Multiply | None:
    """How AMX multiplies tiles of two dtypes; None where it does not."""
    if a_dtype in INTEGER_DTYPES and b_dtype in INTEGER_DTYPES:
        return Multiply(Instruction.AMX, a_dtype, b_dtype, "i32", k_group=4)
    if a_dtype == b_dtype == "bf16":
        return Multiply(Instruction.AMX, "bf16", "bf16", "f32", k_group=2)
    if a_dtype == b_dtype == "f16":
        return Multiply(Instruction.AMX, "bf16", "bf16", "f32", k_group=2, parts=3)
    return None


def multiply_2x2(a_dtype: str, b_dtype: str, unit: VectorUnit) -> Multiply | None:
    """How two rows meet two columns in one instruction of a machine; None where they do not.

    *Dtypes* bytes of any sign (`smmla`, `ummla`, `usmmla`), bf16 (`bfmmla`).
    """
    if not unit.is_arm:
        return None
    if a_dtype in INTEGER_DTYPES and b_dtype in INTEGER_DTYPES and "i8mm" in unit.features:
        return Multiply(Instruction.I8_2X2_NEON, a_dtype, b_dtype, "i32", k_group=8)
    if a_dtype == b_dtype == "bf16" and "bf16" in unit.features:
        return Multiply(Instruction.BF16_2X2_NEON, "bf16", "bf16", "f32", k_group=4)
    return None


def _choose_integer(a_dtype: str, b_dtype: str, unit: VectorUnit) -> Multiply:
    if unit.is_arm:
        feature = "dotprod" if a_dtype == b_dtype else "i8mm"
        if feature in unit.features:
            return Multiply(Instruction.I8_DOT_NEON, a_dtype, b_dtype, "i32", k_group=4)
        return Multiply(Instruction.I32, "i32", "i32", "i32")
    if unit.has_byte_dot:
        bias = a_dtype == b_dtype
        return Multiply(Instruction.I8_DOT, a_dtype, b_dtype, "i32", k_group=4, bias_a=bias)
    # Products of two sign- or zero-extended bytes and their pairwise sums fit in an i32.
    return Multiply(Instruction.I16_PAIRS, "i16", "i16", "i32", k_group=2)


@dataclass(frozen=True)
class PanelLayout:
    """The panels of B: `[N/columns][K/k_group][columns][k_group]` elements.

    The last panel may hold fewer columns; it still takes the space of a whole one, and its
    columns up to the next multiple of `lanes` are zero, as are k beyond K.
    With `k_group` 1 and `columns ≥ N` the layout *is* row-major `[K][columns]`.
    """

    element: str
    columns: int
    k_group: int
    lanes: int
    parts: int = 1

    def num_groups(self, k: int) -> int:
        """Number of k-groups."""
        return -(-k // self.k_group)

    def num_panels(self, n: int) -> int:
        """Number of panels, counting a partial last one."""
        return -(-n // self.columns)

    def panel_elems(self, k: int) -> int:
        """Elements from one panel to the next."""
        return self.parts * self.part_elems(k)

    def part_elems(self, k: int) -> int:
        """Elements from one part of a panel to the next."""
        return self.num_groups(k) * self.columns * self.k_group

    def size_elems(self, k: int, n: int) -> int:
        """Elements of the whole buffer."""
        return self.num_panels(n) * self.panel_elems(k)

    def size_bytes(self, k: int, n: int) -> int:
        """Bytes of the whole buffer."""
        return self.size_elems(k, n) * ELEMENT_BYTES[self.element]

    def offset(self, k: int, n: int, k_extent: int) -> int:
        """Where `b[k, n]` lies, in elements, in the panels of a B with `k_extent` rows."""
        panel, column = divmod(n, self.columns)
        group, part = divmod(k, self.k_group)
        row = group * self.columns + column
        return panel * self.panel_elems(k_extent) + row * self.k_group + part


@dataclass(frozen=True)
class RowLayout:
    """The rows of A: `[M][stride]` elements, K padded with zeros to whole k-groups.

    With `rows` 2 the k-groups of two rows lie in turn, `[M/2][K/k_group][2][k_group]`: panels of
    two columns of A's transpose. A last row that has no other has one of zeros.
    """

    element: str
    k_group: int
    bias: bool = False
    parts: int = 1
    rows: int = 1

    def stride_elems(self, k: int) -> int:
        """Elements from one row to the next, such that rows do not share cache sets: half of
        those from two rows to the next two.

        *Source* an L1 set repeats every 4096 bytes: rows that far apart evict each other.
        """
        element_bytes = ELEMENT_BYTES[self.element]
        stride = self.parts * -(-k // self.k_group) * self.k_group
        is_aliased = self.rows * stride * element_bytes % 4096 == 0
        return stride + 64 // (self.rows * element_bytes) if is_aliased else stride

    def size_elems(self, m: int, k: int) -> int:
        """Elements of the whole buffer."""
        return -(-m // self.rows) * self.rows * self.stride_elems(k)

    def size_bytes(self, m: int, k: int) -> int:
        """Bytes of the whole buffer."""
        return self.size_elems(m, k) * ELEMENT_BYTES[self.element]


def panel_layout(multiply: Multiply, unit: VectorUnit, n: int) -> PanelLayout:
    """The panels in which a B of `n` columns is kept.

    *Why* four vectors wide on machines with 32 registers: a block of 6 rows by 4 vectors
    loads 10 values for 24 multiply-adds, where 13 rows by 2 vectors load 15 for 26.
    *Source* measured: Emerald Rapids, K = 32…256: 6x64 95–98 % of the FMA peak, 13x32
    93–96 %, 28x16 79–91 %. With 16 registers 6 rows by 2 vectors is what fits. AMX takes
    two tiles of 16 columns. A vector of 2x2 products has two columns: 10 rows by 8 columns load
    9 values for 20.
    """
    lanes = accumulator_lanes(multiply, unit, n)
    num_vectors = -(-n // lanes)
    widest = 4 if unit.num_registers == 32 else 2
    if multiply.instruction is Instruction.AMX:
        widest = SIDE
    num_panels = -(-num_vectors // widest)
    columns = -(-num_vectors // num_panels) * lanes
    return PanelLayout(multiply.b_element, columns, multiply.k_group, lanes, multiply.parts)


def accumulator_lanes(multiply: Multiply, unit: VectorUnit, n: int) -> int:
    """Columns of one accumulator: a whole register, or a narrower one that holds `n`."""
    if multiply.rows == 2:
        return 2
    full = unit.vector_bytes // multiply.lane_bytes
    narrowest = MIN_VECTOR_BYTES // multiply.lane_bytes
    return max(narrowest, min(full, 1 << (n - 1).bit_length()))


def row_layout(multiply: Multiply) -> RowLayout:
    """The rows in which A is kept."""
    return RowLayout(
        *(multiply.a_element, multiply.k_group, multiply.bias_a, multiply.parts, multiply.rows)
    )
