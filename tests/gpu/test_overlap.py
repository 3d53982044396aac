"""Loads and stores of one program that overlap, on a GPU beside the interpreter."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.gpu.test_descriptors import check
from tests.unit.codegen.simt import test_overlap as tiles
from tests.unit.codegen.simt.launching import random_array
from tests.unit.targets.nvidia import test_overlap as blocks
from tests.unit.targets.nvidia.descriptor_kernels import described, numbers

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]


@pytest.mark.parametrize("num_warps", [1, 4, 8])
@pytest.mark.parametrize("size", [4, 16, 64])
@pytest.mark.parametrize("kernel", tiles.KERNELS, ids=lambda kernel: kernel.__name__)
def test_what_overlaps_is_read_first(
    torch: ModuleType, kernel: object, size: int, num_warps: int
) -> None:
    for dtype in tiles.DTYPES:
        x = random_array((max(size * size, 32 * size) + size,), dtype)
        check(torch, kernel, (1,), x, size, num_warps=num_warps)


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("size", [4, 32, 128])
def test_loops_states_and_widths(torch: ModuleType, size: int, num_warps: int) -> None:
    x = random_array((size * size * 4,), "float32")
    new = random_array((size * 2,), "float32")
    options = {"num_warps": num_warps}
    check(torch, tiles.walked, (1,), x, 5, size, **options)
    check(torch, tiles.state, (1,), x, new, size, **options)
    check(torch, tiles.widened, (1,), random_array((2 * size,), "float16"), size, **options)
    check(torch, tiles.narrowed, (1,), random_array((size,), "float32"), size, **options)


@pytest.mark.parametrize("num_warps", [1, 4, 8])
@pytest.mark.parametrize(("size", "dtype"), [(16, "float32"), (32, "int8"), (64, "float16")])
def test_a_block_is_read_before_it_is_overwritten(
    torch: ModuleType, size: int, dtype: str, num_warps: int
) -> None:
    options = {"num_warps": num_warps}
    x = described(numbers((size, size), dtype), (size, size))
    check(torch, blocks.transpose_in_place, (1,), x, size, **options)
    x = described(numbers((2 * size, size), dtype), (size, size))
    check(torch, blocks.swap_blocks, (1,), x, size, **options)
    x = numbers((size + 16, size + 16), dtype)
    check(torch, blocks.made_in_place, (1,), x, size + 16, size, **options)
