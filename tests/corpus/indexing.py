"""Gather, sort, top-k, histogram and random numbers."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from numpy.typing import DTypeLike

import tilewright
import tilewright.language as tl
from tests.corpus.case import (
    EXACT,
    Array,
    Case,
    Close,
    Reference,
    Values,
    blank,
    data,
    normal,
    short,
    whole,
    wide,
)  # fmt: skip


@tilewright.jit
def gather_lanes(x, index, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    p = tl.program_id(0)
    i = tl.arange(0, M)[:, None]
    a = tl.load(x + p * M * N + i * N + tl.arange(0, N)[None, :])
    k = tl.load(index + p * M * K + i * K + tl.arange(0, K)[None, :])
    tl.store(out + p * M * K + i * K + tl.arange(0, K)[None, :], tl.gather(a, k, 1))


@tilewright.jit
def gather_rows(x, index, out, M: tl.constexpr, N: tl.constexpr):
    p = tl.program_id(0)
    o = p * M * N + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + o, tl.gather(tl.load(x + o), tl.load(index + o), 0))


@tilewright.jit
def gather_of_computed(x, out, N: tl.constexpr):
    o = tl.program_id(0) * N + tl.arange(0, N)
    a = tl.load(x + o)
    b = tl.gather(a * 2 + 1, (tl.arange(0, N) * 5 + 3) % N, 0)
    tl.store(out + o, tl.cumsum(b, axis=0))


@tilewright.jit
def sort(x, out, places, DESCENDING: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    p = tl.program_id(0)
    o = p * M * N + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(x + o)
    tl.store(out + o, tl.sort(a, descending=DESCENDING))
    tl.store(places + o, tl.argsort(a, descending=DESCENDING))


@tilewright.jit
def top(x, out, columns, K: tl.constexpr, N: tl.constexpr):
    p = tl.program_id(0)
    j = tl.arange(0, N)
    a = tl.load(x + p * columns + j, mask=j < columns, other=float("-inf"))
    tl.store(out + p * K + tl.arange(0, K), tl.topk(a, K))


@tilewright.jit
def count(x, out, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    i = p * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=0)
    tl.store(out + p * BINS + tl.arange(0, BINS), tl.histogram(a, BINS, mask=i < n))


@tilewright.jit
def random_bits(out, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.randint(seed, i))


@tilewright.jit
def random_floats(out, other, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.rand(seed, i))
    tl.store(other + i, tl.randn(seed, i))


@tilewright.jit
def dropout(x, out, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=0.0)
    keep = tl.rand(seed, i) > p
    tl.store(out + i, tl.where(keep, a / (1 - p), 0.0), mask=i < n)


def philox(seed: int, offsets: Array) -> tuple[Array, ...]:
    """Philox-4x32-10 for many offsets at once."""
    low = np.uint64(0xFFFFFFFF)
    c = [offsets.astype(np.uint64), *(np.zeros(offsets.shape, np.uint64) for _ in range(3))]
    k = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)]
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ k[0], p1 & low, (p0 >> np.uint64(32)) ^ c[3] ^ k[1],
             p0 & low]  # fmt: skip
        k = [(k[0] + np.uint64(0x9E3779B9)) & low, (k[1] + np.uint64(0xBB67AE85)) & low]
    return tuple(word.astype(np.uint32) for word in c)


def uniform(words: Array) -> Array:
    """Words as float32 in [0, 1)."""
    signed = words.view(np.int32)
    return np.where(signed < 0, -signed - 1, signed).astype(np.float32) * np.float32(
        4.6566127342e-10
    )


def _gather_lanes(a: SimpleNamespace) -> None:
    a.out[:] = np.take_along_axis(a.x, a.index, axis=2)


def _gather_rows(a: SimpleNamespace) -> None:
    a.out[:] = np.take_along_axis(a.x, a.index, axis=1)


def _gather_of_computed(a: SimpleNamespace) -> None:
    place = (np.arange(64) * 5 + 3) % 64
    a.out[:] = np.cumsum((a.x * 2 + 1)[:, place], axis=1)


def _sort_case(dtype: DTypeLike, is_descending: bool) -> Case:
    shape = (3, 4, 64)

    def inputs(rng: np.random.Generator) -> Values:
        x = data(rng, shape, dtype)
        x[:, :, 10:20] = x[:, :, 0:1]  # ties: equal values keep their order
        return {
            "x": x, "out": blank(shape, dtype), "places": blank(shape, np.int32),
            "DESCENDING": is_descending, "M": 4, "N": 64,
        }  # fmt: skip

    def reference(a: SimpleNamespace) -> None:
        x = wide(a.x) if np.dtype(dtype).kind not in "iu" else a.x.astype(object)
        order = np.argsort(-x if is_descending else x, axis=2, kind="stable")
        a.places[:] = order
        a.out[:] = np.take_along_axis(a.x, order, axis=2)

    name = f"sort-{'descending-' if is_descending else ''}{short(dtype)}"
    return Case(name, sort, (3,), inputs, reference)


def _top(a: SimpleNamespace) -> None:
    a.out[:] = np.sort(a.x, axis=1)[:, ::-1][:, :8]


def _count(a: SimpleNamespace) -> None:
    for p in range(5):
        part = a.x[p * 64 : (p + 1) * 64]
        a.out[p] = np.bincount(part[(part >= 0) & (part < 16)], minlength=16)


def _random_bits(a: SimpleNamespace) -> None:
    a.out[:] = philox(a.seed, np.arange(a.out.size))[0]


def _random_floats(a: SimpleNamespace) -> None:
    words = philox(a.seed, np.arange(a.out.size))
    a.out[:] = uniform(words[0])
    u1, u2 = np.maximum(wide(uniform(words[0])), 1e-7), wide(uniform(words[1]))
    a.other[:] = np.sqrt(-2 * np.log(u1)) * np.cos(2 * np.pi * u2)


def _dropout(a: SimpleNamespace) -> None:
    keep = uniform(philox(a.seed, np.arange(a.n))[0]) > np.float32(a.p)
    a.out[:] = np.where(keep, wide(a.x) / (1 - np.float32(a.p)), 0)


def _case(name: str, kernel: object, programs: int, inputs: object, reference: Reference,
          tolerance: Close = EXACT) -> Case:  # fmt: skip
    return Case(name, kernel, (programs,), inputs, reference, tolerance)


CASES = [
    *(
        _case(
            f"gather-lanes-{short(dtype)}", gather_lanes, 3,
            lambda rng, dtype=dtype: {
                "x": data(rng, (3, 8, 32), dtype), "index": whole(rng, (3, 8, 16), np.int32, 0, 32),
                "out": blank((3, 8, 16), dtype), "M": 8, "N": 32, "K": 16,
            },
            _gather_lanes,
        )
        for dtype in (np.float32, np.int8, np.float64)
    ),
    _case(
        "gather-rows-of-a-tile", gather_rows, 3,
        lambda rng: {
            "x": normal(rng, (3, 16, 8)), "index": whole(rng, (3, 16, 8), np.int32, 0, 16),
            "out": blank((3, 16, 8)), "M": 16, "N": 8,
        },
        _gather_rows,
    ),
    _case(
        "gather-of-computed", gather_of_computed, 4,
        lambda rng: {
            "x": whole(rng, (4, 64), np.int32, -999, 999), "out": blank((4, 64), np.int32), "N": 64
        },
        _gather_of_computed,
    ),
    *(_sort_case(d, False) for d in (np.float32, np.int32, np.uint8, np.int64, np.float16)),
    *(_sort_case(d, True) for d in (np.float64, np.int16, np.uint32)),
    _case(
        "top-k", top, 7,
        lambda rng: {
            "x": normal(rng, (7, 50)), "out": blank((7, 8)), "columns": 50, "K": 8, "N": 64
        },
        _top,
    ),
    _case(
        "histogram", count, 5,
        lambda rng: {
            "x": whole(rng, 300, np.int32, -3, 20), "out": blank((5, 16), np.int32), "n": 300,
            "BINS": 16, "BLOCK": 64,
        },
        _count,
    ),
    _case(
        "philox-bits", random_bits, 4,
        lambda rng: {"out": blank(256, np.uint32), "seed": 0x1234_5678_9ABC, "BLOCK": 64},
        _random_bits,
    ),
    _case(
        "philox-floats", random_floats, 4,
        lambda rng: {"out": blank(256), "other": blank(256), "seed": 42, "BLOCK": 64},
        _random_floats, Close(2e-6, 2e-6),
    ),
    _case(
        "dropout", dropout, 4,
        lambda rng: {
            "x": normal(rng, 250), "out": blank(250), "n": 250, "p": 0.3, "seed": 7, "BLOCK": 64
        },
        _dropout, Close(3e-7),
    ),
]  # fmt: skip
