"""Random products of 1 to 32 warps on a GPU: whole numbers to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

import torch
from tests.fuzz.many_warps import generate_many_warps, product_kernel

pytestmark = pytest.mark.gpu


def on_device(argument: object) -> object:
    """An array as a tensor of the GPU; a dtype of ml_dtypes goes by its bits."""
    if not isinstance(argument, np.ndarray):
        return argument
    if argument.dtype.kind != "V":
        return torch.from_numpy(argument).cuda()
    bits = argument.view(f"i{argument.dtype.itemsize}")
    return torch.from_numpy(bits).cuda().view(getattr(torch, argument.dtype.name))


@pytest.mark.parametrize("first", range(3000, 3160, 16))
def test_random_products_of_many_warps_agree(first: int) -> None:
    for seed in range(first, first + 16):
        program = generate_many_warps(seed)
        arguments, expected = program.arguments()
        given = {name: on_device(value) for name, value in arguments.items()}
        product_kernel[(1,)](**given, **program.options)
        found = given["c_ptr"]
        assert isinstance(found, torch.Tensor)
        np.testing.assert_array_equal(found.cpu().numpy(), expected, str(program))
