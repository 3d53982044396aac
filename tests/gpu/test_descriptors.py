"""Tensor descriptors by the copy engine of a real GPU, beside the CPU and torch."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.targets.nvidia import descriptor_kernels as cases
from tests.unit.targets.nvidia.descriptor_launching import interpreted
from tilewright.runtime.tensor_descriptor import TensorDescriptor
from tilewright.support.errors import ArgumentNotSupported

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]

DTYPES = ["int8", "float16", "bfloat16", "float32", "int32", "float64", "int64", "float8_e5m2"]


def described(tensor: object, block: Sequence[int], padding: str = "zero") -> TensorDescriptor:
    """The descriptor of a whole tensor."""
    return TensorDescriptor.from_tensor(tensor, tuple(block), padding)


def on_gpu(torch: ModuleType, argument: object) -> object:
    """An argument with its array on the GPU."""
    if isinstance(argument, TensorDescriptor):
        tensor = on_gpu(torch, argument.base)
        a = argument
        return TensorDescriptor(tensor, a.shape, a.strides, a.block_shape, a.padding)
    if not isinstance(argument, np.ndarray):
        return argument
    if argument.dtype.isbuiltin == 1:
        return torch.from_numpy(argument).cuda()
    # A dtype of ml_dtypes goes by its bits.
    bits = argument.view(f"u{argument.itemsize}")
    return torch.from_numpy(bits).cuda().view(getattr(torch, argument.dtype.name))


def array_of(argument: object) -> np.ndarray | None:
    """What an argument holds, as an array."""
    base = argument.base if isinstance(argument, TensorDescriptor) else argument
    if hasattr(base, "cpu"):
        return base.cpu().numpy()
    return base if isinstance(base, np.ndarray) else None


def check(
    torch: ModuleType, kernel: object, grid: tuple[int, ...], *arguments: object, **options: object
) -> None:
    """Assert that the GPU leaves what the interpreter leaves, bit for bit, launch after launch."""
    expected = interpreted(kernel, grid, arguments, **options)
    for _ in range(3):
        found = [on_gpu(torch, argument) for argument in arguments]
        kernel[grid](*found, **options)
        for ours, theirs in zip(map(array_of, found), map(array_of, expected), strict=True):
            if ours is not None:
                np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [(32, 128), (33, 144), (500, 1024)])
def test_blocks_are_copied_up_to_the_bounds(
    torch: ModuleType, size: tuple[int, int], dtype: str
) -> None:
    x = torch.randint(-9, 9, size, device="cuda").to(getattr(torch, dtype))
    grid = (-(-size[0] // 32), -(-size[1] // 64))
    for _ in range(3):
        out = torch.zeros(size, device="cuda").to(x.dtype)
        cases.copy_block[grid](described(x, (32, 64)), described(out, (32, 64)), 32, 64)
        assert torch.equal(out.float(), x.float())


@pytest.mark.parametrize(
    "block", [(1, 4), (1, 1024), (4, 256), (8, 4), (8, 256), (512, 8), (1024, 4), (2, 512)]
)
def test_blocks_that_take_several_boxes_are_whole(
    torch: ModuleType, block: tuple[int, int]
) -> None:
    x = cases.numbers((block[0] + 3, block[1] + 4))
    check(torch, cases.copy_block, (2, 2), described(x, block), described(0 * x, block), *block)


def test_one_three_and_five_dimensions_are_copied(torch: ModuleType) -> None:
    x = cases.numbers((3000,), "float16", 9)
    check(torch, cases.scale_row, (2,), described(x, (2048,)), described(0 * x, (2048,)), 2048)
    x = cases.numbers((5, 20, 72), "float16")
    block = (2, 8, 64)
    check(torch, cases.add_one, (3, 3, 2), described(x, block), described(0 * x, block), *block)
    x = cases.numbers((2, 3, 4, 3, 16))
    block = (1, 2, 2, 2, 16)
    check(torch, cases.add_five, (1,), described(x, block), described(0 * x, block))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_what_is_out_of_bounds_reads_as_nan_where_asked(torch: ModuleType, dtype: str) -> None:
    x = torch.ones(24, 40, device="cuda", dtype=getattr(torch, dtype))
    out = torch.zeros(32, 64, device="cuda", dtype=x.dtype)
    source = described(x, (32, 64), "nan")
    cases.copy_block[(1, 1)](source, described(out, (32, 64)), 32, 64)
    inside = torch.zeros(32, 64, device="cuda", dtype=torch.bool)
    inside[:24, :40] = True
    assert torch.equal(torch.isnan(out), ~inside)
    assert bool((out[inside] == 1).all())


def test_negative_indices_are_out_of_bounds(torch: ModuleType) -> None:
    x = cases.numbers((24, 24), "float16")
    arguments = [described(x, (16, 16)), described(0 * x, (16, 16)), -5, -8]
    check(torch, cases.shift, (1,), *arguments)


@pytest.mark.parametrize(("n", "m"), [(3, 5), (1, 1), (2, 4)])
def test_phases_go_through_nested_loops_and_branches(torch: ModuleType, n: int, m: int) -> None:
    x = cases.numbers((24, 24))
    arguments = [described(x, (16, 16)), described(np.zeros_like(x), (16, 16)), n, m, 16]
    check(torch, cases.nested, (1,), *arguments)


def test_stores_in_a_loop_read_their_tiles_before_they_are_reused(torch: ModuleType) -> None:
    x = torch.randn(5000, 64, device="cuda", dtype=torch.float16)
    out = torch.zeros(5000, 128, device="cuda", dtype=torch.float16)
    cases.persistent[(7,)](described(x, (16, 64)), described(out, (16, 64)), 5000, 16, 64)
    assert torch.equal(out, torch.cat([x * 2, x + 1], dim=1))


def test_a_stored_block_can_be_read_behind_a_barrier(torch: ModuleType) -> None:
    x = cases.numbers((32, 32))
    check(torch, cases.store_then_load, (1,), x, 0 * x, 32, 16)


@pytest.mark.parametrize("num_warps", [4, 8])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("blocks", [(128, 128, 64), (64, 256, 64), (128, 64, 32)])
@pytest.mark.parametrize("size", [(512, 512, 512), (300, 264, 136)])
def test_products_of_loaded_blocks_are_right(
    torch: ModuleType,
    size: tuple[int, int, int],
    blocks: tuple[int, int, int],
    dtype: str,
    num_warps: int,
) -> None:
    m, n, k = size
    bm, bn, bk = blocks
    kind = getattr(torch, dtype)
    a, b = (torch.randn(s, device="cuda", dtype=kind) for s in ((m, k), (k, n)))
    grid = (-(-m // bm), -(-n // bn))
    expected = a.float() @ b.float()
    for kernel, right, block in (
        (cases.matmul, b, (bk, bn)),
        (cases.matmul_transposed, b.T.contiguous(), (bn, bk)),
    ):
        for _ in range(3):
            c = torch.zeros(m, n, device="cuda")
            tensors = [described(a, (bm, bk)), described(right, block), described(c, (bm, bn))]
            kernel[grid](*tensors, k, *blocks, num_warps=num_warps)
            torch.testing.assert_close(c, expected, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("dtype", ["float8_e5m2", "float8_e4m3fn", "float32"])
def test_products_along_k_are_right_for_every_width(torch: ModuleType, dtype: str) -> None:
    kind = getattr(torch, dtype)
    a, b = (torch.randint(-4, 5, (256, 256), device="cuda").to(kind) for _ in range(2))
    c = torch.zeros(256, 256, device="cuda")
    tensors = [described(a, (128, 64)), described(b, (64, 64)), described(c, (128, 64))]
    cases.matmul_transposed[(2, 4)](*tensors, 256, 128, 64, 64)
    assert torch.equal(c, a.float() @ b.float().T)


@pytest.mark.parametrize(("kind", "dtype"), cases.REDUCED)
def test_blocks_are_combined_atomically(torch: ModuleType, kind: str, dtype: str) -> None:
    x = cases.numbers((24, 16), dtype)
    x = np.abs(x) if dtype[0] == "u" else x
    out = (np.zeros((8, 16)) + 7).astype(dtype)
    check(torch, cases.reducing(kind), (3,), described(x, (8, 16)), described(out, (8, 16)), 8)


def test_descriptors_made_in_the_kernel_are_right(torch: ModuleType) -> None:
    x = cases.numbers((40, 64), "int32")
    check(torch, cases.made_here, (1,), x, 0 * x, 40, 64, 16, 32)
    x = cases.numbers((64, 32))
    check(torch, cases.made_by_program, (2,), x, 0 * x, 32, 32, 16, 32)


def test_maps_that_programs_make_are_right(torch: ModuleType) -> None:
    arguments = cases.grouped_arguments([(64, 32, 32), (72, 40, 48), (8, 64, 64), (512, 256, 64)])
    for programs in (1, 3, 132):
        check(torch, cases.grouped, (programs,), *arguments)
    x = cases.numbers((392,), "int32")
    check(torch, cases.made_of_three, (1,), x, 0 * x, np.array([8], np.int32), 2, 4, 16)


def test_more_programs_than_slots_share_them(torch: ModuleType) -> None:
    x = torch.arange(20000 * 16 * 16, device="cuda", dtype=torch.int32)
    out = torch.zeros(20000 * 16, 16, device="cuda", dtype=torch.int32)
    for _ in range(5):
        out.zero_()
        move_own[(20000,)](x, out, 20000 * 16, 16)
        assert torch.equal(out.view(-1), x)


def test_rows_by_their_numbers_are_read_and_written(torch: ModuleType) -> None:
    x = cases.numbers((20, 32))
    rows = np.array([3, 1, 4, 19, 5, 9, 2, 6], np.int32)
    arguments = [described(x, (1, 16)), described(0 * x, (1, 16)), rows]
    arguments.append(described(cases.numbers((8, 16)), (8, 16)))
    check(torch, cases.chosen_rows, (1,), *arguments, 16)


def test_an_unaligned_tensor_is_refused_by_name(torch: ModuleType) -> None:
    x = torch.zeros(40, 66, device="cuda", dtype=torch.int32)
    with pytest.raises(ArgumentNotSupported, match=r"descriptor of `x` has stride 0 of 264 bytes"):
        cases.made_here[(1,)](x, x, 40, 66, 16, 32)
    cases.made_here[(1,)](x, x, 40, 66, 16, 32, descriptors="pointers")


@tilewright.jit
def move_own(x, out, rows, B: tl.constexpr):
    pid = tl.program_id(0)
    source = tl.make_tensor_descriptor(x + pid * B * B, [B, B], [B, 1], [B, B])
    target = tl.make_tensor_descriptor(out, [rows, B], [B, 1], [B, B])
    target.store([pid * B, 0], source.load([0, 0]))


@tilewright.jit
def add_blocks(x, y, out, BM: tl.constexpr, BN: tl.constexpr):
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    out.store([i, j], x.load([i, j]) + y.load([i, j]))


def test_the_pointers_option_gives_the_same(torch: ModuleType) -> None:
    x, y = (torch.randn(1000, 512, device="cuda") for _ in range(2))
    for options in ({}, {"descriptors": "pointers"}):
        out = torch.zeros_like(x)
        tensors = [described(t, (64, 128)) for t in (x, y, out)]
        add_blocks[(16, 4)](*tensors, 64, 128, **options)
        assert torch.equal(out, x + y)


def test_a_graph_replays_launches_with_descriptors(torch: ModuleType) -> None:
    x, y, out = (torch.randn(256, 128, device="cuda") for _ in range(3))
    tensors = [described(t, (64, 128)) for t in (x, y, out)]
    add_blocks[(4, 1)](*tensors, 64, 128)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        add_blocks[(4, 1)](*tensors, 64, 128)
    for _ in range(20):
        x.normal_()
        out.zero_()
        graph.replay()
        assert torch.equal(out, x + y)
