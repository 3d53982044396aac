"""`triton.tools.mxfp` against ml_dtypes, which has the formats of the OCP specification."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from triton.tools.mxfp import MXFP4Tensor, MXScaleTensor, fp8e8m0_to_float32

import torch

pytestmark = pytest.mark.torch


def test_e2m1_rounds_as_the_format_says(rng: np.random.Generator) -> None:
    values = np.concatenate([rng.normal(0, 3, 1000), np.arange(-8, 8, 0.25), [0.0, -0.0]])
    values = values.astype(np.float32)
    found = MXFP4Tensor(torch.from_numpy(values))
    expected = np.clip(values, -6, 6).astype(ml_dtypes.float4_e2m1fn)
    np.testing.assert_array_equal(found.to(torch.float32).numpy(), expected.astype(np.float32))
    np.testing.assert_array_equal(np.signbit(found.to(torch.float32).numpy()), np.signbit(values))


def test_e2m1_saturates_and_has_no_nan() -> None:
    values = torch.tensor([7.0, -1e9, float("inf"), -float("inf"), float("nan")])
    assert MXFP4Tensor(values).to(torch.float32).tolist() == [6, -6, 6, -6, 0]
    assert MXFP4Tensor(torch.tensor([])).to(torch.float16).numel() == 0


@pytest.mark.parametrize(("shape", "dim"), [((8,), 0), ((7, 5), 1), ((4, 3, 6), 1), ((1,), 0)])
def test_two_codes_are_packed_in_a_byte_and_found_again(shape: tuple[int, ...], dim: int) -> None:
    tensor = MXFP4Tensor(size=shape).random()
    packed = tensor.to_packed_tensor(dim)
    assert packed.shape[dim] == -(-shape[dim] // 2)
    first = packed.select(dim, 0)
    assert torch.equal(first & 15, tensor.data.select(dim, 0))
    assert torch.equal(tensor.unpack_packed_tensor(packed, dim, shape), tensor.data)
    assert torch.equal(MXFP4Tensor(tensor.to(torch.float32)).data, tensor.data)
    with pytest.raises(AssertionError):
        tensor.to_packed_tensor(len(shape))


def test_e8m0_is_every_power_of_two() -> None:
    codes = torch.arange(256, dtype=torch.int16).to(torch.uint8)
    expected = codes.numpy().view(ml_dtypes.float8_e8m0fnu).astype(np.float32)
    for given in (codes, codes.view(torch.int8)):
        np.testing.assert_array_equal(fp8e8m0_to_float32(given).numpy(), expected)
    back = MXScaleTensor(torch.from_numpy(expected))
    np.testing.assert_array_equal(back.data.numpy(), codes.numpy())


def test_scales_are_the_power_of_two_below_and_only_of_positive_numbers() -> None:
    values = torch.tensor([1.0, 1.5, 3.9, 0.0, -1.0, float("nan"), float("inf")])
    assert MXScaleTensor(values).data.tolist() == [127, 127, 128, 255, 255, 255, 255]
    few = MXScaleTensor(size=(1000,)).random(low=0.25, high=4.0).to(torch.float32)
    assert set(few.tolist()) == {0.25, 0.5, 1.0, 2.0, 4.0}
    assert (MXScaleTensor(size=500).random().data != 255).all()
    with pytest.raises(ValueError, match="size"):
        MXScaleTensor()
