"""Random products of 1 to 32 warps: threads compute them to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from tests.fuzz.many_warps import generate_many_warps, product_kernel


def check(seed: int) -> None:
    """Hold the threads of one program to whole numbers."""
    program = generate_many_warps(seed)
    arguments, expected = program.arguments()
    product_kernel.simulate[(1,)](**arguments, **program.options)
    np.testing.assert_array_equal(arguments["c_ptr"], expected, str(program))


@pytest.mark.parametrize("seed", range(60))
def test_random_products_of_many_warps_agree(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 2000, 50))
def test_more_random_products_of_many_warps_agree(first: int) -> None:
    for seed in range(first, first + 50):
        check(seed)
