"""Matrix multiplication with tiles of pointers, masks along k and a grouped program order.

Each program computes one tile of the result and walks along the inner dimension. Which program
computes which tile decides what is still in the cache when it is needed again: in plain
row-major order a row of programs reads all of B; in groups of a few rows it reads a part of A
and a part of B again and again. Run as `python -m examples.matmul`.
"""

from __future__ import annotations

import numpy as np

import tilewright
import tilewright.language as tl


@tilewright.jit
def grouped_order(program, num_m, num_n, GROUP_M: tl.constexpr):
    """The tile (row, column) of a program: columns first inside groups of `GROUP_M` rows.

    With num_m = 4, num_n = 3, GROUP_M = 2, the programs lie in the result like this:

        0  2  4
        1  3  5
        6  8 10
        7  9 11
    """
    programs_in_group = GROUP_M * num_n
    group = program // programs_in_group
    first_m = group * GROUP_M
    # The last group may have fewer rows.
    rows_in_group = tl.minimum(num_m - first_m, GROUP_M)
    place = program % programs_in_group
    return first_m + place % rows_in_group, place // rows_in_group


@tilewright.jit
def leaky_relu(x):
    """`x` where it is positive, a hundredth of it elsewhere."""
    return tl.where(x >= 0, x, 0.01 * x)


@tilewright.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    ACTIVATION: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    """`c = activation(a @ b)`; one program a tile of `BLOCK_M` x `BLOCK_N`.

    `a: [M, K]`, `b: [K, N]`, `c: [M, N]`, each with any strides.
    """
    tile_m, tile_n = grouped_order(
        tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP_M
    )
    # Rows beyond the end wrap round to rows that exist. What they compute is never stored, and
    # the loads in the loop need no mask for them.
    rows = (tile_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    columns = (tile_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    steps = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * stride_am + steps[None, :] * stride_ak
    b_ptrs = b_ptr + steps[:, None] * stride_bk + columns[None, :] * stride_bn

    # Sums are kept in float32 whatever the operands are, and rounded once at the end.
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        # Along k a wrong value would enter the sum: here the tail is masked with zeros.
        a = tl.load(a_ptrs, mask=steps[None, :] < K - k, other=0.0)
        b = tl.load(b_ptrs, mask=steps[:, None] < K - k, other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    # A compile-time condition: a kernel without activation contains no trace of it.
    if ACTIVATION == "leaky_relu":
        acc = leaky_relu(acc)

    out_rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    out_columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_ptrs = c_ptr + out_rows[:, None] * stride_cm + out_columns[None, :] * stride_cn
    mask = (out_rows[:, None] < M) & (out_columns[None, :] < N)
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=mask)


def element_strides(x: np.ndarray) -> tuple[int, ...]:
    """The strides of an array in elements."""
    return tuple(stride // x.itemsize for stride in x.strides)


def matmul(a: np.ndarray, b: np.ndarray, activation: str = "") -> np.ndarray:
    """`activation(a @ b)` in the operands' dtype."""
    (m, k), n = a.shape, b.shape[1]
    c = np.empty((m, n), dtype=a.dtype)
    block_m, block_n, block_k = 64, 64, 32
    grid = (tilewright.cdiv(m, block_m) * tilewright.cdiv(n, block_n),)
    matmul_kernel[grid](
        *(a, b, c, m, n, k),
        *(*element_strides(a), *element_strides(b), *element_strides(c)),
        ACTIVATION=activation,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        GROUP_M=8,
    )
    return c


def reference(a: np.ndarray, b: np.ndarray, activation: str = "") -> np.ndarray:
    """The same in float64."""
    c = a.astype(np.float64) @ b.astype(np.float64)
    return np.where(c >= 0, c, 0.01 * c) if activation else c


def main() -> None:
    """Multiply matrices of odd sizes, a transposed view among them, and check the products."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((200, 150), dtype=np.float32)
    b = rng.standard_normal((150, 170), dtype=np.float32)
    np.testing.assert_allclose(matmul(a, b), reference(a, b), rtol=1e-5, atol=1e-4)
    # A transposed view is the same memory with other strides.
    b_t = np.ascontiguousarray(b.T).T
    result = matmul(a, b_t, activation="leaky_relu")
    np.testing.assert_allclose(result, reference(a, b, "leaky_relu"), rtol=1e-5, atol=1e-4)
    halves = a.astype(np.float16), b.astype(np.float16)
    np.testing.assert_allclose(matmul(*halves), reference(*halves), rtol=2e-3, atol=2e-3)
    print("matmul: float32, a transposed view with leaky ReLU, and float16 are right")


if __name__ == "__main__":
    main()
