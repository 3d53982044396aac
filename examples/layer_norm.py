"""Layer norm, forward and backward; the backward pass sums over rows under locks.

    y = (x - mean) * rstd * weight + bias        mean and rstd = 1 / sqrt(variance + epsilon)
                                                 over each row

The gradients of weight and bias are sums over all rows, while programs work on one row each.
Programs therefore add into a few partial sums, each guarded by a lock, and a second kernel adds
those up. Run as `python -m examples.layer_norm`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import tilewright
import tilewright.language as tl


@tilewright.jit
def forward_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    y_ptr,
    mean_ptr,
    rstd_ptr,
    stride,
    width,
    EPSILON: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Layer norm of one row, `width <= BLOCK`; mean and rstd are kept for the backward pass."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < width
    x = tl.load(x_ptr + row * stride + columns, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / width
    # Beyond the row x - mean is not zero, and would be counted in the variance.
    centered = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(centered * centered, axis=0) / width
    rstd = tl.rsqrt(variance + EPSILON)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    weight = tl.load(weight_ptr + columns, mask=mask)
    bias = tl.load(bias_ptr + columns, mask=mask)
    tl.store(y_ptr + row * stride + columns, centered * rstd * weight + bias, mask=mask)


@tilewright.jit
def add_under_lock(first_ptrs, first, second_ptrs, second, mask, lock_ptr, count_ptr):
    """Add two tiles into memory that other programs add to as well, and that starts undefined."""
    # Compare-and-swap returns the old value: 0 means that this program took the lock. It
    # acquires, so what the previous owner stored is visible now.
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    if tl.load(count_ptr) == 0:
        # The first owner finds undefined memory: it stores and does not add.
        tl.atomic_xchg(count_ptr, 1)
    else:
        first += tl.load(first_ptrs, mask=mask)
        second += tl.load(second_ptrs, mask=mask)
    tl.store(first_ptrs, first, mask=mask)
    tl.store(second_ptrs, second, mask=mask)
    # Every lane has stored before the lock opens; the exchange releases those stores.
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@tilewright.jit
def backward_kernel(
    grad_y_ptr,
    x_ptr,
    weight_ptr,
    mean_ptr,
    rstd_ptr,
    grad_x_ptr,
    weight_sums_ptr,
    bias_sums_ptr,
    locks_ptr,
    stride,
    width,
    NUM_SUMS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The gradient of one row, and its part of the gradients of weight and bias.

    `weight_sums`, `bias_sums: [NUM_SUMS, width]`; `locks: [2, NUM_SUMS]` is zero at the start:
    the locks, then the counts of who has been there.
    """
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < width
    x = tl.load(x_ptr + row * stride + columns, mask=mask, other=0.0)
    grad_y = tl.load(grad_y_ptr + row * stride + columns, mask=mask, other=0.0)
    weight = tl.load(weight_ptr + columns, mask=mask, other=0.0)
    rstd = tl.load(rstd_ptr + row)
    normalized = tl.where(mask, (x - tl.load(mean_ptr + row)) * rstd, 0.0)
    weighted = weight * grad_y
    # mean and rstd depend on every x of the row: take out what moving them would undo.
    along = tl.sum(normalized * weighted, axis=0) / width
    constant = tl.sum(weighted, axis=0) / width
    grad_x = (weighted - (normalized * along + constant)) * rstd
    tl.store(grad_x_ptr + row * stride + columns, grad_x, mask=mask)

    slot = row % NUM_SUMS
    add_under_lock(
        weight_sums_ptr + slot * width + columns,
        grad_y * normalized,
        bias_sums_ptr + slot * width + columns,
        grad_y,
        mask,
        locks_ptr + slot,
        locks_ptr + NUM_SUMS + slot,
    )


@tilewright.jit
def sum_rows_kernel(sums_ptr, out_ptr, rows, width, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """The sum over the rows of a matrix; one program for `BLOCK` columns."""
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    for first in range(0, rows, ROWS):
        row = first + tl.arange(0, ROWS)
        mask = (row[:, None] < rows) & (columns[None, :] < width)
        total += tl.load(sums_ptr + row[:, None] * width + columns[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + columns, tl.sum(total, axis=0), mask=columns < width)


@dataclass(frozen=True)
class Saved:
    """What the backward pass needs of the forward pass."""

    x: np.ndarray
    weight: np.ndarray
    mean: np.ndarray
    rstd: np.ndarray


def forward(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, epsilon: float = 1e-5
) -> tuple[np.ndarray, Saved]:
    """Layer norm of the rows of a contiguous matrix."""
    rows, width = x.shape
    y = np.empty_like(x)
    mean, rstd = np.empty((2, rows), dtype=np.float32)
    block = tilewright.next_power_of_2(width)
    forward_kernel[(rows,)](
        *(x, weight, bias, y, mean, rstd, width, width), EPSILON=epsilon, BLOCK=block
    )
    return y, Saved(x, weight, mean, rstd)


def backward(grad_y: np.ndarray, saved: Saved, num_sums: int = 16) -> tuple[np.ndarray, ...]:
    """The gradients of x, weight and bias. More partial sums mean fewer waits at a lock."""
    rows, width = grad_y.shape
    grad_x = np.empty_like(grad_y)
    sums = np.empty((2, num_sums, width), dtype=np.float32)
    locks = np.zeros((2, num_sums), dtype=np.int32)
    backward_kernel[(rows,)](
        *(grad_y, saved.x, saved.weight, saved.mean, saved.rstd),
        *(grad_x, sums[0], sums[1], locks, width, width),
        NUM_SUMS=num_sums,
        BLOCK=tilewright.next_power_of_2(width),
    )
    grads = np.empty((2, width), dtype=np.float32)
    used = min(num_sums, rows)
    for parts, total in zip(sums, grads, strict=True):
        grid = (tilewright.cdiv(width, 128),)
        sum_rows_kernel[grid](parts, total, used, width, ROWS=16, BLOCK=128)
    return grad_x, grads[0], grads[1]


def reference(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, grad_y: np.ndarray, epsilon: float = 1e-5
) -> tuple[np.ndarray, ...]:
    """y and the gradients of x, weight and bias in float64."""
    x, weight, bias, grad_y = (each.astype(np.float64) for each in (x, weight, bias, grad_y))
    rstd = 1 / np.sqrt(x.var(axis=1, keepdims=True) + epsilon)
    normalized = (x - x.mean(axis=1, keepdims=True)) * rstd
    weighted = weight * grad_y
    along = (normalized * weighted).mean(axis=1, keepdims=True)
    grad_x = (weighted - normalized * along - weighted.mean(axis=1, keepdims=True)) * rstd
    y = normalized * weight + bias
    return y, grad_x, (grad_y * normalized).sum(axis=0), grad_y.sum(axis=0)


def main() -> None:
    """Normalise rows, differentiate, and check the result and the three gradients."""
    rng = np.random.default_rng(0)
    x, grad_y = rng.standard_normal((2, 151, 300), dtype=np.float32)
    weight, bias = rng.standard_normal((2, 300), dtype=np.float32)
    y, saved = forward(x, weight, bias)
    results = (y, *backward(grad_y, saved))
    for result, expected in zip(results, reference(x, weight, bias, grad_y), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
    print("layer_norm: the result and the gradients of x, weight and bias are right")


if __name__ == "__main__":
    main()
