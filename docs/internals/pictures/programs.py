"""The programs of the pictures: a product and attention, each under two schedules.

`tilewright simulate docs/internals/pictures/programs.py --timeline NAME.svg` draws them, one file a
launch; those here are product-pipelined, product-in-roles, attention-pipelined, attention-in-roles.
"""

from __future__ import annotations

import sys

import numpy as np

import tilewright
import tilewright.language as tl


@tilewright.jit
def product(a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """c = a @ b, one block."""
    left = tl.make_tensor_descriptor(a, [M, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [k, N], [N, 1], [K, N])
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        acc = tl.dot(left.load([0, start]), right.load([start, 0]), acc)
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(c + at, acc)


@tilewright.jit
def attention(q, k, v, out, length, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """softmax(scale * q @ k.T) @ v of one block of queries, online."""
    queries = tl.make_tensor_descriptor(q, [M, D], [D, 1], [M, D])
    keys = tl.make_tensor_descriptor(k, [length, D], [D, 1], [N, D])
    values = tl.make_tensor_descriptor(v, [length, D], [D, 1], [N, D])
    x = queries.load([0, 0])
    acc = tl.zeros((M, D), tl.float32)
    total = tl.zeros((M,), tl.float32)
    highest = tl.full((M,), -1.0e30, tl.float32)
    for start in range(0, length, N):
        scores = tl.dot(x, keys.load([start, 0]).T)
        new_highest = tl.maximum(highest, tl.max(scores, axis=1) * scale)
        weights = tl.exp2(scores * scale - new_highest[:, None])
        rescale = tl.exp2(highest - new_highest)
        total = total * rescale + tl.sum(weights, axis=1)
        acc = tl.dot(weights.to(tl.float16), values.load([start, 0]), acc * rescale[:, None])
        highest = new_highest
    at = tl.arange(0, M)[:, None] * D + tl.arange(0, D)[None, :]
    tl.store(out + at, acc / total[:, None])


def main() -> None:
    """Launch them."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((128, 512), (512, 128)))
    c = np.zeros((128, 128), np.float32)
    for options in ({"num_stages": 4}, {"num_consumer_groups": 2}):
        product[(1,)](a, b, c, 512, M=128, N=128, K=64, **options)
    q, k, v = (rng.standard_normal((n, 64)).astype(np.float16) for n in (128, 512, 512))
    out = np.zeros((128, 64), np.float32)
    for options in ({"num_stages": 2, "num_warps": 8}, {"num_consumer_groups": 2}):
        attention[(1,)](q, k, v, out, 512, 0.18, M=128, N=64, D=64, **options)


if __name__ == "__main__":
    sys.exit(main())
