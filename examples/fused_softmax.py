"""Softmax along rows in one pass over memory.

Written with array operations, softmax reads and writes the matrix several times: a maximum, a
difference, an exponential, a sum, a quotient. Here one program holds a whole row in a tile, so
each element is read once and written once. Run as `python -m examples.fused_softmax`.
"""

from __future__ import annotations

import numpy as np

import tilewright
import tilewright.language as tl


@tilewright.jit
def softmax_kernel(x_ptr, out_ptr, x_stride, out_stride, width, BLOCK: tl.constexpr):
    """Softmax of one row of `width` elements, `width <= BLOCK`; one program a row."""
    row = tl.program_id(0)
    # A tile's extent is a power of two; the rest of the last one is masked off.
    columns = tl.arange(0, BLOCK)
    mask = columns < width
    # exp(-inf) is 0, so what lies beyond the row takes no part in the maximum or the sum.
    x = tl.load(x_ptr + row * x_stride + columns, mask=mask, other=-float("inf"))
    # Subtracting the maximum changes nothing in exact arithmetic and keeps exp from overflowing.
    weights = tl.exp(x - tl.max(x, axis=0))
    y = weights / tl.sum(weights, axis=0)
    tl.store(out_ptr + row * out_stride + columns, y, mask=mask)


def softmax(x: np.ndarray) -> np.ndarray:
    """Softmax along the last axis of a matrix whose rows are contiguous."""
    rows, width = x.shape
    out = np.empty((rows, width), dtype=x.dtype)
    # The language counts strides in elements, NumPy in bytes.
    strides = (x.strides[0] // x.itemsize, width)
    softmax_kernel[(rows,)](x, out, *strides, width, BLOCK=tilewright.next_power_of_2(width))
    return out


def reference(x: np.ndarray) -> np.ndarray:
    """Softmax along the last axis in float64."""
    weights = np.exp(x.astype(np.float64) - x.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def main() -> None:
    """Softmax of a matrix whose rows are no power of two long, and of a view into it."""
    rng = np.random.default_rng(0)
    x = 4 * rng.standard_normal((257, 781), dtype=np.float32)
    np.testing.assert_allclose(softmax(x), reference(x), rtol=2e-6, atol=1e-8)
    # Every second row: not contiguous as a whole, but each row is. The stride is an argument,
    # so nothing is copied.
    view = x[::2, :500]
    np.testing.assert_allclose(softmax(view), reference(view), rtol=2e-6, atol=1e-8)
    print(f"fused_softmax: {x.shape[0]} rows of {x.shape[1]} and a strided view are right")


if __name__ == "__main__":
    main()
