"""Functions of scalars mapped over tiles: every lane takes its own path."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.support.errors import InvalidOption, ShapeMismatch, UnsupportedError

SIZE = 64


@tilewright.jit
def branches(x, y):
    if x > y:
        result = x * 2
    elif x < 0:
        result = -x
    else:
        result = x + y
    return result


@tilewright.jit
def early_returns(x, y):
    if x == y:
        return 7
    if y != 0:
        if x // y > 2:
            return x // y
        y = y + 1
    return x - y


@tilewright.jit
def ternaries(x, y):
    a = x % y if y != 0 else -1
    b = 3 if (x < 0 or y < 0) and x != y else a
    return a + b


@tilewright.jit
def gcd(x, y):
    a, b = abs(x), abs(y)
    while b != 0:
        a, b = b, a % b
    return a


@tilewright.jit
def leaves_loops(x, y):
    total = 0
    for k in range(10):
        if k == (x & 3):
            continue
        if total > 20:
            break
        total += k
        if y > 40 and k > 5:
            return -total
    steps = 0
    while True:
        steps += 1
        x = x // 2
        if x == 0 or steps > 20:
            break
    return total * 100 + steps


@tilewright.jit
def uniform(x, y):
    total = x
    for k in tl.static_range(3):
        if k > 0:
            total += y * k
    for k in range(3):
        last = total
        if k % 2 == 0:
            last = 5
        total += last
    return total


def run(kernel: tilewright.JITFunction, *inputs: np.ndarray, **constants: object) -> np.ndarray:
    """The output of a kernel, interpreted and compiled."""
    interpreted, compiled = (np.zeros(SIZE, np.int32) for _ in range(2))
    kernel.interpret[(1,)](*inputs, interpreted, **constants)
    kernel[(1,)](*inputs, compiled, **constants)
    assert np.array_equal(interpreted, compiled)
    return compiled


@tilewright.jit
def apply(x, y, out, FUNCTION: tl.constexpr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(out + i, tl.map_elementwise(FUNCTION, tl.load(x + i), tl.load(y + i)))


def c_divide(x: int, y: int) -> int:
    return int(x / y)


def c_remainder(x: int, y: int) -> int:
    return x - y * int(x / y)


def expected_early_returns(x: int, y: int) -> int:
    if x == y:
        return 7
    if y != 0:
        if c_divide(x, y) > 2:
            return c_divide(x, y)
        y += 1
    return x - y


def expected_ternaries(x: int, y: int) -> int:
    a = c_remainder(x, y) if y != 0 else -1
    b = 3 if (x < 0 or y < 0) and x != y else a
    return a + b


def expected_leaves_loops(x: int, y: int) -> int:
    total = 0
    for k in range(10):
        if k == (x & 3):
            continue
        if total > 20:
            break
        total += k
        if y > 40 and k > 5:
            return -total
    steps = 0
    while True:
        steps += 1
        x = c_divide(x, 2)
        if x == 0 or steps > 20:
            break
    return total * 100 + steps


CASES: dict[str, tuple[tilewright.JITFunction, Callable[[int, int], int]]] = {
    "branches": (branches, lambda x, y: x * 2 if x > y else -x if x < 0 else x + y),
    "early returns": (early_returns, expected_early_returns),
    "ternaries": (ternaries, expected_ternaries),
    "a loop of its own length": (gcd, lambda x, y: int(np.gcd(x, y))),
    "break, continue and return": (leaves_loops, expected_leaves_loops),
    "uniform loops": (uniform, lambda x, y: uniform_in_python(x, y)),
}


def uniform_in_python(x: int, y: int) -> int:
    total = x + y + 2 * y
    for k in range(3):
        total += 5 if k % 2 == 0 else total
    return total


@pytest.mark.parametrize("name", CASES)
def test_each_element_takes_its_own_path(name: str, rng: np.random.Generator):
    function, expected = CASES[name]
    x, y = (rng.integers(-60, 60, SIZE).astype(np.int32) for _ in range(2))
    y[::7] = 0
    got = run(apply, x, y, FUNCTION=function, SIZE=SIZE)
    assert got.tolist() == [expected(int(a), int(b)) for a, b in zip(x, y, strict=True)]


@tilewright.jit
def pairs(x0, x1, y0, y1):
    if x0 > x1:
        return y0, y1, x0, x1
    return y1, y0, x0 + x1, 0


@tilewright.jit
def apply_pairs(x, y, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    first, second = tl.map_elementwise(pairs, tl.load(x + i), tl.load(y + i), pack=2)
    tl.store(out + i, first * 1000 + second)


def test_a_function_of_packed_elements_takes_neighbours(rng: np.random.Generator):
    x, y = (rng.integers(0, 100, SIZE).astype(np.int32) for _ in range(2))
    got = run(apply_pairs, x, y, SIZE=SIZE)
    is_falling = (x[::2] > x[1::2])[:, None]
    xs, ys = x.reshape(-1, 2), y.reshape(-1, 2)
    sums = np.stack([xs.sum(1), np.zeros(SIZE // 2, np.int64)], 1)
    first = np.where(is_falling, ys, ys[:, ::-1])
    second = np.where(is_falling, xs, sums)
    assert np.array_equal(got.reshape(-1, 2), first * 1000 + second)


@tilewright.jit
def quadruple(a, b, c, d):
    return (a + 10 * b + 100 * c, b, c, d)


@tilewright.jit
def apply_quadruple(x, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    (result,) = tl.map_elementwise(quadruple, tl.load(x + i), pack=4)
    tl.store(out + i, result)


def test_four_elements_pack_too():
    x = np.arange(SIZE, dtype=np.int32)
    got = run(apply_quadruple, x, SIZE=SIZE).reshape(-1, 4)
    xs = x.reshape(-1, 4)
    assert np.array_equal(got[:, 0], xs[:, 0] + 10 * xs[:, 1] + 100 * xs[:, 2])
    assert np.array_equal(got[:, 1:], xs[:, 1:])


@tilewright.jit
def stores_in_a_branch(x, y):
    if x > 0:
        tl.device_print("x", x)
    return x


@tilewright.jit
def wrong_pack(x, out):
    i = tl.arange(0, 8)
    tl.store(out + i, tl.map_elementwise(gcd, tl.load(x + i), tl.load(x + i), pack=3))


@tilewright.jit
def wrong_count(x, out):
    i = tl.arange(0, 8)
    tl.store(out + i, tl.map_elementwise(halved, tl.load(x + i), pack=2)[0])


@tilewright.jit
def halved(a, b):
    return (a,)


def test_what_cannot_differ_by_lane_is_refused():
    x, out = np.ones(SIZE, np.int32), np.zeros(SIZE, np.int32)
    with pytest.raises(UnsupportedError, match="branch that depends on an element"):
        apply.warmup(x, x, out, FUNCTION=stores_in_a_branch, SIZE=SIZE)
    with pytest.raises(InvalidOption, match="`pack` is 3"):
        wrong_pack.warmup(x, out)
    with pytest.raises(ShapeMismatch, match="multiple of pack=2"):
        wrong_count.warmup(x, out)
