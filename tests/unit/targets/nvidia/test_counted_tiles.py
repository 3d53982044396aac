"""Products whose author goes over tiles: two counts of one tile, rows chosen by a bound, halves."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.targets.nvidia.bulk_kernels import product
from tests.unit.targets.nvidia.persistent_kernels import run_on
from tilewright.ops.function import find_kernel
from tilewright.ops.roles import find_roles
from tilewright.runtime.tensor_descriptor import TensorDescriptor

SMS = 3
BLOCKS = {"BM": 128, "BK": 64, "GROUP": 2, "NUM": SMS}


@tilewright.jit
def place(tile, rows, columns, GROUP: tl.constexpr):
    """The row and the column of blocks that a tile is."""
    first = tile // (GROUP * columns) * GROUP
    height = min(rows - first, GROUP)
    return first + tile % height, tile % (GROUP * columns) // height


@tilewright.jit
def by_pointers(
    a, b, c, M, N, K, a_row, b_row, c_row,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, NUM: tl.constexpr,
):  # fmt: skip
    """Tiles counted for loads by the loop, for stores by a number of their own."""
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    stored = tl.program_id(0) - NUM
    for tile in range(tl.program_id(0), rows * columns, NUM):
        m, n = place(tile, rows, columns, GROUP)
        at_m, at_n = m * BM + tl.arange(0, BM), n * BN + tl.arange(0, BN)
        at_m, at_n = tl.where(at_m < M, at_m, 0), tl.where(at_n < N, at_n, 0)
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(tl.cdiv(K, BK)):
            at_k = k * BK + tl.arange(0, BK)
            x = tl.load(a + at_m[:, None] * a_row + at_k[None, :], at_k[None, :] < K, other=0.0)
            y = tl.load(b + at_n[None, :] * b_row + at_k[:, None], at_k[:, None] < K, other=0.0)
            acc = tl.dot(x, y, acc)
        stored += NUM
        m, n = place(stored, rows, columns, GROUP)
        to_m, to_n = m * BM + tl.arange(0, BM), n * BN + tl.arange(0, BN)
        inside = (to_m[:, None] < M) & (to_n[None, :] < N)
        tl.store(c + to_m[:, None] * c_row + to_n[None, :], acc.to(c.dtype.element_ty), inside)


@tilewright.jit
def by_descriptors(
    left, right, out, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    GROUP: tl.constexpr, NUM: tl.constexpr, HALVES: tl.constexpr, ROLES: tl.constexpr,
):  # fmt: skip
    """The same by descriptors of the launch, B transposed, stored whole or by halves."""
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    stored = tl.program_id(0) - NUM
    for tile in tl.range(tl.program_id(0), rows * columns, NUM, warp_specialize=ROLES):
        m, n = place(tile, rows, columns, GROUP)
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(tl.cdiv(K, BK)):
            acc = tl.dot(left.load([m * BM, k * BK]), right.load([n * BN, k * BK]).T, acc)
        stored += NUM
        m, n = place(stored, rows, columns, GROUP)
        if HALVES:
            low, high = tl.split(acc.reshape(BM, 2, BN // 2).permute(0, 2, 1))
            out.store([m * BM, n * BN], low.to(tl.float16))
            out.store([m * BM, n * BN + BN // 2], high.to(tl.float16))
        else:
            out.store([m * BM, n * BN], acc.to(tl.float16))


def operands(m: int, n: int, k: int, dtype: type = np.float16) -> Sequence[np.ndarray]:
    """A, B transposed, an array for C, and what belongs there."""
    rng = np.random.default_rng(m + n + k)
    a, b = (rng.integers(-3, 4, shape).astype(dtype) for shape in ((m, k), (n, k)))
    right = (a.astype(np.float32) @ b.astype(np.float32).T).astype(np.float16)
    return a, b, np.full((m, n), 9, np.float16), right


@pytest.mark.parametrize(("m", "n", "k"), [(392, 264, 136), (130, 136, 72), (128, 128, 8)])
@pytest.mark.parametrize("columns", [128, 256])
def test_pointers_with_two_counts_and_chosen_rows_run_as_roles(
    m: int, n: int, k: int, columns: int
) -> None:
    a, b, c, right = operands(m, n, k)
    args = (a, b, c, m, n, k, k, k, n)
    ran = run_on(SMS, by_pointers, (SMS, 1, 1), args, BN=columns, **BLOCKS)
    assert find_roles(find_kernel(ran.module)) is not None, ran.remarks
    np.testing.assert_array_equal(c, right)


@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize("roles", [False, True])
@pytest.mark.parametrize(("columns", "warps"), [(128, 8), (256, 4)])
def test_descriptors_are_stored_whole_or_by_halves(
    halves: bool, roles: bool, columns: int, warps: int
) -> None:
    """Two groups, whatever the warps: of one, a tile of 128 x 256 does not fit the registers."""
    m, n, k = 392, 272, 136
    a, b, c, right = operands(m, n, k)
    parts = ((a, [128, 64]), (b, [columns, 64]), (c, [128, columns // (1 + halves)]))
    maps = [TensorDescriptor(x, x.shape, [s // 2 for s in x.strides], block) for x, block in parts]
    sizes = {**BLOCKS, "BN": columns, "HALVES": halves, "ROLES": roles, "num_warps": warps}
    ran = run_on(SMS, by_descriptors, (SMS, 1, 1), (*maps, m, n, k), **sizes)
    assert any("math x2" in remark for remark in ran.remarks), ran.remarks
    assert not any("made whole" in remark for remark in ran.remarks), ran.remarks
    # A launch does not divide the strides of descriptors: no cluster for rows across lines.
    assert ran.metadata["cluster"] == 1
    np.testing.assert_array_equal(c, right)


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn])
def test_masked_bytes_that_read_as_zero_go_by_the_engine(dtype: type) -> None:
    """`other=0.0` becomes a float of 8 bits by a conversion, and is 0 in each of them."""
    m, n, k = 144, 272, 144
    a, b, c, right = operands(m, n, k, dtype)
    args = (a, b.T, c, m, n, k, k, 1, 1, k, n)
    sizes = {"BM": 128, "BN": 128, "BK": 128, "GROUP": 2}
    ran = run_on(SMS, product, (6, 1, 1), args, **sizes)
    assert find_roles(find_kernel(ran.module)) is not None, ran.remarks
    np.testing.assert_array_equal(c, right)


@tilewright.jit
def looked_at(a, out, M, a_row, B: tl.constexpr):
    """Rows that are chosen by a bound, and all of them stored."""
    rows, steps = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, B)
    chosen = tl.where(rows < M, rows, 0)
    block = tl.load(a + chosen[:, None] * a_row + steps[None, :])
    product = tl.dot(block, block.T).to(tl.float16)
    tl.store(out + rows[:, None] * B + steps[None, :], product)


def test_chosen_rows_that_something_looks_at_are_loaded_one_by_one() -> None:
    a = np.random.default_rng(1).integers(-3, 4, (130, 128)).astype(np.float16)
    out = np.zeros((256, 128), np.float16)
    ran = run_on(
        SMS, looked_at, (2, 1, 1), (a, out, 130, 128), B=128, bulk_access="always", num_stages=2
    )
    assert any("is looked up in" in remark for remark in ran.remarks), ran.remarks
    whole = a[np.where(np.arange(256) < 130, np.arange(256), 0)].astype(np.float32)
    right = np.concatenate([part @ part.T for part in (whole[:128], whole[128:])])
    np.testing.assert_array_equal(out, right.astype(np.float16))


@tilewright.jit
def overlapping(left, right, out, K, B: tl.constexpr, BY: tl.constexpr):
    """Two blocks of which the second one begins in the first one."""
    acc = tl.zeros((B, B), tl.float32)
    for k in range(0, K, 64):
        acc = tl.dot(left.load([0, k]), right.load([0, k]).T, acc)
    out.store([0, 0], acc.to(tl.float16))
    out.store([BY, 0], (acc + 1).to(tl.float16))


@pytest.mark.parametrize("by", [64, 128])
def test_only_blocks_that_are_apart_are_stored_by_two_replicas(by: int) -> None:
    a, b, _, right = operands(128, 128, 136)
    c = np.zeros((256, 128), np.float16)
    blocks = ((a, [128, 64]), (b, [128, 64]), (c, [128, 128]))
    maps = [TensorDescriptor(x, x.shape, [s // 2 for s in x.strides], block) for x, block in blocks]
    sizes = {"B": 128, "BY": by, "num_consumer_groups": 2}
    ran = run_on(SMS, overlapping, (1, 1, 1), (*maps, 136), **sizes)
    assert (find_roles(find_kernel(ran.module)) is not None) == (by == 128), ran.remarks
    assert any("of two replicas may meet" in remark for remark in ran.remarks) == (by == 64)
    np.testing.assert_array_equal(c[:by], right[:by])
    np.testing.assert_array_equal(c[by : by + 128], right + np.float16(1))
