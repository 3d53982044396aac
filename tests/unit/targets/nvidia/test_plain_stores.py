"""Products whose loads the copy engine makes and whose stores threads make, launch by launch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.targets.nvidia.bulk_kernels import product
from tests.unit.targets.nvidia.persistent_kernels import run_on, scheduled_for
from tilewright.ops.descriptors.ir import DescriptorStoreOp
from tilewright.ops.function import find_kernel
from tilewright.ops.memory.ir import StoreOp
from tilewright.ops.roles import find_roles
from tilewright.runtime.launch_numbers import fits, launch_guards, plainer_options
from tilewright.support.options import CompileOptions
from tilewright.targets.nvidia.simulated import launch_words

LARGE = {"BM": 128, "BN": 128, "BK": 64, "GROUP": 2}
LOADS = {**LARGE, "bulk_access": "loads"}


def launch_of(m: int, n: int, k: int, c_row: int = 0, b_row: int = 0):
    """Arguments with B by columns, the grid, C in its rows, and what belongs there."""
    rng = np.random.default_rng(m + n + k)
    b_row, c_row = b_row or k, c_row or n
    a = rng.integers(-3, 4, (m, k)).astype(np.float16)
    b = rng.integers(-3, 4, (n, b_row)).astype(np.float16)
    c = np.full((m, c_row), 9, np.float16)
    right = c.copy()
    right[:, :n] = a.astype(np.float32) @ b[:, :k].T.astype(np.float32)
    grid = (-(-m // 128) * -(-n // 128), 1, 1)
    return (a, b, c, m, n, k, k, 1, 1, b_row, c_row), grid, c, right


def plainer(args: tuple[object, ...], grid: tuple[int, int, int]) -> list[str]:
    """What a launch asks of the copy engine, from the most to what it gets."""
    found, _, values = scheduled_for(product, args, 2, LARGE)
    words = launch_words(values)
    if fits(found.metadata, grid, words):
        return ["auto"]
    others = plainer_options(CompileOptions(), found.metadata, grid, words)
    return ["auto", *(options.bulk_access for options in others)]


@pytest.mark.parametrize(
    ("m", "n", "k", "c_row", "options"),
    [
        (200, 261, 136, 261, {}),
        (17, 129, 8, 132, {"num_consumer_groups": 2}),
        (130, 261, 72, 263, {"BN": 256, "num_warps": 8}),
        (257, 33, 200, 35, {"BN": 256, "num_warps": 8, "num_stages": 3}),
    ],
)
def test_rows_of_any_length_are_stored_by_threads_in_roles(m, n, k, c_row, options):
    args, grid, c, right = launch_of(m, n, k, c_row)
    if options.get("BN") == 256:
        grid = (-(-m // 128) * -(-n // 256), 1, 1)
    ran = run_on(2, product, grid, args, **{**LOADS, **options})
    kernel = find_kernel(ran.module)
    assert find_roles(kernel) is not None and ran.metadata["most_programs"] == 2
    assert not any(isinstance(op, DescriptorStoreOp) for op in kernel.walk())
    assert any(isinstance(op, StoreOp) for op in kernel.walk())
    np.testing.assert_array_equal(c, right)


@pytest.mark.parametrize(("n", "stores"), [(136, True), (133, False)])
def test_a_simulation_has_the_remarks_of_the_kernel_that_ran(n, stores):
    args, grid, c, right = launch_of(130, n, 72)
    remarks = "\n".join(product.simulate[grid](*args, **LARGE).remarks)
    assert "runs as roles" in remarks
    assert ("the copy engine makes the store" in remarks) is stores
    np.testing.assert_array_equal(c, right)


def test_neighbours_that_share_blocks_may_both_store_the_last_tile():
    """Three tiles for two programs that load for each other."""
    args, _, c, right = launch_of(100, 601, 136)
    ran = run_on(2, product, (3, 1, 1), args, **{**LOADS, "BN": 256, "num_warps": 8})
    assert ran.metadata["cluster"] == 2
    np.testing.assert_array_equal(c, right)


@pytest.mark.parametrize(
    ("c_row", "b_row", "k", "taken"),
    [
        (264, 136, 136, ["auto"]),
        (261, 136, 136, ["auto", "loads", "never"]),
        (261, 137, 136, ["auto", "never"]),
        (264, 140, 136, ["auto", "never"]),
    ],
)
def test_a_launch_takes_what_it_allows(c_row: int, b_row: int, k: int, taken: list[str]):
    args, grid, *_ = launch_of(200, 261, k, c_row, b_row)
    assert plainer(args, grid) == taken


def test_what_loads_demand_is_not_of_the_stores_alone():
    """One extent of the loads and of the store, and a row of the store alone."""
    args, *_ = launch_of(200, 261, 136, 261)
    found, _, _ = scheduled_for(product, args, 2, LARGE)
    of_stores = {guard.text for guard in launch_guards(found.metadata) if guard.of_stores}
    assert "c_row is a multiple of 8" in of_stores
    assert not any(text.startswith(("M is", "N is", "a_row")) for text in of_stores)
    alone, _, _ = scheduled_for(product, args, 2, LOADS)
    assert not any(guard.of_stores for guard in launch_guards(alone.metadata))


@pytest.mark.parametrize(("m", "n", "k"), [(130, 131, 72), (64, 257, 136)])
def test_a_simulated_launch_takes_what_fits(m: int, n: int, k: int):
    args, grid, c, right = launch_of(m, n, k)
    product.simulate[grid](*args, **LARGE)
    np.testing.assert_array_equal(c, right)


def test_an_author_who_says_how_it_runs_is_asked_for_nothing_else():
    options = CompileOptions()
    assert options.with_plain_stores() == replace(options, bulk_access="loads")
    for said in ({"schedule": "roles load | math"}, {"bulk_access": "always"}, {"plan": "x"}):
        assert options.replaced(said).with_plain_stores() is None
