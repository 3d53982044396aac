"""The estimates that `explain` shows grow with what is done, and know the units."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.utils.test_value import create_ssa_value

from tilewright.ir.op import build
from tilewright.ir.types import f32
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.support.dataclass import replace
from tilewright.targets.cpu.dot.spec import DotSpec
from tilewright.targets.cpu.estimate import Estimate, nest_time, num_instructions, product_time

AMX = frozenset({"avx2", "fma", "avx512f", "amx-tile", "amx-bf16"})


def test_a_product_takes_its_multiply_adds() -> None:
    spec = DotSpec(64, 64, 64, "f32", "f32", AMX, 64)
    # 64³ products, 16 to a vector, two vectors a cycle.
    assert product_time(spec, ()) == Estimate(64**3 // 32, "arithmetic")
    assert product_time(replace(spec, vector_bytes=32), ()) == Estimate(64**3 // 16, "arithmetic")
    # Both operands, 4 bytes an element, 9 a cycle.
    packed = product_time(spec, ("A", "B"))
    assert packed.cycles == round(64**3 / 32 + 2 * 64 * 64 * 4 / 9)
    assert product_time(spec, (), (), count=5).cycles == 5 * 64**3 // 32


def test_a_product_of_few_rows_takes_its_bytes() -> None:
    spec = DotSpec(1, 64, 64, "f32", "f32", AMX, 64)
    # A from the arena at 32 bytes a cycle, B from the user's memory at 9.
    expected = Estimate(round(64 * 4 / 32 + 64 * 64 * 4 / 9), "memory")
    assert product_time(spec, (), ("B",)) == expected
    assert product_time(spec, ()).bound == "tiles"
    assert product_time(spec, ("B",)).bound == "packing"


@given(
    st.sampled_from(["f32", "bf16", "f16", "i8"]),
    st.tuples(*[st.sampled_from([16, 32, 64, 128])] * 3),
    st.sampled_from([(), ("A",), ("A", "B")]),
    st.booleans(),
)
def test_twice_the_depth_takes_twice_as_long(
    dtype: str, shape: tuple[int, int, int], packed: tuple[str, ...], is_amx: bool
) -> None:
    m, n, k = shape
    spec = DotSpec(m, n, 2 * k, dtype, dtype, AMX, 64, is_amx=is_amx and dtype != "f32")
    if spec.is_amx:
        spec = replace(spec, k=8 * k)  # halves of it are whole tiles of AMX, up to 64 deep
    in_place = tuple(name for name in ("A", "B") if name not in packed)
    once = product_time(replace(spec, k=spec.k // 2), packed, in_place)
    twice = product_time(spec, packed, in_place)
    assert twice.bound == once.bound
    assert twice.cycles == pytest.approx(2 * once.cycles, abs=1)


def test_amx_takes_tiles_of_16_by_16_by_32() -> None:
    spec = DotSpec(64, 64, 64, "bf16", "bf16", AMX, 64, is_amx=True)
    assert product_time(spec, ()).cycles == 4 * 4 * 2 * 32
    halves = DotSpec(64, 64, 64, "f16", "f16", AMX, 64, is_amx=True)
    assert product_time(halves, ()).cycles == 4 * product_time(spec, ()).cycles


def test_a_nest_takes_what_is_longer() -> None:
    computing = nest_time((64, 64), 16, 20, (0, 0))
    assert computing == Estimate(64 * 64 * 20 // 32, "arithmetic")
    assert nest_time((64, 64), 16, 1, (9000, 0)) == Estimate(1000, "memory")
    assert nest_time((64, 64), 16, 1, (0, 32000)) == Estimate(1000, "tiles")
    assert nest_time((1,), 1, 0, (0, 0)).cycles == 1


def test_functions_take_more_instructions_than_sums() -> None:
    x = create_ssa_value(f32)
    costs = {
        name: num_instructions(build(ELEMENTWISE[name], (x,) * arity, (f32,)))
        for name, arity in (("arith.addf", 2), ("math.exp2", 1), ("math.erf", 1), ("math.floor", 1))
    }
    assert costs["arith.addf"] == costs["math.floor"] == 1
    assert 1 < costs["math.exp2"] < costs["math.erf"]
