"""Products of blocks that the copy engine brings, in the simulator beside the interpreter."""

from __future__ import annotations

import pytest

from tests.unit.nvidia.descriptor_kernels import (
    SHAPES,
    attention,
    attention_arguments,
    matmul,
    matmul_transposed,
    operands,
    transposed,
)
from tests.unit.nvidia.descriptor_launching import check, count, lowered
from tilewright.ops.staging import ConvertLayoutOp, LocalLoadOp
from tilewright.targets.nvidia.emit import find_kernel
from tilewright.targets.nvidia.tma_ops import TmaLoadOp


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
        options = {"num_warps": num_warps}
        assert count(kernel, given, TmaLoadOp, **options) == 2
        assert count(kernel, given, LocalLoadOp, ConvertLayoutOp, **options) == 0


def test_small_products_are_right() -> None:
    arguments = operands(16, 32, 48, "float16", (16, 32, 16))
    check(matmul, (1, 1), *arguments, tolerance=1e-6)


def test_attention_over_descriptors_is_right() -> None:
    arguments = attention_arguments(128)
    check(attention, (2,), *arguments, tolerance=2e-3)
    assert count(attention, arguments, LocalLoadOp) == 0


def test_loads_of_one_iteration_start_together() -> None:
    function = find_kernel(lowered(attention, attention_arguments(128), {}).scheduled.module)
    names = [op.name for op in function.walk()]
    first = names.index("scf.for")
    loop = [name for name in names[first:] if name in ("ttng.tma_load", "ttng.tma_wait")]
    assert loop == ["ttng.tma_load", "ttng.tma_load", "ttng.tma_wait", "ttng.tma_wait"]
