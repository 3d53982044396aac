"""Atomics whose result does not depend on the order of programs."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from numpy.typing import DTypeLike

import tilewright
import tilewright.language as tl
from tests.corpus.case import EXACT, Case, Close, Reference, Values, blank, data, short, whole

PROGRAMS, BLOCK_SIZE = 24, 32
N = PROGRAMS * BLOCK_SIZE - 19


@tilewright.jit
def accumulate(x, out, n, cells, OP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=0)
    cell = out + i % cells
    if OP == "add":
        tl.atomic_add(cell, a, mask=i < n)
    elif OP == "max":
        tl.atomic_max(cell, a, mask=i < n)
    elif OP == "min":
        tl.atomic_min(cell, a, mask=i < n)
    elif OP == "and":
        tl.atomic_and(cell, a, mask=i < n)
    elif OP == "or":
        tl.atomic_or(cell, a, mask=i < n)
    else:
        tl.atomic_xor(cell, a, mask=i < n)


@tilewright.jit
def tickets(counter, taken):
    ticket = tl.atomic_add(counter, 1)
    tl.store(taken + ticket, tl.program_id(0))


@tilewright.jit
def once_each(tickets, marks, BLOCK: tl.constexpr):
    first = tl.atomic_add(tickets, BLOCK, sem="relaxed")
    tl.store(marks + first + tl.arange(0, BLOCK), 1)


@tilewright.jit
def count_by_cas(out):
    old = tl.atomic_cas(out, 0, 0)
    seen = tl.atomic_cas(out, old, old + 1)
    while seen != old:
        old = seen
        seen = tl.atomic_cas(out, old, old + 1)


@tilewright.jit
def exchange_all(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.atomic_xchg(x + i, i))


@tilewright.jit
def locked_sum(x, out, lock, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    b = tl.load(out + i, mask=i < n, other=0)
    tl.store(out + i, a + b, mask=i < n)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@tilewright.jit
def relay(flags, out, x):
    p = tl.program_id(0)
    while tl.atomic_add(flags, 0, sem="acquire") != p:
        pass
    before = tl.load(out + p)
    tl.store(out + p + 1, before * 3 + tl.load(x + p))
    tl.atomic_add(flags, 1, sem="release")


@tilewright.jit
def last_one_sums(x, parts, out, arrived, BLOCK: tl.constexpr, PARTS: tl.constexpr):
    p = tl.program_id(0)
    a = tl.load(x + p * BLOCK + tl.arange(0, BLOCK))
    tl.store(parts + p, tl.sum(a, axis=0))
    ticket = tl.atomic_add(arrived, 1, sem="acq_rel")
    if ticket == tl.num_programs(0) - 1:
        i = tl.arange(0, PARTS)
        s = tl.load(parts + i, mask=i < tl.num_programs(0), other=0)
        tl.store(out, tl.sum(s, axis=0))


@tilewright.jit
def masked_scalars(x, cells, words):
    p = tl.program_id(0)
    a = tl.load(x + p)
    tl.atomic_add(cells, a, mask=a > 3)
    tl.atomic_max(cells + 1, a, mask=a < 3)
    tl.atomic_xchg(words + p, p, mask=a == 3)
    tl.atomic_store(words + 32 + p, a, mask=p % 3 == 0)
    seen = tl.atomic_load(words + 64 + p, mask=p % 2 == 0)
    if p % 2 == 0:
        tl.store(words + 96 + p, seen + 1)


@tilewright.jit
def old_values(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.atomic_add(x + i, i) * 2)


_COMBINE = {
    "add": np.add, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


def _accumulate_case(operation: str, dtype: DTypeLike, cells: int) -> Case:
    kind = np.dtype(dtype)

    def inputs(rng: np.random.Generator) -> Values:
        # Floats are small whole numbers, which add exactly in any order.
        is_float = kind.kind == "f"
        x = rng.integers(-8, 9, N).astype(kind) if is_float else data(rng, N, kind)
        return {
            "x": x, "out": blank(cells, kind), "n": N, "cells": cells, "OP": operation,
            "BLOCK": BLOCK_SIZE,
        }  # fmt: skip

    def reference(a: SimpleNamespace) -> None:
        _COMBINE[operation].at(a.out, np.arange(N) % cells, a.x)

    name = f"atomic-{operation}-{short(kind)}-{cells}"
    return Case(name, accumulate, (PROGRAMS,), inputs, reference)


def _count_reference(a: SimpleNamespace) -> None:
    a.out[0] += PROGRAMS


def _once_reference(a: SimpleNamespace) -> None:
    a.tickets[0] = PROGRAMS * BLOCK_SIZE
    a.marks[:] = 1


def _exchange_reference(a: SimpleNamespace) -> None:
    a.out[:] = a.x
    a.x[:] = np.arange(a.x.size)


def _locked_reference(a: SimpleNamespace) -> None:
    a.out[:] += a.x.sum(axis=0, dtype=np.int32)


def _relay_reference(a: SimpleNamespace) -> None:
    for p in range(PROGRAMS):
        a.out[p + 1] = a.out[p] * np.int32(3) + a.x[p]
    a.flags[0] = PROGRAMS


def _last_one_reference(a: SimpleNamespace) -> None:
    a.parts[:] = a.x.sum(axis=1, dtype=np.int32)
    a.out[0] = a.x.sum(dtype=np.int32)
    a.arrived[0] = PROGRAMS


def _masked_scalars_reference(a: SimpleNamespace) -> None:
    a.cells[0] += a.x[a.x > 3].sum()
    a.cells[1] = max(a.cells[1], a.x[a.x < 3].max())
    p = np.arange(PROGRAMS)
    a.words[p[a.x == 3]] = p[a.x == 3]
    a.words[32 + p[::3]] = a.x[::3]
    a.words[96 + p[::2]] = a.words[64 + p[::2]] + 1


def _old_values_reference(a: SimpleNamespace) -> None:
    a.out[:] = a.x * 2
    a.x[:] += np.arange(a.x.size, dtype=np.int32)


def _case(kernel: object, inputs: object, reference: Reference, tolerance: Close = EXACT) -> Case:
    name = kernel.fn.__name__.replace("_", "-")
    return Case(name, kernel, (PROGRAMS,), inputs, reference, tolerance)


def _zero(dtype: DTypeLike = np.int32) -> np.ndarray:
    return np.zeros(1, dtype)


_TYPES = (np.int32, np.uint32, np.int64, np.uint64)
CASES = [
    *(_accumulate_case(op, dtype, 5) for op in ("add", "max", "min") for dtype in _TYPES),
    *(_accumulate_case(op, np.float32, 5) for op in ("add", "max", "min")),
    _accumulate_case("add", np.float64, 3),
    _accumulate_case("max", np.float64, 3),
    _accumulate_case("add", np.float16, 64),
    *(_accumulate_case(op, d, 7) for op in ("and", "or", "xor") for d in (np.int32, np.uint64)),
    _accumulate_case("add", np.int32, 1),
    _accumulate_case("add", np.int32, 2 * N),
    _case(
        once_each,
        lambda rng: {
            "tickets": _zero(), "marks": np.zeros(PROGRAMS * BLOCK_SIZE, np.int32),
            "BLOCK": BLOCK_SIZE,
        },
        _once_reference,
    ),
    _case(count_by_cas, lambda rng: {"out": whole(rng, 1, np.int32, 0, 100)}, _count_reference),
    _case(
        exchange_all,
        lambda rng: {
            "x": whole(rng, PROGRAMS * 32), "out": blank(PROGRAMS * 32, np.int32), "BLOCK": 32
        },
        _exchange_reference,
    ),
    _case(
        locked_sum,
        lambda rng: {
            "x": whole(rng, (PROGRAMS, 50), np.int32, -999, 999), "out": blank(50, np.int32),
            "lock": _zero(), "n": 50, "BLOCK": 64,
        },
        _locked_reference,
    ),
    _case(
        relay,
        lambda rng: {
            "flags": _zero(), "out": np.ones(PROGRAMS + 1, np.int32),
            "x": whole(rng, PROGRAMS, np.int32, 0, 5),
        },
        _relay_reference,
    ),
    _case(
        last_one_sums,
        lambda rng: {
            "x": whole(rng, (PROGRAMS, 64), np.int32, -99, 99),
            "parts": np.zeros(PROGRAMS, np.int32), "out": _zero(), "arrived": _zero(),
            "BLOCK": 64, "PARTS": 32,
        },
        _last_one_reference,
    ),
    _case(
        masked_scalars,
        lambda rng: {
            "x": whole(rng, PROGRAMS, np.int32, 0, 7),
            "cells": np.zeros(2, np.int32),
            "words": whole(rng, 128),
        },
        _masked_scalars_reference,
    ),
    _case(
        old_values,
        lambda rng: {
            "x": whole(rng, PROGRAMS * 32, np.int32, -99, 99),
            "out": blank(PROGRAMS * 32, np.int32), "BLOCK": 32,
        },
        _old_values_reference,
    ),
]  # fmt: skip
