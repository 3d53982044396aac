"""Products of blocks that the copy engine brings, in the simulator beside the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.targets.nvidia.descriptor_kernels import (
    SHAPES,
    attention,
    attention_arguments,
    described,
    matmul,
    matmul_persistent,
    matmul_transposed,
    numbers,
    operands,
    transposed,
    weighted,
)
from tests.unit.targets.nvidia.descriptor_launching import check, count, lowered
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.ops.staging import ConvertLayoutOp, LocalLoadOp
from tilewright.targets.nvidia.tma_ops import InitBarriersOp, TmaLoadOp, TmaWaitOp


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(("size", "blocks"), SHAPES)
def test_products_of_loaded_blocks_are_right(
    size: tuple[int, int, int], blocks: tuple[int, int, int], dtype: str
) -> None:
    grid = (-(-size[0] // blocks[0]), -(-size[1] // blocks[1]))
    arguments = operands(*size, dtype, blocks)
    check(matmul, grid, *arguments, tolerance=1e-6)
    check(matmul_transposed, grid, *transposed(arguments), tolerance=1e-6)


@pytest.mark.parametrize("dtype", ["float8_e5m2", "float8_e4m3fn", "float32"])
def test_products_along_k_are_right_for_every_width(dtype: str) -> None:
    arguments = operands(64, 64, 128, dtype, (64, 64, 64))
    check(matmul_transposed, (1, 1), *transposed(arguments), tolerance=1e-6)
    check(matmul, (1, 1), *arguments, tolerance=1e-6)


@pytest.mark.parametrize("num_warps", [4, 8])
def test_operands_of_wgmma_land_where_it_reads_them(num_warps: int) -> None:
    arguments = operands(128, 128, 128, "float16", (128, 128, 64))
    for kernel, given in ((matmul, arguments), (matmul_transposed, transposed(arguments))):
        options = {"num_warps": num_warps, "num_stages": 1}
        assert count(kernel, given, TmaLoadOp, **options) == 2
        assert count(kernel, given, LocalLoadOp, ConvertLayoutOp, **options) == 0


def test_small_products_are_right() -> None:
    arguments = operands(16, 32, 48, "float16", (16, 32, 16))
    check(matmul, (1, 1), *arguments, tolerance=1e-6)


def test_attention_over_descriptors_is_right() -> None:
    arguments = attention_arguments(128)
    check(attention, (2,), *arguments, tolerance=2e-3)
    assert count(attention, arguments, LocalLoadOp) == 0


PLAIN = {"num_stages": 1}
"""No loads ahead: by itself attention with a head of 64 has two slots for each."""


def test_loads_of_one_iteration_start_together() -> None:
    function = find_kernel(lowered(attention, attention_arguments(128), PLAIN).scheduled.module)
    names = [op.name for op in function.walk()]
    first = names.index("scf.for")
    loop = [name for name in names[first:] if name in ("ttng.tma_load", "ttng.tma_wait")]
    assert loop == ["ttng.tma_load", "ttng.tma_load", "ttng.tma_wait", "ttng.tma_wait"]


def barriers(function: FuncOp) -> list[list[int | None]]:
    """For each mbarrier of a kernel what the loads that it counts announce, in their order."""
    found: list[list[int | None]] = []
    for op in function.walk():
        if isinstance(op, InitBarriersOp):
            found = [[] for _ in range(op.count.value.data)]
        if isinstance(op, TmaLoadOp):
            announced = op.announced_bytes
            found[op.barrier.value.data].append(announced and announced.value.data)
    return found


def test_loads_that_are_waited_for_together_share_an_mbarrier() -> None:
    arguments = operands(128, 256, 128, "float16", (128, 256, 64))
    options = {"num_warps": 8, "num_stages": 1}
    function = find_kernel(lowered(matmul, arguments, options).scheduled.module)
    assert barriers(function) == [[(128 * 64 + 64 * 256) * 2, None]]
    (wait,) = [op for op in function.walk() if isinstance(op, TmaWaitOp)]
    assert len(wait.tokens) == 2


def test_loads_that_are_waited_for_apart_have_mbarriers_of_their_own() -> None:
    function = find_kernel(lowered(attention, attention_arguments(128), PLAIN).scheduled.module)
    loads = barriers(function)
    assert len(loads) == 3 and all(len(own) == 1 and own[0] for own in loads)


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("n", [0, 8, 17, 40])
def test_tiles_read_between_two_waits_are_right(n: int, num_warps: int) -> None:
    blocks = [(16, 8), (16, 8), (8, 16), (16, 8)]
    shapes = [(24, 40), (24, 40), (40, 24), (24, 8)]
    pairs = zip(shapes, blocks, strict=True)
    tensors = [described(numbers(shape, "float32"), block) for shape, block in pairs]
    check(weighted, (2,), *tensors, n, 16, 8, num_warps=num_warps)
    function = find_kernel(lowered(weighted, [*tensors, n, 16, 8], {}).scheduled.module)
    assert [len(own) for own in barriers(function)] == [2, 1]


@pytest.mark.parametrize("k", [0, 64, 192])
def test_a_persistent_product_keeps_the_phase_from_tile_to_tile(k: int) -> None:
    a, b = numbers((128, 192), "float16", 4), numbers((192, 192), "float16", 4)
    c = np.zeros((128, 192), np.float32)
    blocks = ((64, 64), (64, 64), (64, 64))
    tensors = [described(x, block) for x, block in zip((a, b, c), blocks, strict=True)]
    check(matmul_persistent, (4,), *tensors, 128, 192, k, 64, 64, 64, tolerance=1e-6)
