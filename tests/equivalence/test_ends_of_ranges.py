"""A loop over `range` does what Python's does, up to the last numbers of its type."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright
import tilewright.language as tl

MOST_STEPS = 40
EDGES = {32: (-(2**31), 2**31 - 1), 64: (-(2**63), 2**63 - 1)}


@tilewright.jit
def fixed(seen, first, end, BY: tl.constexpr):
    """What the counter is, from one iteration to the next."""
    at = 0
    for i in range(first, end, BY):
        at += 1
        tl.store(seen + at, i.to(tl.int64))
    tl.store(seen, at)


@tilewright.jit
def left(seen, first, end, BY: tl.constexpr):
    """The same in a loop that may be left."""
    at = 0
    for i in range(first, end, BY):
        if at == 35:
            break
        at += 1
        tl.store(seen + at, i.to(tl.int64))
    tl.store(seen, at)


@tilewright.jit
def given(seen, first, end, by):
    """The same by a step of the launch."""
    at = 0
    for i in range(first, end, by):
        at += 1
        tl.store(seen + at, i.to(tl.int64))
    tl.store(seen, at)


@tilewright.jit
def constant(seen, FIRST: tl.constexpr, END: tl.constexpr, BY: tl.constexpr):
    """The same where all of it is known."""
    at = 0
    for i in range(FIRST, END, BY):
        at += 1
        tl.store(seen + at, i.to(tl.int64))
    tl.store(seen, at)


def random_range(rng: np.random.Generator, bits: int) -> tuple[int, int, int]:
    """Bounds at the ends of a type, at 0 or between, and a step that ends within few."""
    low, high = EDGES[bits]

    def bound() -> int:
        at = (low, high, 0, int(rng.integers(low // 2, high // 2)))[rng.integers(0, 4)]
        return min(max(at + int(rng.integers(-20, 21)), low), high)

    first, end = bound(), bound()
    if bits == 64 and rng.random() < 0.5:  # bounds of 32 bits and one of 64
        end = min(max(end, low + 1), high)
    distance = abs(end - first)
    least = max(1, distance // MOST_STEPS + 1)
    by = min(int(rng.choice((1, 2, 3, 7, 64, high // 2, high))), high)
    by = max(by, least)
    descends = end < first if rng.random() < 0.9 else end > first
    return first, end, -by if descends else by


def numbers(kernel: Callable[..., object], *arguments: int) -> list[int]:
    """The counters of a kernel's loop, as it stored them."""
    seen = np.full(64, -7, np.int64)
    kernel(seen, *arguments)
    return seen[1 : 1 + int(seen[0])].tolist()


def check(kernel: Callable[..., object], launch: tuple[int, int, int], title: str) -> None:
    """Hold one loop to Python's."""
    found, expected = numbers(kernel, *launch), list(range(*launch))
    assert found == expected[: len(found)], (title, launch)
    assert len(found) == len(expected) or len(found) == 35 < len(expected), (title, launch)


WAYS: dict[str, Callable[[tilewright.JITFunction], Callable[..., object]]] = {
    "cpu": lambda kernel: kernel[(1,)],
    "interpreter": lambda kernel: kernel.interpret[(1,)],
    "threads": lambda kernel: kernel.simulate[(1,)],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("bits", [32, 64])
def test_ranges_at_the_ends_of_their_type_end_as_pythons_do(bits: int, way: str) -> None:
    rng = np.random.default_rng(bits)
    run = WAYS[way]
    for _ in range(40):
        launch = random_range(rng, bits)
        check(run(fixed), launch, "fixed")
        check(run(left), launch, "left")
        if launch[2] > 0:
            check(run(given), launch, "given")


@pytest.mark.parametrize("bits", [32, 64])
def test_ranges_of_constants_end_as_pythons_do(bits: int) -> None:
    rng = np.random.default_rng(10 + bits)
    for _ in range(12):
        launch = random_range(rng, bits)
        for way, run in WAYS.items():
            check(run(constant), launch, way)


@tilewright.jit
def total_of_rows(x, out, first, end, K: tl.constexpr):
    """A loop of tiles whose last index is the last that there is."""
    i = tl.arange(0, 16)
    total = tl.zeros((16,), tl.float32)
    for k in range(first, end, K):
        total += tl.load(x + (k - first) + i, mask=i < end - k, other=0.0)
    tl.store(out + i, total)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("length", [0, 1, 15, 16, 17, 40])
def test_loops_over_tiles_end_at_the_last_number(length: int, way: str) -> None:
    x, out = np.arange(64, dtype=np.float32), np.zeros(16, np.float32)
    end = 2**31 - 1
    WAYS[way](total_of_rows)(x, out, end - length, end, 16)
    rows = np.pad(x[:length], (0, -length % 16)).reshape(-1, 16)
    np.testing.assert_array_equal(out, rows.sum(0))


@tilewright.jit
def lengths_of_lanes(first, end):
    """How many steps a lane's own loop takes."""
    count = 0
    for _ in range(first, end, 1000000000):
        count += 1
    return count


@tilewright.jit
def count_in_lanes(firsts, ends, out):
    """Each element runs a loop of its own."""
    i = tl.arange(0, 16)
    tl.store(out + i, tl.map_elementwise(lengths_of_lanes, tl.load(firsts + i), tl.load(ends + i)))


@pytest.mark.parametrize("way", WAYS)
def test_loops_of_lanes_end_at_the_last_number(way: str) -> None:
    low, high = EDGES[32]
    firsts = np.array([0, low, high, high - 1, 5, -5, low + 1, 7] * 2, np.int32)
    ends = np.array([high] * 8 + [low, low + 1, 0, -1, high, 5, low, high - 1], np.int32)
    out = np.zeros(16, np.int32)
    WAYS[way](count_in_lanes)(firsts, ends, out)
    pairs = zip(firsts.tolist(), ends.tolist(), strict=True)
    assert out.tolist() == [len(range(a, b, 1000000000)) for a, b in pairs]
