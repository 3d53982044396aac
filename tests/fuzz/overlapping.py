"""Random launches of products over tiles whose arguments lie in one array, at random places.

One program goes over its tiles, so that what it stores is what it loads next where the two meet.
All numbers are whole and small, so no order of summing shows.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

import tilewright
import tilewright.language as tl

M, N, K = 128, 32, 32
_TURNS = "roles load | math x2 split tiles; ring ab tiles load#0 load#1 slots {} tma release {}"


@tilewright.jit
def blocks(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Everything through descriptors."""
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [k, n], [n, 1], [K, N])
    out = tl.make_tensor_descriptor(c, [m, n], [n, 1], [M, N])
    for row in range(tl.program_id(0) * M, m, M * tl.num_programs(0)):
        acc = tl.zeros((M, N), tl.float32)
        for start in range(0, k, K):
            acc = tl.dot(left.load([row, start]), right.load([start, 0]), acc)
        out.store([row, 0], (acc % 4).to(tl.float16))


@tilewright.jit
def stored_by_pointers(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Loaded through descriptors, and stored by pointers."""
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [k, n], [n, 1], [K, N])
    for row in range(tl.program_id(0) * M, m, M * tl.num_programs(0)):
        acc = tl.zeros((M, N), tl.float32)
        for start in range(0, k, K):
            acc = tl.dot(left.load([row, start]), right.load([start, 0]), acc)
        i, j = row + tl.arange(0, M), tl.arange(0, N)
        inside = (i < m)[:, None] & (j < n)[None, :]
        tl.store(c + i[:, None] * n + j[None, :], (acc % 4).to(tl.float16), mask=inside)


@tilewright.jit
def added(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Blocks are added to memory in each step, which later steps may load."""
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [k, n], [n, 1], [K, N])
    out = tl.make_tensor_descriptor(c, [m, n], [n, 1], [M, N])
    for row in range(tl.program_id(0) * M, m, M * tl.num_programs(0)):
        for start in range(0, k, K):
            part = tl.dot(left.load([row, start]), right.load([start, 0]))
            out.atomic_add([row, 0], (part % 2).to(tl.float16))


@tilewright.jit
def by_pointers(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Everything by pointers, which the copy engine may move."""
    j, kk = tl.arange(0, N), tl.arange(0, K)
    for row in range(tl.program_id(0) * M, m, M * tl.num_programs(0)):
        i = row + tl.arange(0, M)
        acc = tl.zeros((M, N), tl.float32)
        for start in range(0, k, K):
            left = (i < m)[:, None] & (start + kk < k)[None, :]
            right = (start + kk < k)[:, None] & (j < n)[None, :]
            x = tl.load(a + i[:, None] * k + start + kk[None, :], mask=left, other=0.0)
            y = tl.load(b + (start + kk)[:, None] * n + j[None, :], mask=right, other=0.0)
            acc = tl.dot(x, y, acc)
        inside = (i < m)[:, None] & (j < n)[None, :]
        tl.store(c + i[:, None] * n + j[None, :], (acc % 4).to(tl.float16), mask=inside)


@tilewright.jit
def twice(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """One tile after the other without a loop around: the second is loaded behind a store."""
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [k, n], [n, 1], [K, N])
    out = tl.make_tensor_descriptor(c, [m, n], [n, 1], [M, N])
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        acc = tl.dot(left.load([0, start]), right.load([start, 0]), acc)
    out.store([0, 0], (acc % 4).to(tl.float16))
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        acc = tl.dot(left.load([M, start]), right.load([start, 0]), acc)
    out.store([M, 0], (acc % 4).to(tl.float16))


KERNELS = (blocks, stored_by_pointers, added, by_pointers, twice)


@dataclass(frozen=True)
class Overlapping:
    """A kernel, where its arrays start in one array, their sizes, and the options of a launch."""

    kernel: tilewright.JITFunction
    starts: tuple[int, int, int]
    sizes: tuple[int, int, int]
    options: dict[str, object]

    def arguments(self, memory: np.ndarray) -> list[object]:
        """The arguments of a launch on views of `memory`."""
        m, n, k = self.sizes
        shapes = ((m, k), (k, n), (m, n))
        views = [
            memory[start : start + rows * columns].reshape(rows, columns)
            for start, (rows, columns) in zip(self.starts, shapes, strict=True)
        ]
        return [*views, m, n, k]


def memory_of(seed: int) -> np.ndarray:
    """The array that all of it lies in."""
    return np.random.default_rng(seed).integers(-2, 3, 1 << 17).astype(np.float16)


def generate_overlapping(seed: int) -> Overlapping:
    """The launch of a seed."""
    rng = random.Random(seed)
    sizes = rng.choice((128, 256, 300, 384)), rng.choice((32, 24, 16)), rng.choice((32, 40, 96))
    far = [rng.randrange(0, 4096) * 8 for _ in range(3)]
    near = [rng.randrange(0, 16) * 8 * rng.choice((1, 32, 128)) for _ in range(3)]
    starts = [rng.choice((one, other)) for one, other in zip(near, far, strict=True)]
    if rng.random() < 0.3:
        starts[2] = starts[rng.randrange(2)]
    options = rng.choice(
        (
            {"num_consumer_groups": 1},
            {"num_consumer_groups": 2},
            {"num_consumer_groups": 2, "num_buffers_warp_spec": 1},
            {"schedule": _TURNS.format(rng.randint(2, 4), rng.choice(("wait", "late")))},
            {"num_stages": rng.randint(1, 4)},
        )
    )
    kernel = rng.choice(KERNELS)
    if kernel in (added, by_pointers, twice) and "schedule" in options:
        options = {"num_consumer_groups": 2}
    return Overlapping(kernel, (starts[0], starts[1], starts[2]), sizes, dict(options))
