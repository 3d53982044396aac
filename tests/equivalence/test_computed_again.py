"""Loops that compute an index again: what changes after all keeps its own value."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl


@tilewright.jit
def again(x, out, n, N: tl.constexpr):
    """Both indices are computed again as they were: row `i` of x, twice over."""
    at = tl.arange(0, N)
    behind = N + at
    for i in range(n):
        tl.store(out + i * 2 * N + at, tl.load(x + i * 2 * N + at))
        tl.store(out + i * 2 * N + behind, tl.load(x + i * 2 * N + behind))
        at = tl.arange(0, N)
        behind = N + at


@tilewright.jit
def moved(x, out, n, N: tl.constexpr):
    """`behind` is computed as before, of an index that has moved meanwhile."""
    at = tl.arange(0, N)
    behind = N + at
    for _ in range(n):
        tl.store(out + at, tl.load(x + behind))
        behind = N + at
        at += N


@tilewright.jit
def traded(x, out, n, N: tl.constexpr):
    """Two indices change places, and one of them is computed again."""
    one, other = tl.arange(0, N), N + tl.arange(0, N)
    for i in range(n):
        tl.store(out + i * N + tl.arange(0, N), tl.load(x + one))
        one, other = other, tl.arange(0, N)


@tilewright.jit
def sometimes(x, out, n, N: tl.constexpr):
    """Computed again in some iterations, moved in the others."""
    at = tl.arange(0, N)
    for i in range(n):
        tl.store(out + i * N + tl.arange(0, N), tl.load(x + at))
        if i % 2 == 0:
            at = tl.arange(0, N) + N
        else:
            at = tl.arange(0, N)


def places(kernel: tilewright.JITFunction, n: int, size: int) -> list[tuple[int, int]]:
    """Where each element is stored and where it is loaded, in order."""
    lanes = range(size)
    if kernel is again:
        return [(k, k) for k in range(2 * n * size)]
    if kernel is moved:
        steps = [(0, size), *((i * size, i * size) for i in range(1, n))][:n]
        return [(to + k, at + k) for to, at in steps for k in lanes]
    sources = {traded: [0, size, *([0] * n)], sometimes: [0, size] * n}[kernel]
    return [(i * size + k, sources[i] + k) for i in range(n) for k in lanes]


@pytest.mark.parametrize("way", ["launch", "interpret", "simulate"])
@pytest.mark.parametrize("n", [0, 1, 2, 5])
@pytest.mark.parametrize("kernel", [again, moved, traded, sometimes], ids=lambda k: k.fn.__name__)
def test_indices_are_those_of_their_iteration(
    kernel: tilewright.JITFunction, n: int, way: str
) -> None:
    size = 32
    x = np.arange(1, 12 * size + 1, dtype=np.float32)
    found, expected = np.zeros_like(x), np.zeros_like(x)
    for to, at in places(kernel, n, size):
        expected[to] = x[at]
    run = kernel if way == "launch" else getattr(kernel, way)
    run[(1,)](x, found, n, N=size)
    np.testing.assert_array_equal(found, expected)
