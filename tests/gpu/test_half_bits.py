"""Bits of 16-bit floats on the GPU: what assemblers got wrong stays right."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
import torch

pytestmark = pytest.mark.gpu


@tilewright.jit
def masked_bits(x_ptr, out_ptr, MASK: tl.constexpr, HALF: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    half = (tl.load(x_ptr + i) * 3).to(HALF)
    tl.store(out_ptr + i, half.to(tl.int16, bitcast=True) & MASK)


@tilewright.jit
def magnitude(x_ptr, flag_ptr, out_ptr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + i) if tl.load(flag_ptr) > 0 else tl.load(x_ptr + (i ^ 0))
    tl.store(out_ptr + i, tl.abs(x))


@tilewright.jit
def magnitude_of_sum(x_ptr, out_ptr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.abs(x + x))


@pytest.mark.parametrize("half", ["bfloat16", "float16"])
@pytest.mark.parametrize("mask", [0x7FFF, 0x0FFF, 0x7F80, 0x00FF, 0x0001])
def test_a_mask_keeps_just_its_bits(half: str, mask: int) -> None:
    x = torch.randn(4096, device="cuda")
    out = torch.zeros(4096, dtype=torch.int16, device="cuda")
    masked_bits[(4,)](x, out, MASK=mask, HALF=getattr(tl, half), B=1024)
    expected = (x * 3).to(getattr(torch, half)).view(torch.int16) & mask
    np.testing.assert_array_equal(out.cpu().numpy(), expected.cpu().numpy())


@pytest.mark.parametrize("half", ["bfloat16", "float16"])
@pytest.mark.parametrize("flag", [0, 1])
def test_no_sign_is_left_in_a_magnitude(half: str, flag: int) -> None:
    x = torch.randn(4096, device="cuda").to(getattr(torch, half))
    out = torch.zeros_like(x)
    magnitude[(4,)](x, torch.tensor([flag], device="cuda"), out, B=1024)
    assert torch.equal(out, x.abs())
    magnitude_of_sum[(4,)](x, out, B=1024)
    assert torch.equal(out, (x + x).abs())
