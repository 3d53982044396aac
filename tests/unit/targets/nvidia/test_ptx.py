"""PTX that ptxas would get wrong is not written."""

from __future__ import annotations

import re

import pytest

from tilewright.machine.gpus import SM_90A
from tilewright.targets.nvidia.ptx import to_ptx
from tilewright.targets.nvidia.ptxas_defects import avoid_ptxas_defects

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
    ptx = to_ptx(text, SM_90A)
    assert re.search(expected, ptx), ptx
    assert "abs.bf16" not in ptx


def kernel(*instructions: str) -> str:
    body = "".join(f"\t{text};\n" for text in instructions)
    return f".visible .entry k()\n{{\n\t.reg .b32 %r<9>;\n{body}\tret;\n}}\n"


@pytest.mark.parametrize(
    "use",
    [
        "and.b16 \t%rs2, %rs1, 0x7FFF",
        "cvt.u16.u8 \t%rs2, %rs1",
        "mov.b16 \t%rs2, %rs1",
        "selp.b16 \t%rs2, %rs1, %rs3, %p1",
    ],
)
@pytest.mark.parametrize("conversion", ["rn.bf16", "rz.bf16", "rn.f16"])
def test_a_half_whose_bits_are_used_is_converted_in_a_pair(conversion: str, use: str) -> None:
    mode, kind = conversion.split(".")
    given = kernel(f"cvt.{conversion}.f32 \t%rs1, %r2", use, "st.global.b16 \t[%rd1], %rs1")
    text = avoid_ptxas_defects(given)
    assert f"cvt.{mode}.{kind}x2.f32 %tw_pair0, 0f00000000, %r2;" in text
    assert "cvt.u16.u32 %rs1, %tw_pair0;" in text
    assert f"cvt.{conversion}.f32" not in text and use in text


def test_bits_that_are_asked_for_behind_a_widening_count() -> None:
    given = kernel("cvt.rn.bf16.f32 \t%rs1, %r2", "cvt.u32.u16 \t%r3, %rs1",
                   "and.b32 \t%r4, %r3, 127")  # fmt: skip
    assert "%tw_pair0" in avoid_ptxas_defects(given)


def test_a_half_that_two_ways_write_has_a_pair_on_each() -> None:
    given = kernel("cvt.rn.bf16.f32 \t%rs1, %r2", "cvt.rn.bf16.f32 \t%rs1, %r3",
                   "and.b16 \t%rs2, %rs1, 127")  # fmt: skip
    text = avoid_ptxas_defects(given)
    assert text.count(".reg .b32 %tw_pair0;") == text.count(".reg .b32 %tw_pair1;") == 1


def test_a_half_that_stays_whole_is_converted_by_itself() -> None:
    given = kernel(
        "cvt.rn.bf16.f32 \t%rs1, %r2", "cvt.rn.bf16.f32 \t%rs2, %r3",
        "mov.b32 \t%r4, {%rs1, %rs2}", "cvt.u32.u16 \t%r5, %rs1", "shl.b32 \t%r6, %r5, 16",
        "fma.rn.bf16 \t%rs3, %rs1, %rs2, %rs2", "@%p1 st.global.b16 \t[%rd1], %rs1",
    )  # fmt: skip
    assert avoid_ptxas_defects(given) == given


def test_the_absolute_value_of_float32_stays_an_instruction() -> None:
    assert "abs.f32" in to_ptx(_ABS.format(type="float", name="f32"), SM_90A)
