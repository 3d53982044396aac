"""Kernels against every guess: odd widths, masks of any form, overlaps, depth and long chains.

Each is small; what is hard is that shapes do not fit, bounds meet, trip counts are zero, and
tiles, masks and pointers come out of loops and branches. Sums are of whole numbers, so that
nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np

import tilewright
import tilewright.language as tl
from tests.corpus.case import Case, Values, blank, whole

PROGRAMS = 5


@tilewright.jit
def bounded_both_ways(x, out, low, high, stride, BLOCK: tl.constexpr, OUTSIDE: tl.constexpr):
    p = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    if OUTSIDE:
        mask = (j < low) | (j >= high)
    else:
        mask = (j >= low) & (j < high)
    mask = mask & (j < stride)
    v = tl.load(x + p * stride + j, mask=mask, other=-7)
    tl.store(out + p * stride + j, v * 3 + j, mask=mask)


@tilewright.jit
def mask_of_masks(x, y, out, n, m, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    odd, near, far = o % 2 == 1, o < n, o >= m
    mask = tl.where(odd, near, far) ^ ((o % 7 == 3) | ((o > 40) & (o <= 90)))
    a = tl.load(x + o, mask=mask & near, other=o)
    b = tl.load(y + o, mask=(mask | odd) & (o < n), other=a)
    tl.store(out + o, a * 5 - b, mask=o < n)


@tilewright.jit
def carried_mask(x, out, n, steps, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = o < n
    total = tl.zeros((BLOCK,), tl.int32)
    for k in range(steps):
        v = tl.load(x + o, mask=live, other=0)
        total += v * (k + 1)
        live = live & ((v + k) % 3 != 0)
    tl.store(out + o, total, mask=o < n)


@tilewright.jit
def chosen_pointers(x, y, out, n, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    o = tl.arange(0, BLOCK)
    source, other = x, y
    if p % 3 == 1:
        source, other = y, x
    elif p % 3 == 2:
        source = y + 3
    total = tl.zeros((BLOCK,), tl.int32)
    for k in range(p):
        total += tl.load(source + p * n + o, mask=o < n - k, other=0) * (k + 1)
        source, other = other, source
    tl.store(out + p * n + o, total, mask=o < n)


@tilewright.jit
def buffers_in_turn(x, y, n, steps, BLOCK: tl.constexpr):
    base = tl.program_id(0) * n
    o = tl.arange(0, BLOCK)
    here, there = x + base, y + base
    for _ in range(steps):
        left = tl.load(here + o, mask=o < n, other=0)
        right = tl.load(here + (o + 1) % n, mask=o < n, other=0)
        tl.store(there + o, left + right, mask=o < n)
        here, there = there, here


@tilewright.jit
def shifted_in_place(x, n, by, times, BLOCK: tl.constexpr):
    row = x + tl.program_id(0) * n
    o = tl.arange(0, BLOCK)
    for _ in range(times):
        v = tl.load(row + o, mask=o < n, other=0)
        tl.store(row + o + by, v + 1, mask=(o < n) & (o + by < n) & (o + by >= 0))


@tilewright.jit
def deeply_nested(x, out, a, b, c, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    o = tl.arange(0, BLOCK)
    v = tl.load(x + p * BLOCK + o)
    s, t = v, v + 1
    for i in range(a):
        for j in range(i, b):
            if (i + j) % 2 == 0:
                for k in range(c - i):
                    s, t = t, s + k
                    for m in range(j):
                        if m == p:
                            s += 1
                        else:
                            for q in range(k, m):
                                t -= q
            else:
                t += s
        s += i
    tl.store(out + p * BLOCK + o, s * 3 + t)


@tilewright.jit
def ends_early(x, out, limit, n, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    o = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.int32)
    k = 0
    for start in range(0, n, BLOCK):
        v = tl.load(x + p * n + start + o, mask=start + o < n, other=0)
        k += tl.sum(v, axis=0)
        while k > limit:
            total += v
            k -= 17
            if k % 5 == 0:
                k -= limit
    tl.store(out + p * BLOCK + o, total + k)


@tilewright.jit
def long_chain(x, out, BLOCK: tl.constexpr, LENGTH: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + o)
    w = v
    for k in tl.static_range(LENGTH):
        w = (w ^ (v + k)) * 3 - (w >> 2)
        v = v + (w & 15)
    tl.store(out + o, v + w)


@tilewright.jit
def turned_over(x, out, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    p = tl.program_id(0)
    i, j = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    at = x + p * ROWS * stride + i[:, None] * stride + j[None, :]
    a = tl.load(at, mask=j[None, :] < stride, other=1)
    b = tl.trans(a)
    c = tl.reshape(tl.trans(b + j[:, None] * i[None, :]), (COLUMNS, ROWS))
    d = tl.trans(c) - a * 2 + tl.sum(b, axis=0)[:, None] - tl.max(a, axis=0)[None, :]
    tl.store(out + p * ROWS * COLUMNS + i[:, None] * COLUMNS + j[None, :], d)


@tilewright.jit
def overlapping_product(x, out, K, gap, SIZE: tl.constexpr, TURNED: tl.constexpr):
    """Both operands are of one array and overlap; rows wrap around, and K may be zero."""
    p = tl.program_id(0)
    i, j = tl.arange(0, SIZE), tl.arange(0, SIZE)
    total = tl.zeros((SIZE, SIZE), tl.int32)
    for k in range(0, K, SIZE):
        a = tl.load(x + p + i[:, None] * gap + (k + j)[None, :], mask=(k + j)[None, :] < K, other=0)
        if TURNED:
            rows = x + p + 1 + j[:, None] * gap + (k + i)[None, :]
            b = tl.trans(tl.load(rows, mask=(k + i)[None, :] < K, other=0))
        else:
            rows = x + p + 1 + (k + i)[:, None] + j[None, :] * gap
            b = tl.load(rows, mask=(k + i)[:, None] < K, other=0)
        total = tl.dot(a, b, total)
    tl.store(out + p * SIZE * SIZE + i[:, None] * SIZE + j[None, :], total)


@tilewright.jit
def product_of_products(x, y, out, steps, SIZE: tl.constexpr):
    p = tl.program_id(0)
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    a = tl.load(x + p * SIZE * SIZE + at)
    b = tl.load(y + p * SIZE * SIZE + at)
    total = tl.zeros((SIZE, SIZE), tl.int32)
    for k in range(steps):
        if k % 2 == 0:
            total = tl.dot(a, b, total)
        else:
            total += tl.dot(tl.trans(b), a)
        a, b = tl.trans(b), (total & 3).to(tl.int8)
    tl.store(out + p * SIZE * SIZE + at, total)


@tilewright.jit
def running_sums(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0) * n
    o = tl.arange(0, BLOCK)
    before = 0
    for start in range(0, n, BLOCK):
        v = tl.load(x + row + start + o, mask=start + o < n, other=0)
        tl.store(out + row + start + o, tl.cumsum(v, axis=0) + before, mask=start + o < n)
        before += tl.sum(v, axis=0)


@tilewright.jit
def steps_of_zero(x, out, n, row_stride, column_stride, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    i, j = tl.arange(0, ROWS), tl.arange(0, BLOCK)
    at = x + n - 1 + i[:, None] * row_stride + j[None, :] * column_stride
    v = tl.load(at, mask=(i[:, None] + j[None, :]) % 3 != p % 3, other=-1)
    tl.store(out + p * ROWS * BLOCK + i[:, None] * BLOCK + j[None, :], v)


@tilewright.jit
def many_to_one(x, at, out, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(at + o, mask=o < n, other=0)
    wanted = (o < n) & ((index < BINS // 2) | (index == BINS - 1))
    tl.atomic_add(out + index, tl.load(x + o, mask=o < n, other=0), mask=wanted)


@tilewright.jit
def odd_grid(out, a, b):
    i, j, k = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    where = (i * tl.num_programs(1) + j) * tl.num_programs(2) + k
    value = i * 100 + j * 10 + k
    if (i * a + j) % 3 == k % 3:
        if b > k:
            tl.store(out + where, value)
    else:
        tl.store(out + where, -value)


def _bounded(v: SimpleNamespace) -> None:
    j = np.arange(v.BLOCK)
    inside = (j < v.low) | (j >= v.high) if v.OUTSIDE else (j >= v.low) & (j < v.high)
    taken = j[inside & (j < v.stride)]
    v.out[:, taken] = v.x[:, taken] * 3 + taken


def _mask_of_masks(v: SimpleNamespace) -> None:
    o = np.arange(v.n)
    odd = o % 2 == 1
    mask = np.where(odd, True, o >= v.m) ^ ((o % 7 == 3) | ((o > 40) & (o <= 90)))
    a = np.where(mask, v.x[: v.n], o)
    v.out[: v.n] = a * 5 - np.where(mask | odd, v.y[: v.n], a)


def _carried_mask(v: SimpleNamespace) -> None:
    live, total = np.ones(v.n, bool), np.zeros(v.n, np.int32)
    for k in range(v.steps):
        seen = np.where(live, v.x[: v.n], 0)
        total += seen * (k + 1)
        live &= (seen + k) % 3 != 0
    v.out[: v.n] = total


def _chosen(v: SimpleNamespace) -> None:
    for p in range(PROGRAMS):
        pairs = {0: (v.x, v.y), 1: (v.y, v.x), 2: (v.y[3:], v.y)}
        source, other = pairs[p % 3]
        total = np.zeros(v.n, np.int32)
        for k in range(p):
            taken = max(v.n - k, 0)
            total[:taken] += source[p * v.n : p * v.n + taken] * (k + 1)
            source, other = other, source
        v.out[p * v.n : (p + 1) * v.n] = total


def _in_turn(v: SimpleNamespace) -> None:
    here, there = v.x, v.y
    for _ in range(v.steps):
        there[:] = here + np.roll(here, -1, axis=1)
        here, there = there, here


def _shifted(v: SimpleNamespace) -> None:
    for _ in range(v.times):
        old = v.x.copy()
        for o in range(v.n):
            if 0 <= o + v.by < v.n:
                v.x[:, o + v.by] = old[:, o] + 1


def _nested(v: SimpleNamespace) -> None:
    for p in range(PROGRAMS):
        s = v.x[p].copy()
        t = s + 1
        for i in range(v.a):
            for j in range(i, v.b):
                if (i + j) % 2:
                    t = t + s
                    continue
                for k in range(v.c - i):
                    s, t = t, s + k
                    for m in range(j):
                        s = s + 1 if m == p else s
                        t = t if m == p else t - sum(range(k, m))
            s = s + i
        v.out[p] = s * 3 + t


def _ends_early(v: SimpleNamespace) -> None:
    for p in range(PROGRAMS):
        total, k = np.zeros(v.BLOCK, np.int32), 0
        for start in range(0, v.n, v.BLOCK):
            seen = np.zeros(v.BLOCK, np.int32)
            row = v.x[p, start : start + v.BLOCK]
            seen[: len(row)] = row
            k += int(seen.sum())
            while k > v.limit:
                total += seen
                k -= 17
                k -= v.limit if k % 5 == 0 else 0
        v.out[p] = total + k


def _chain(v: SimpleNamespace) -> None:
    a = v.x.copy()
    w = a.copy()
    for k in range(v.LENGTH):
        w = (w ^ (a + k)) * 3 - (w >> 2)
        a = a + (w & 15)
    v.out[:] = a + w


def _turned(v: SimpleNamespace) -> None:
    i, j = np.arange(v.ROWS), np.arange(v.COLUMNS)
    for p in range(PROGRAMS):
        a = np.ones((v.ROWS, v.COLUMNS), np.int32)
        a[:, : v.stride] = v.x[p][:, : v.COLUMNS]
        c = (a + np.outer(i, j)).reshape(v.COLUMNS, v.ROWS)
        v.out[p] = c.T - a * 2 + a.sum(axis=1)[:, None] - a.max(axis=0)[None, :]


def _overlapping(v: SimpleNamespace) -> None:
    wide = v.x.astype(np.int32)
    rows = np.arange(v.SIZE)[:, None] * v.gap + np.arange(v.K)[None, :]
    for p in range(PROGRAMS):
        v.out[p] = wide[p + rows] @ wide[p + 1 + rows].T


def _product_of_products(v: SimpleNamespace) -> None:
    for p in range(PROGRAMS):
        a, b = v.x[p].astype(np.int32), v.y[p].astype(np.int32)
        total = np.zeros_like(a)
        for k in range(v.steps):
            total = total + (a @ b if k % 2 == 0 else b.T @ a)
            a, b = b.T, total & 3
        v.out[p] = total


def _running(v: SimpleNamespace) -> None:
    v.out[:] = np.cumsum(v.x, axis=1)


def _zero(v: SimpleNamespace) -> None:
    i, j = np.arange(v.ROWS)[:, None], np.arange(v.BLOCK)[None, :]
    at = v.n - 1 + i * v.row_stride + j * v.column_stride
    for p in range(PROGRAMS):
        v.out[p] = np.where((i + j) % 3 != p % 3, v.x[at], -1)


def _many(v: SimpleNamespace) -> None:
    index = v.at[: v.n]
    wanted = (index < v.BINS // 2) | (index == v.BINS - 1)
    np.add.at(v.out, index[wanted], v.x[: v.n][wanted])


def _grid(v: SimpleNamespace) -> None:
    for (i, j, k), _ in np.ndenumerate(v.out):
        value = i * 100 + j * 10 + k
        if (i * v.a + j) % 3 != k % 3:
            v.out[i, j, k] = -value
        elif v.b > k:
            v.out[i, j, k] = value


Inputs = Callable[[np.random.Generator], Values]


def _case(
    kernel: tilewright.JITFunction,
    reference: Callable[[SimpleNamespace], None],
    inputs: Inputs,
    suffix: object = "",
    grid: tuple[int, ...] = (PROGRAMS,),
) -> Case:
    tail = f"-{suffix}" if suffix != "" else ""
    name = f"hostile-{kernel.__name__.replace('_', '-')}{tail}"
    return Case(name, kernel, grid, inputs, reference)


def _small(rng: np.random.Generator, shape: int | tuple[int, ...]) -> np.ndarray:
    return whole(rng, shape, np.int32, -99, 100)


def _bytes(rng: np.random.Generator, shape: int | tuple[int, ...]) -> np.ndarray:
    return whole(rng, shape, np.int8, -4, 5)


CASES: list[Case] = [
    *(
        _case(
            bounded_both_ways, _bounded,
            lambda rng, low=low, high=high, stride=stride, outside=outside: {
                "x": _small(rng, (PROGRAMS, stride)), "out": blank((PROGRAMS, stride), np.int32),
                "low": low, "high": high, "stride": stride, "BLOCK": 64, "OUTSIDE": outside,
            },
            f"{low}-{high}-{stride}-{'out' if outside else 'in'}",
        )
        for low, high, stride, outside in (
            (0, 0, 64, False), (5, 5, 61, False), (3, 61, 64, False), (-4, 99, 37, False),
            (63, 64, 64, False), (0, 64, 64, True), (5, 5, 61, True), (60, 3, 33, True),
            (1, 63, 63, True),
        )
    ),
    *(
        _case(
            mask_of_masks, _mask_of_masks,
            lambda rng, n=n, m=m: {
                "x": _small(rng, 320), "y": _small(rng, 320), "out": blank(320, np.int32),
                "n": n, "m": m, "BLOCK": 64,
            },
            f"{n}-{m}",
        )
        for n, m in ((320, 0), (319, 320), (1, 7), (257, 63), (0, 0))
    ),
    *(
        _case(
            carried_mask, _carried_mask,
            lambda rng, n=n, steps=steps: {
                "x": _small(rng, 320), "out": blank(320, np.int32), "n": n, "steps": steps,
                "BLOCK": 64,
            },
            f"{n}-{steps}",
        )
        for n, steps in ((320, 5), (203, 3), (65, 0))
    ),
    *(
        _case(
            chosen_pointers, _chosen,
            lambda rng, n=n: {
                "x": _small(rng, 512), "y": _small(rng, 512), "out": blank(512, np.int32),
                "n": n, "BLOCK": 64,
            },
            n,
        )
        for n in (64, 37, 1)
    ),
    *(
        _case(
            buffers_in_turn, _in_turn,
            lambda rng, n=n, steps=steps: {
                "x": _small(rng, (PROGRAMS, n)), "y": _small(rng, (PROGRAMS, n)), "n": n,
                "steps": steps, "BLOCK": 64,
            },
            f"{n}-{steps}",
        )
        for n, steps in ((64, 3), (41, 4), (33, 0), (1, 2))
    ),
    *(
        _case(
            shifted_in_place, _shifted,
            lambda rng, n=n, by=by, times=times: {
                "x": _small(rng, (PROGRAMS, n)), "n": n, "by": by, "times": times, "BLOCK": 128,
            },
            f"{n}-{by}-{times}",
        )
        for n, by, times in ((128, 1, 3), (100, -1, 4), (127, 33, 2), (65, -64, 2), (9, 9, 1))
    ),
    *(
        _case(
            deeply_nested, _nested,
            lambda rng, a=a, b=b, c=c: {
                "x": _small(rng, (PROGRAMS, 32)), "out": blank((PROGRAMS, 32), np.int32),
                "a": a, "b": b, "c": c, "BLOCK": 32,
            },
            f"{a}-{b}-{c}",
        )
        for a, b, c in ((3, 4, 3), (0, 5, 5), (4, 2, 1), (2, 5, 0))
    ),
    *(
        _case(
            ends_early, _ends_early,
            lambda rng, n=n, limit=limit: {
                "x": whole(rng, (PROGRAMS, n), np.int32, 0, 9),
                "out": blank((PROGRAMS, 32), np.int32), "limit": limit, "n": n, "BLOCK": 32,
            },
            f"{n}-{limit}",
        )
        for n, limit in ((96, 50), (77, 3), (33, 100000))
    ),
    *(
        _case(
            long_chain, _chain,
            lambda rng, length=length: {
                "x": _small(rng, PROGRAMS * 64), "out": blank(PROGRAMS * 64, np.int32),
                "BLOCK": 64, "LENGTH": length,
            },
            length,
        )
        for length in (1, 60)
    ),
    *(
        _case(
            turned_over, _turned,
            lambda rng, rows=rows, columns=columns, stride=stride: {
                "x": _small(rng, (PROGRAMS, rows, stride)),
                "out": blank((PROGRAMS, rows, columns), np.int32), "stride": stride,
                "ROWS": rows, "COLUMNS": columns,
            },
            f"{rows}x{columns}-{stride}",
        )
        for rows, columns, stride in ((16, 32, 32), (8, 64, 37), (32, 16, 19), (4, 8, 1))
    ),
    *(
        _case(
            overlapping_product, _overlapping,
            lambda rng, k=k, gap=gap, turned=turned: {
                "x": _bytes(rng, 4096), "out": blank((PROGRAMS, 32, 32), np.int32), "K": k,
                "gap": gap, "SIZE": 32, "TURNED": turned,
            },
            f"{k}-{gap}-{'turned' if turned else 'straight'}",
        )
        for k, gap, turned in (
            (64, 1, False), (33, 7, True), (0, 5, False), (97, 0, True), (64, 64, True),
        )
    ),
    *(
        _case(
            product_of_products, _product_of_products,
            lambda rng, steps=steps: {
                "x": _bytes(rng, (PROGRAMS, 32, 32)), "y": _bytes(rng, (PROGRAMS, 32, 32)),
                "out": blank((PROGRAMS, 32, 32), np.int32), "steps": steps, "SIZE": 32,
            },
            steps,
        )
        for steps in (0, 1, 4)
    ),
    *(
        _case(
            running_sums, _running,
            lambda rng, n=n: {
                "x": _small(rng, (PROGRAMS, n)), "out": blank((PROGRAMS, n), np.int32), "n": n,
                "BLOCK": 32,
            },
            n,
        )
        for n in (64, 65, 31, 1)
    ),
    *(
        _case(
            steps_of_zero, _zero,
            lambda rng, row=row, column=column: {
                "x": _small(rng, 512), "out": blank((PROGRAMS, 8, 32), np.int32), "n": 256,
                "row_stride": row, "column_stride": column, "ROWS": 8, "BLOCK": 32,
            },
            f"{row}-{column}",
        )
        for row, column in ((0, 0), (0, -1), (-9, 1), (3, -7), (-1, 0))
    ),
    *(
        _case(
            many_to_one, _many,
            lambda rng, n=n, bins=bins: {
                "x": _small(rng, 320), "at": whole(rng, 320, np.int32, 0, bins),
                "out": np.zeros(bins, np.int32), "n": n, "BINS": bins, "BLOCK": 64,
            },
            f"{n}-{bins}",
        )
        for n, bins in ((320, 8), (211, 1), (5, 300))
    ),
    *(
        _case(
            odd_grid, _grid,
            lambda rng, a=a, b=b: {"out": blank((3, 5, 7), np.int32), "a": a, "b": b},
            f"{a}-{b}", (3, 5, 7),
        )
        for a, b in ((1, 4), (2, 0))
    ),
]  # fmt: skip
