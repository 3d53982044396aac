"""Which unit of a CPU multiplies the tiles of a product: AMX's registers, or vectors.

AMX multiplies 16 times as fast as vectors of f32, but wants B in panels of k-groups. Packing B
costs the same whatever A has of rows, so a few rows are faster as vectors.
"""

from __future__ import annotations

from tilewright.support.dataclass import dataclass, replace
from tilewright.targets.cpu.dot.amx_tiles import tile_shape
from tilewright.targets.cpu.dot.panels import (
    ELEMENT_BYTES,
    Instruction,
    amx_multiply,
    multiply_2x2,
)
from tilewright.targets.cpu.dot.spec import DotSpec
from tilewright.targets.cpu.ops import AMX_UNIT, SPLIT_AMX_UNIT, UNIT_2X2

# By definition: the instructions of each operand type, and the vectors that panels are cut for.
_FEATURES = {2: "amx-bf16", 1: "amx-int8"}
_VECTOR_BYTES = 64

MIN_AMX_ROWS = 8
"""Rows of A from which AMX is the faster unit where B has to be packed for it.

Source: computed from measured rates (Emerald Rapids): packing a vector of 16 columns takes 1.3 ns
for each k, the multiply-adds of a row 0.16 ns. Several parts are packed one by one."""


MIN_2X2_ROWS = 2
"""Rows of A from which two rows by two columns are multiplied at once where a machine can.

Chosen, not measured: by the code that is emitted. Of one row half of each such product is
nobody's: its inner loop has 62 instructions for 512 bytes of B's panels, 32 of them `smmla`, and
68 with 32 `sdot`, which read A where it lies, where it has to be packed otherwise, with zeros
beside its row. Two rows take 62 as well, and 120 with `sdot`."""


@dataclass(frozen=True)
class UnitChoice:
    """The unit of a product; `why_not_amx` is empty where it is AMX."""

    spec: DotSpec
    why_not_amx: str = ""

    @property
    def name(self) -> str:
        """The unit in a reader's words."""
        return _NAMES[self.spec.multiply.instruction]


_NAMES = {
    Instruction.AMX: "AMX tiles",
    Instruction.FMA: "fused multiply-adds",
    Instruction.MULTIPLY_ADD: "multiplications and additions",
    Instruction.BF16_DOT: "bf16 pair products",
    Instruction.BF16_DOT_NEON: "bf16 pair products",
    Instruction.I8_DOT: "byte products in fours",
    Instruction.I8_DOT_NEON: "byte products in fours",
    Instruction.BF16_2X2_NEON: "2x2 bf16 products in fours",
    Instruction.I8_2X2_NEON: "2x2 byte products in eights",
    Instruction.I16_PAIRS: "pair products of widened bytes",
    Instruction.I32: "multiply-adds of widened bytes",
}


def unit_key(spec: DotSpec) -> str:
    """What the IR calls the unit of a product, and of the packing of its operands."""
    if spec.is_amx:
        return SPLIT_AMX_UNIT if spec.a_dtype == "f16" else AMX_UNIT
    return UNIT_2X2 if spec.is_2x2 else ""


def choose_unit(spec: DotSpec) -> UnitChoice:
    """The unit for the product of `spec`, and why it is not AMX where it is not."""
    reason = _why_not_amx(spec)
    if not reason:
        return UnitChoice(replace(spec, is_amx=True))
    return UnitChoice(replace(spec, is_2x2=_takes_2x2(spec)), reason)


def _takes_2x2(spec: DotSpec) -> bool:
    """Whether a product is one of two rows by two columns: the sums round as those of pairs do."""
    may_pair = spec.contract and spec.bf16_dot is not False
    has_2x2 = multiply_2x2(spec.a_dtype, spec.b_dtype, spec.unit) is not None
    return has_2x2 and spec.m >= MIN_2X2_ROWS and (may_pair or spec.a_dtype != "bf16")


def _why_not_amx(spec: DotSpec) -> str:
    multiply = amx_multiply(spec.a_dtype, spec.b_dtype)
    if multiply is None:
        return f"AMX multiplies bf16, f16 and bytes, not {spec.a_dtype}"
    width = ELEMENT_BYTES[multiply.a_element]
    feature = _FEATURES[width]
    if not {"amx-tile", feature} <= spec.features or spec.vector_bytes != _VECTOR_BYTES:
        return "the machine has no AMX, or its system does not permit it to this process"
    if spec.m < MIN_AMX_ROWS * multiply.parts:
        return f"for {spec.m} rows, packing B costs more than AMX saves"
    if tile_shape(spec.m, spec.n, spec.k, width) is None:
        return f"AMX's tiles do not cover {spec.m}x{spec.n}x{spec.k} exactly"
    return ""
