"""Large products run as roles where nobody asks; smaller ones, and what is said, stay."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.targets.nvidia.bulk_kernels import biased, half_described, product, updated
from tests.unit.targets.nvidia.persistent_kernels import blocks, run_on, scheduled_for
from tilewright import JITFunction
from tilewright.ops.function import find_kernel
from tilewright.ops.roles import find_roles
from tilewright.runtime.launch_numbers import fits
from tilewright.targets.nvidia.simulated import launch_words

LARGE = {"BM": 128, "BN": 128, "BK": 64, "GROUP": 2}


def launch_of(kernel: JITFunction, m: int, n: int, k: int, *more: object):
    """Arguments, grid, the result's array and what belongs there."""
    rng = np.random.default_rng(m + n + k)
    a = rng.integers(-3, 4, (m, k)).astype(np.float16)
    b = rng.integers(-3, 4, (k, n)).astype(np.float16)
    c = np.full((m, n), 9, np.float16)
    strides = () if kernel is blocks else (k, 1, n, 1, n)
    right = (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)
    return (a, b, c, m, n, k, *strides), (-(-m // 128) * -(-n // 128), 1, 1), c, right


@pytest.mark.parametrize("kernel", [blocks, product], ids=["descriptors", "pointers"])
@pytest.mark.parametrize("options", [{}, {"num_stages": 3}, {"num_warps": 8, "num_stages": 4}])
def test_a_large_product_runs_as_roles_and_stays_on_its_sms(
    kernel: JITFunction, options: dict[str, int]
):
    args, grid, c, right = launch_of(kernel, 520, 264, 136)
    ran = run_on(3, kernel, grid, args, **LARGE, **options)
    assert find_roles(find_kernel(ran.module)) is not None
    assert ran.metadata["most_programs"] == 3
    np.testing.assert_array_equal(c, right)


@pytest.mark.parametrize("padding", [0, 1], ids=["stored by the engine", "stored by threads"])
def test_what_is_loaded_once_a_tile_does_not_keep_a_product_from_its_roles(padding: int):
    args, grid, c, right = launch_of(product, 200, 264, 136)
    a, b, _, m, n, *rest = args
    bias = np.arange(n, dtype=np.float16) % 7
    c = np.zeros((m, n + padding), np.float16)
    rest[-1] = n + padding
    options = {**LARGE, "bulk_access": "loads" if padding else "auto"}
    ran = run_on(2, biased, grid, (a, b, c, bias, m, n, *rest), **options)
    assert find_roles(find_kernel(ran.module)) is not None
    assert ran.metadata["most_programs"] == 2
    expected = (right.astype(np.float32) + bias.astype(np.float32)).astype(np.float16)
    np.testing.assert_array_equal(c[:, :n], expected)


@pytest.mark.parametrize(
    ("loads", "access", "padding"),
    [(True, "auto", 0), (False, "auto", 0), (False, "auto", 8), (True, "loads", 1)],
    ids=["loads", "store", "store of wider rows", "loads, and rows that are no block"],
)
def test_half_of_a_large_product_through_descriptors_is_enough(
    loads: bool, access: str, padding: int
):
    (a, b, _, m, n, k, *_), grid, _, right = launch_of(blocks, 264, 328, 136)
    c = np.full((m, n + padding), 9, np.float16)
    args = (a, b, c, m, n, k, n + padding)
    options = {**LARGE, "LOADS": loads, "bulk_access": access}
    ran = run_on(2, half_described, grid, args, **options)
    assert find_roles(find_kernel(ran.module)) is not None
    assert ran.metadata["most_programs"] == 2
    np.testing.assert_array_equal(c[:, :n], right)
    assert (c[:, n:] == 9).all()


def test_a_store_through_pointers_that_is_no_block_is_not_taken_for_one():
    """The launch keeps to no guard of such rows, and takes the kernel whose threads store."""
    (a, b, _, m, n, k, *_), *_ = launch_of(blocks, 264, 328, 136)
    c = np.zeros((m, n + 1), np.float16)
    found, _, values = scheduled_for(
        half_described, (a, b, c, m, n, k, n + 1), 2, {**LARGE, "LOADS": True}
    )
    assert not fits(found.metadata, (9, 1, 1), launch_words(values))


@pytest.mark.parametrize(
    "options",
    [
        {"BM": 64},
        {"BN": 64},
        {"BM": 256, "BN": 256, "num_warps": 8},
        {"num_stages": 1},
        {"maxnreg": 128},
        {"cluster_dims": (2, 1, 1)},
        {"bulk_access": "never"},
        {"descriptors": "pointers"},
    ],
)
def test_other_tiles_and_what_is_said_have_no_roles(options: dict[str, object]):
    args, *_ = launch_of(product, 520, 264, 136)
    found, _, _ = scheduled_for(product, args, 3, {**LARGE, **options})
    assert find_roles(find_kernel(found.module)) is None
    assert found.metadata["most_programs"] == 0


def test_what_the_engine_does_not_move_is_loaded_as_before():
    """Columns of `c` that are no rows of it: nothing of the kernel changes, unless it is asked."""
    args, *_ = launch_of(product, 520, 264, 136)
    odd = (*args[:10], 265)
    found, _, _ = scheduled_for(product, odd, 3, {**LARGE, "num_warps": 8})
    assert found.metadata["most_programs"] in (0, 3)
    block = [np.zeros((512, 512), np.float16) for _ in range(2)]
    kept, _, _ = scheduled_for(updated, (*block, 2), 3, {"BLOCK": 128, "SAME": True})
    assert find_roles(find_kernel(kept.module)) is None
    assert kept.metadata["tensor_maps"] == []
