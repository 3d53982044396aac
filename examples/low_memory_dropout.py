"""Dropout that stores no mask: a seed and an element's position make the same choice again.

Training needs the mask of the forward pass in the backward pass. `tl.rand` is a pure function
of (seed, offset), the counter-based generator Philox-4x32-10, so the backward pass draws the
numbers again instead of loading a mask. Run as `python -m examples.low_memory_dropout`.
"""

from __future__ import annotations

import numpy as np

import tilewright
import tilewright.language as tl


@tilewright.jit
def dropout_kernel(x_ptr, out_ptr, size, p, seed, BLOCK: tl.constexpr):
    """`out = x / (1 - p)` with probability `1 - p`, else 0; one program for `BLOCK` elements."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < size
    x = tl.load(x_ptr + offsets, mask=mask)
    # Which elements stay depends on the seed and their position, not on the tile or the thread.
    keep = tl.rand(seed, offsets) > p
    # The scale makes the expected value of each element what it was.
    tl.store(out_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)


def dropout(x: np.ndarray, p: float, seed: int, block: int = 1024) -> np.ndarray:
    """`x` with each element dropped with probability `p`.

    The gradient with respect to `x` is the same function of the gradient of the result.
    """
    out = np.empty_like(x)
    dropout_kernel[(tilewright.cdiv(x.size, block),)](x, out, x.size, p, seed, BLOCK=block)
    return out


def philox(seed: int, offsets: np.ndarray, rounds: int = 10) -> np.ndarray:
    """The first of the four words that Philox-4x32 makes of each counter (Salmon et al., 2011)."""
    multipliers = np.array([[0xD2511F53], [0xCD9E8D57]], dtype=np.uint64)
    counter = np.zeros((4, offsets.size), dtype=np.uint64)
    counter[0] = offsets
    key = np.array([[seed & 0xFFFFFFFF], [seed >> 32]], dtype=np.uint64)
    low_word = np.uint64(0xFFFFFFFF)
    for _ in range(rounds):
        products = multipliers * counter[0::2]
        high, low = products >> np.uint64(32), products & low_word
        counter = np.stack(
            [high[1] ^ counter[1] ^ key[0], low[1], high[0] ^ counter[3] ^ key[1], low[0]]
        )
        key = (key + np.array([[0x9E3779B9], [0xBB67AE85]], dtype=np.uint64)) & low_word
    return counter[0].astype(np.uint32)


def reference(x: np.ndarray, p: float, seed: int) -> np.ndarray:
    """The same in NumPy, with the generator written out."""
    words = philox(seed, np.arange(x.size)).view(np.int32)
    # A negative word folds onto a positive one; the factor is a little below 2**-31, so the
    # result stays below 1.
    folded = np.where(words < 0, ~words, words).astype(np.float32)
    keep = folded * np.float32(4.6566127342e-10) > np.float32(p)
    return np.where(keep, x.astype(np.float64) / (1 - p), 0.0)


def main() -> None:
    """Drop half the elements, compare every choice with NumPy's, and draw the mask again."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(10_000, dtype=np.float32)
    p, seed = 0.5, 1_234
    dropped = dropout(x, p, seed)
    np.testing.assert_allclose(dropped, reference(x, p, seed), rtol=1e-6)
    # The same seed keeps the same elements, whatever the tile; another seed keeps others.
    gradient = dropout(np.ones_like(x), p, seed, block=256)
    np.testing.assert_array_equal(gradient != 0, dropped != 0)
    assert not np.array_equal(dropout(x, p, seed + 1) != 0, dropped != 0)
    print(f"low_memory_dropout: {np.mean(dropped == 0):.1%} of {x.size} elements dropped")


if __name__ == "__main__":
    main()
