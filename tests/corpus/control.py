"""Control flow: loops that carry tiles and pointers, while, branches, break, early return."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from numpy.typing import DTypeLike

import tilewright
import tilewright.language as tl
from tests.corpus.case import EXACT, Case, Close, Reference, Values, blank, normal, whole, wide

PROGRAMS, WIDTH = 6, 32


@tilewright.jit
def sum_over_blocks(x, out, n, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        j = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * stride + j, mask=j < n, other=0.0)
    tl.store(out + row, tl.sum(total, axis=0))


@tilewright.jit
def carried_pointers(x, out, n, BLOCK: tl.constexpr):
    source = x + tl.program_id(0) * n + tl.arange(0, BLOCK)
    target = out + tl.program_id(0) * n + tl.arange(0, BLOCK)
    for k in range(0, tl.cdiv(n, BLOCK)):
        mask = tl.arange(0, BLOCK) < n - k * BLOCK
        tl.store(target, tl.load(source, mask=mask, other=0) * 2, mask=mask)
        source += BLOCK
        target += BLOCK


@tilewright.jit
def carried_scalars(x, out, n):
    p = tl.program_id(0)
    low = tl.load(x + p * n)
    high = low
    total = low - low
    for k in range(0, n):
        v = tl.load(x + p * n + k)
        low = tl.minimum(low, v)
        high = tl.maximum(high, v)
        total += v
    tl.store(out + p * 3, low)
    tl.store(out + p * 3 + 1, high)
    tl.store(out + p * 3 + 2, total)


@tilewright.jit
def swap_carried_tiles(x, y, out, steps, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(x + o), tl.load(y + o)
    for _ in range(steps):
        a, b = b, a + b
    tl.store(out + o, a)


@tilewright.jit
def nested_loops(x, out, n, m, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + o)
    s = tl.zeros((BLOCK,), tl.int32)
    for i in range(n):
        for j in range(i, m):
            s += a * (i - j)
        a += 1
    tl.store(out + o, s)


@tilewright.jit
def loop_with_negative_step(out, n, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    position = 0
    for k in range(n - 1, -1, -2):
        tl.store(out + p * BLOCK + position, k * 10 + p)
        position = position + 1


@tilewright.jit
def collatz(x, out, n):
    p = tl.program_id(0)
    v = tl.load(x + p)
    steps = 0
    while v != 1:
        if v % 2 == 0:
            v = v // 2
        else:
            v = 3 * v + 1
        steps += 1
    tl.store(out + p, steps)


@tilewright.jit
def branch_merges_tiles(x, out, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    o = p * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + o)
    if p % 3 == 0:
        b = a * 2
        c = p
    elif p % 3 == 1:
        b = a - 5
        c = 10
    else:
        b = -a
        c = tl.sum(a, axis=0)
    tl.store(out + o, b + c)


@tilewright.jit
def branch_on_data(x, out, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + o)
    total = tl.sum(a, axis=0)
    if total > 0:
        if tl.max(a, axis=0) > 90:
            a = a + 1000
        tl.store(out + o, a)
    else:
        tl.store(out + o, a * a)


@tilewright.jit
def early_return(x, out, n, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    if p * BLOCK >= n:
        return
    o = p * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + o)
    if tl.sum(a, axis=0) < 0:
        tl.store(out + o, a)
        return
    tl.store(out + o, a + 1)


@tilewright.jit
def first_above(x, out, n, limit):
    p = tl.program_id(0)
    found = n
    for k in range(n):
        if tl.load(x + p * n + k) > limit:
            found = k
            break
    tl.store(out + p, found)


@tilewright.jit
def skip_some(x, out, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    s = tl.zeros((BLOCK,), tl.int32)
    for k in range(n):
        if k % 3 == 1:
            continue
        s += tl.load(x + (o + k) % (tl.num_programs(0) * BLOCK))
    tl.store(out + o, s)


@tilewright.jit
def scale(a, factor):
    return a * factor


@tilewright.jit
def pair(a, b):
    if a.dtype == tl.int32:
        return scale(a, 2), b
    return a, b


@tilewright.jit
def absolute(a):
    if tl.sum(a, axis=0) > 0:
        return a
    return -a


@tilewright.jit
def nested_functions(x, y, out, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    p, q = pair(tl.load(x + o), tl.load(y + o))
    tl.store(out + o, absolute(p) - scale(q, 3))


@tilewright.jit
def unrolled(x, out, N: tl.constexpr, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + o)
    for k in tl.static_range(N):
        if k % 2 == 0:
            a = a * (k + 1)
        else:
            a = a - k
    tl.store(out + o, a)


@tilewright.jit
def ternaries(x, out, limit, USE: tl.constexpr, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    o = p * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + o)
    step = 3 if p > limit else 5
    a = a * step if USE else a
    tl.store(out + o, a)


@tilewright.jit
def loop_in_branch(x, out, n, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    o = p * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + o)
    if p % 2 == 0:
        for k in range(p):
            a += k
    else:
        k = 0
        while k < n:
            a -= tl.load(x + o)
            k += 2
    tl.store(out + o, a)


@tilewright.jit
def zero_trip_loop(x, out, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + o)
    for k in range(5, n):
        a += k
    tl.store(out + o, a)


@tilewright.jit
def flip_in_nested_loops(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    o = tl.program_id(0) * BLOCK
    a, b = tl.load(x + o + i), tl.load(y + o + i)
    for _ in range(n):
        for _ in range(2):
            b = tl.flip(a + b, 0)
    tl.store(out + o + i, b)


@tilewright.jit
def horner(x, out, degree, coefficients, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + o)
    y = tl.zeros((BLOCK,), tl.float32)
    for k in range(degree):
        y = y * a + tl.load(coefficients + k)
    tl.store(out + o, y)


@tilewright.jit
def uint64_loop(out, steps, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    state = tl.full((BLOCK,), 88172645463325252, tl.uint64) + tl.arange(0, BLOCK).to(tl.uint64)
    for _ in range(steps + p):
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
    tl.store(out + p * BLOCK + tl.arange(0, BLOCK), state)


def _case(
    kernel: object, reference: Reference, names: str = "x", dtype: DTypeLike = np.int32,
    out: int = PROGRAMS * WIDTH, tolerance: Close = EXACT, size: int = PROGRAMS * WIDTH,
    **more: object,
) -> Case:  # fmt: skip
    def inputs(rng: np.random.Generator) -> Values:
        is_int = np.dtype(dtype).kind == "i"
        make = (
            (lambda: whole(rng, size, dtype, -100, 100))
            if is_int
            else (lambda: normal(rng, size, dtype))
        )
        return {**{n: make() for n in names}, "out": blank(out, dtype), **more}

    return Case(
        kernel.fn.__name__.replace("_", "-"), kernel, (PROGRAMS,), inputs, reference, tolerance
    )


def _blocks(array: np.ndarray) -> np.ndarray:
    return array.reshape(PROGRAMS, -1)


def _sum_over_blocks(a: SimpleNamespace) -> None:
    a.out[:] = wide(a.x).reshape(PROGRAMS, a.stride)[:, : a.n].sum(axis=1)


def _doubled(a: SimpleNamespace) -> None:
    a.out[:] = a.x * 2


def _carried_scalars(a: SimpleNamespace) -> None:
    x = _blocks(a.x)
    a.out[:] = np.stack([x.min(1), x.max(1), x.sum(1)], axis=1).ravel()


def _swap(a: SimpleNamespace) -> None:
    p, q = a.x, a.y
    for _ in range(a.steps):
        p, q = q, p + q
    a.out[:] = p


def _nested(a: SimpleNamespace) -> None:
    x, s = a.x.copy(), np.zeros_like(a.x)
    for i in range(a.n):
        for j in range(i, a.m):
            s += x * (i - j)
        x += 1
    a.out[:] = s


def _negative_step(a: SimpleNamespace) -> None:
    for p in range(PROGRAMS):
        for position, k in enumerate(range(a.n - 1, -1, -2)):
            a.out[p * a.BLOCK + position] = k * 10 + p


def _collatz(a: SimpleNamespace) -> None:
    for p, v in enumerate(a.x):
        steps, v = 0, int(v)
        while v != 1:
            v = v // 2 if v % 2 == 0 else 3 * v + 1
            steps += 1
        a.out[p] = steps


def _branch_merges(a: SimpleNamespace) -> None:
    x, out = _blocks(a.x), _blocks(a.out)
    for p in range(PROGRAMS):
        out[p] = (x[p] * 2 + p, x[p] - 5 + 10, -x[p] + x[p].sum())[p % 3]


def _branch_on_data(a: SimpleNamespace) -> None:
    x, out = _blocks(a.x), _blocks(a.out)
    for p in range(PROGRAMS):
        big = 1000 if x[p].max() > 90 else 0
        out[p] = x[p] + big if x[p].sum() > 0 else x[p] * x[p]


def _early_return(a: SimpleNamespace) -> None:
    x, out = _blocks(a.x), _blocks(a.out)
    for p in range(PROGRAMS):
        if p * a.BLOCK < a.n:
            out[p] = x[p] if x[p].sum() < 0 else x[p] + 1


def _first_above(a: SimpleNamespace) -> None:
    hits = _blocks(a.x) > a.limit
    a.out[:] = np.where(hits.any(1), hits.argmax(1), a.n)


def _skip_some(a: SimpleNamespace) -> None:
    i = np.arange(a.x.size)
    a.out[:] = sum(a.x[(i + k) % a.x.size] for k in range(a.n) if k % 3 != 1)


def _nested_functions(a: SimpleNamespace) -> None:
    x, y, out = _blocks(a.x), _blocks(a.y), _blocks(a.out)
    doubled = x * 2
    out[:] = np.where(doubled.sum(1, keepdims=True) > 0, doubled, -doubled) - y * 3


def _unrolled(a: SimpleNamespace) -> None:
    x = a.x.copy()
    for k in range(a.N):
        x = x * (k + 1) if k % 2 == 0 else x - k
    a.out[:] = x


def _ternaries(a: SimpleNamespace) -> None:
    step = np.where(np.arange(PROGRAMS) > a.limit, 3, 5)[:, None]
    _blocks(a.out)[:] = _blocks(a.x) * step


def _loop_in_branch(a: SimpleNamespace) -> None:
    x, out = _blocks(a.x), _blocks(a.out)
    for p in range(PROGRAMS):
        trips = -(-a.n // 2)
        out[p] = x[p] + sum(range(p)) if p % 2 == 0 else x[p] - trips * x[p]


def _same(a: SimpleNamespace) -> None:
    a.out[:] = a.x


def _flip_in_nested_loops(a: SimpleNamespace) -> None:
    x, b = _blocks(a.x), _blocks(a.y)
    for _ in range(2 * a.n):
        b = (x + b)[:, ::-1]
    _blocks(a.out)[:] = b


def _horner(a: SimpleNamespace) -> None:
    y = np.zeros_like(a.x)
    for c in a.coefficients:
        y = y * a.x + c
    a.out[:] = y


def _xorshift(a: SimpleNamespace) -> None:
    for p in range(PROGRAMS):
        s = np.uint64(88172645463325252) + np.arange(a.BLOCK, dtype=np.uint64)
        for _ in range(a.steps + p):
            s ^= s << np.uint64(13)
            s ^= s >> np.uint64(7)
            s ^= s << np.uint64(17)
        a.out[p * a.BLOCK : (p + 1) * a.BLOCK] = s


W = WIDTH
CASES = [
    _case(sum_over_blocks, _sum_over_blocks, dtype=np.float32, out=PROGRAMS, size=PROGRAMS * 1100,
          tolerance=Close(1e-5, 1e-4), n=1003, stride=1100, BLOCK=64),
    _case(carried_pointers, _doubled, size=PROGRAMS * 75, out=PROGRAMS * 75, n=75, BLOCK=W),
    _case(carried_scalars, _carried_scalars, out=PROGRAMS * 3, n=W),
    _case(swap_carried_tiles, _swap, names="xy", steps=11, BLOCK=W),
    _case(nested_loops, _nested, n=4, m=6, BLOCK=W),
    _case(loop_with_negative_step, _negative_step, names="", n=15, BLOCK=W),
    Case(
        "collatz", collatz, (27,),
        lambda rng: {"x": np.arange(1, 28, dtype=np.int32), "out": blank(27, np.int32), "n": 27},
        _collatz,
    ),
    _case(branch_merges_tiles, _branch_merges, BLOCK=W),
    _case(branch_on_data, _branch_on_data, BLOCK=W),
    _case(early_return, _early_return, n=4 * W, BLOCK=W),
    _case(first_above, _first_above, out=PROGRAMS, n=W, limit=93),
    _case(skip_some, _skip_some, n=8, BLOCK=W),
    _case(nested_functions, _nested_functions, names="xy", BLOCK=W),
    _case(unrolled, _unrolled, N=6, BLOCK=W),
    _case(ternaries, _ternaries, limit=2, USE=True, BLOCK=W),
    _case(loop_in_branch, _loop_in_branch, n=7, BLOCK=W),
    _case(zero_trip_loop, _same, n=5, BLOCK=W),
    _case(
        flip_in_nested_loops, _flip_in_nested_loops, names="xy", n=3, BLOCK=512,
        size=PROGRAMS * 512, out=PROGRAMS * 512,
    ),
    Case(
        "horner", horner, (PROGRAMS,),
        lambda rng: {
            "x": normal(rng, PROGRAMS * W), "out": blank(PROGRAMS * W), "degree": 9,
            "coefficients": normal(rng, 9), "BLOCK": W,
        },
        _horner,
    ),
    _case(uint64_loop, _xorshift, names="", dtype=np.uint64, steps=20, BLOCK=W),
]  # fmt: skip
