"""The host's side of `triton` on a GPU: cuBLAS, slices through descriptors, the active driver."""

from __future__ import annotations

import importlib

import pytest

from tests.api import alias as _alias  # noqa: F401 - puts `triton` on the path
from tests.api.test_triton_layouts import copy_slice

import triton  # isort: skip
from triton.tools.ragged_tma import create_ragged_descriptor  # isort: skip

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float8_e4m3fn"])
@pytest.mark.parametrize("shape", [(64, 32, 48), (128, 256, 64)])
def test_products_of_cublas_equal_torchs(torch, dtype: str, shape: tuple[int, int, int]) -> None:
    (m, n, k), element = shape, getattr(torch, dtype)
    generator = torch.Generator("cuda").manual_seed(1)
    a, b = (
        torch.randint(-2, 3, size, device="cuda", generator=generator).to(element)
        for size in ((m, k), (n, k))
    )
    c = torch.zeros((m, n), device="cuda", dtype=element)
    workspace = torch.empty(32 << 20, device="cuda", dtype=torch.int8)
    cublas = importlib.import_module("triton._C.libtriton.nvidia").cublas
    cublas.CublasLt(workspace).matmul(a, b, c)
    expected = (a.float() @ b.float().T).to(element).float()
    torch.testing.assert_close(c.float(), expected, atol=0, rtol=0)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(
    ("shape", "block", "dim"),
    [((65, 80), (32, 64), 0), ((24, 16, 32), (16, 16, 32), 0), ((24, 17, 32), (32, 16, 32), 1)],
)
def test_blocks_end_with_their_slice(torch, shape, block, dim: int, dtype: str) -> None:
    x = torch.randn(shape, device="cuda").to(getattr(torch, dtype))
    source = create_ragged_descriptor(x, block, dim)
    for n, first, x_row in ((9, 0, 3), (1, 0, 0), (12, 5, shape[dim] - 12)):
        y, y_row = torch.zeros_like(x), (shape[dim] - n) // 2
        target = create_ragged_descriptor(y, block, dim)
        copy_slice[(1,)](source, target, x_row, y_row, n, first, dim, len(shape))
        rows = min(n - first, block[dim])
        near = [slice(0, extent) for extent in block]
        expected, taken = torch.zeros_like(x), [*near]
        near[dim] = slice(y_row + first, y_row + first + rows)
        taken[dim] = slice(x_row + first, x_row + first + rows)
        expected[tuple(near)] = x[tuple(taken)]
        assert torch.equal(y, expected)


def test_the_driver_of_the_gpu_is_the_active_one(torch) -> None:
    active = [name for name, b in triton.backends.backends.items() if b.driver.is_active()]
    assert active == ["nvidia"]
