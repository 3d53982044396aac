"""PTX that ptxas would get wrong is not written."""

from __future__ import annotations

import re

import pytest

from tilewright.targets.nvidia.ptx import to_ptx

_ABS = """
declare {type} @llvm.fabs.{name}({type})

define ptx_kernel void @k(ptr addrspace(1) %p) {{
  %x = load {type}, ptr addrspace(1) %p
  %y = call {type} @llvm.fabs.{name}({type} %x)
  store {type} %y, ptr addrspace(1) %p
  ret void
}}
"""
_NARROWED = """
declare float @llvm.fabs.f32(float)

define ptx_kernel void @k(ptr addrspace(1) %p) {
  %x = load bfloat, ptr addrspace(1) %p
  %wide = fpext bfloat %x to float
  %y = call float @llvm.fabs.f32(float %wide)
  %z = fptrunc float %y to bfloat
  store bfloat %z, ptr addrspace(1) %p
  ret void
}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (_ABS.format(type="bfloat", name="bf16"), r"and\.b16 \t%rs\d+, %rs\d+, 0x7FFF;"),
        (_ABS.format(type="<2 x bfloat>", name="v2bf16"), r"and\.b32 \t%r\d+, %r\d+, 0x7FFF7FFF;"),
        (_NARROWED, r"and\.b16 \t%rs\d+, %rs\d+, 0x7FFF;"),
    ],
    ids=["scalar", "pair", "narrowed"],
)
def test_the_absolute_value_of_bfloat16_clears_a_bit(text: str, expected: str) -> None:
    ptx = to_ptx(text, {"arch": "sm_90a"})
    assert re.search(expected, ptx), ptx
    assert "abs.bf16" not in ptx


def test_the_absolute_value_of_float32_stays_an_instruction() -> None:
    assert "abs.f32" in to_ptx(_ABS.format(type="float", name="f32"), {"arch": "sm_90a"})
