"""Many matrix products of different sizes in one launch.

A mixture of experts multiplies many small matrices whose sizes are known only at run time; one
launch each would leave most of the machine idle. Here a fixed number of programs share the tiles
of all products: each takes every n-th tile, wherever in the list it lies. The addresses and
sizes of the matrices are themselves arrays. Run as `python -m examples.grouped_gemm`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import tilewright
import tilewright.language as tl


@tilewright.jit
def multiply_tile(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    tile,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Tile number `tile` of `c = a @ b`, all row-major and contiguous."""
    tiles_n = tl.cdiv(N, BLOCK_N)
    rows = tile // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
    steps = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * K + steps[None, :]
    b_ptrs = b_ptr + steps[:, None] * N + columns[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        inside = steps < K - k
        a = tl.load(a_ptrs, mask=(rows[:, None] < M) & inside[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=inside[:, None] & (columns[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * N
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc, mask=mask)


@tilewright.jit
def grouped_gemm_kernel(
    addresses_ptr,
    sizes_ptr,
    num_products,
    NUM_PROGRAMS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """`c[i] = a[i] @ b[i]` for each product; `NUM_PROGRAMS` programs share all the tiles.

    `addresses: [num_products, 3]` holds the addresses of a, b and c, `sizes: [num_products, 3]`
    holds M, N and K.
    """
    # Tiles are numbered through the whole list; this program's next tile is `tile`, and the
    # tiles of the product at hand begin at `first`.
    tile = tl.program_id(0)
    first = 0
    for product in range(num_products):
        M = tl.load(sizes_ptr + product * 3)
        N = tl.load(sizes_ptr + product * 3 + 1)
        K = tl.load(sizes_ptr + product * 3 + 2)
        end = first + tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
        # An integer becomes a pointer when it is cast to a pointer's type.
        a_ptr = tl.load(addresses_ptr + product * 3).to(tl.pointer_type(tl.float32))
        b_ptr = tl.load(addresses_ptr + product * 3 + 1).to(tl.pointer_type(tl.float32))
        c_ptr = tl.load(addresses_ptr + product * 3 + 2).to(tl.pointer_type(tl.float32))
        while tile < end:
            multiply_tile(
                *(a_ptr, b_ptr, c_ptr, M, N, K, tile - first), *(BLOCK_M, BLOCK_N, BLOCK_K)
            )
            tile += NUM_PROGRAMS
        first = end


def grouped_gemm(
    pairs: Sequence[tuple[np.ndarray, np.ndarray]], num_programs: int = 8
) -> list[np.ndarray]:
    """The product of each pair of contiguous float32 matrices."""
    products = [np.empty((a.shape[0], b.shape[1]), dtype=np.float32) for a, b in pairs]
    addresses = np.array(
        [
            [each.ctypes.data for each in (a, b, c)]
            for (a, b), c in zip(pairs, products, strict=True)
        ],
        dtype=np.int64,
    )
    sizes = np.array([[len(a), b.shape[1], len(b)] for a, b in pairs], dtype=np.int32)
    # The kernel sees addresses, not arrays: `pairs` and `products` keep the memory alive.
    grouped_gemm_kernel[(num_programs,)](
        *(addresses, sizes, len(pairs)),
        NUM_PROGRAMS=num_programs,
        BLOCK_M=64,
        BLOCK_N=64,
        BLOCK_K=32,
    )
    return products


def main() -> None:
    """Multiply matrices of four shapes in one launch and check each product."""
    rng = np.random.default_rng(0)
    shapes = ((128, 96, 64), (33, 200, 70), (1, 64, 300), (257, 65, 129))
    pairs = [
        (
            rng.standard_normal((m, k), dtype=np.float32),
            rng.standard_normal((k, n), dtype=np.float32),
        )
        for m, n, k in shapes
    ]
    for (a, b), product in zip(pairs, grouped_gemm(pairs), strict=True):
        expected = a.astype(np.float64) @ b.astype(np.float64)
        np.testing.assert_allclose(product, expected, rtol=1e-5, atol=1e-4)
    print(f"grouped_gemm: {len(pairs)} products of different sizes are right")


if __name__ == "__main__":
    main()
