"""Add two vectors: the smallest kernel, and the shape of every other one.

A kernel describes what *one program* does to *one tile* of the data. The launch says how many
programs there are; each of them learns its own number from `tl.program_id` and from it which
elements are its own. Run as `python -m examples.vector_add`.
"""

from __future__ import annotations

import numpy as np

import tilewright
import tilewright.language as tl


@tilewright.jit
def add_kernel(x_ptr, y_ptr, out_ptr, size, BLOCK: tl.constexpr):
    """`out = x + y`; one program for `BLOCK` elements."""
    # Arrays arrive as pointers to their first element. A pointer plus a tile of offsets is a
    # tile of pointers, and that is what loads and stores take.
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    # The last program may reach beyond the end: lanes whose mask is false touch no memory.
    mask = offsets < size
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def add(x: np.ndarray, y: np.ndarray, block: int = 1024) -> np.ndarray:
    """`x + y` for two contiguous vectors of the same length."""
    out = np.empty_like(x)
    # The grid may be a tuple, or a function of the arguments. `BLOCK` is a compile-time
    # constant: each value of it is a kernel of its own, compiled once and then cached.
    grid = (tilewright.cdiv(x.size, block),)
    add_kernel[grid](x, y, out, x.size, BLOCK=block)
    return out


def main() -> None:
    """Add two vectors whose length is no multiple of the tile, and check the sum."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 98_765), dtype=np.float32)
    expected = x.astype(np.float64) + y.astype(np.float64)
    np.testing.assert_allclose(add(x, y), expected, rtol=1e-6, atol=1e-6)
    print(f"vector_add: {x.size} elements are right")


if __name__ == "__main__":
    main()
