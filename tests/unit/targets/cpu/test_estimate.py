"""The estimates that `explain` shows grow with what is done, and know the units."""

from __future__ import annotations

from tilewright.support.dataclass import replace
from tilewright.targets.cpu.dot.spec import DotSpec
from tilewright.targets.cpu.estimate import nest_cycles, product_cycles

AMX = frozenset({"avx2", "fma", "avx512f", "amx-tile", "amx-bf16"})


def test_a_product_takes_its_multiply_adds() -> None:
    spec = DotSpec(64, 64, 64, "f32", "f32", AMX, 64)
    # 64³ products, 16 to a vector, two vectors a cycle.
    assert product_cycles(spec, ()) == 64**3 // 32
    assert product_cycles(replace(spec, vector_bytes=32), ()) == 64**3 // 16
    # Both operands, 4 bytes an element, 9 a cycle.
    assert product_cycles(spec, ("A", "B")) == round(64**3 / 32 + 2 * 64 * 64 * 4 / 9)


def test_amx_takes_tiles_of_16_by_16_by_32() -> None:
    spec = DotSpec(64, 64, 64, "bf16", "bf16", AMX, 64, is_amx=True)
    assert product_cycles(spec, ()) == 4 * 4 * 2 * 32
    halves = DotSpec(64, 64, 64, "f16", "f16", AMX, 64, is_amx=True)
    assert product_cycles(halves, ()) == 4 * product_cycles(spec, ())


def test_a_nest_takes_what_is_longer() -> None:
    assert nest_cycles((64, 64), 16, 20, (0, 0)) == 64 * 64 * 20 // 32
    assert nest_cycles((64, 64), 16, 1, (9000, 0)) == 1000
    assert nest_cycles((64, 64), 16, 1, (0, 32000)) == 1000
    assert nest_cycles((1,), 1, 0, (0, 0)) == 1
