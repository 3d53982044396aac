"""Atomics on a simulated GPU agree with the reference interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.codegen.simt.launching import check, llvm_text, ptx_text, random_array

WARPS = (1, 8)


@tilewright.jit
def scatter(x, where, y, old, N: tl.constexpr, KIND: tl.constexpr, KEEP: tl.constexpr):
    places = tl.program_id(0) * N + tl.arange(0, N)
    value = tl.load(x + places)
    target = y + tl.load(where + places)
    mask = value != 3
    if KIND == "add":
        found = tl.atomic_add(target, value, mask)
    elif KIND == "and":
        found = tl.atomic_and(target, value, mask)
    elif KIND == "or":
        found = tl.atomic_or(target, value, mask)
    elif KIND == "xor":
        found = tl.atomic_xor(target, value, mask)
    elif KIND == "max":
        found = tl.atomic_max(target, value, mask)
    elif KIND == "min":
        found = tl.atomic_min(target, value, mask)
    else:
        found = tl.atomic_xchg(target, value, mask)
    if KEEP:
        tl.store(old + places, found, mask)


KINDS = ("add", "and", "or", "xor", "max", "min", "xchg")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_integers_that_meet(dtype: str, kind: str) -> None:
    x = random_array((2, 64), dtype)
    where = random_array((2, 64), "uint32", 1, span=16).astype(np.int32)
    if kind == "xchg":
        where = np.arange(128, dtype=np.int32)
    y, old = random_array((128,), dtype, 2), np.zeros((2, 64), dtype)
    # Old values differ where programs or threads meet in another order.
    keep = kind == "xchg"
    check(scatter, (2,), x, where, y, old, N=64, KIND=kind, KEEP=keep, num_warps=4)


@pytest.mark.parametrize("kind", ["add", "max", "min", "xchg"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_each_at_a_place_of_its_own(dtype: str, kind: str) -> None:
    x = random_array((2, 64), dtype)
    where = np.random.default_rng(0).permutation(128).astype(np.int32)
    y, old = random_array((128,), dtype, 2), np.zeros((2, 64), dtype)
    check(scatter, (2,), x, where, y, old, N=64, KIND=kind, KEEP=True, num_warps=4)


@pytest.mark.parametrize("num_warps", WARPS)
@pytest.mark.parametrize("n", [2, 16, 64, 512])
def test_each_element_acts_once_and_all_copies_get_the_old_value(n: int, num_warps: int) -> None:
    x = random_array((1, n), "int32") + 200
    y, old = np.zeros(n, np.int32), np.zeros((1, n), np.int32)
    where = np.arange(n, dtype=np.int32)[::-1].copy()
    options = {"N": n, "KIND": "add", "KEEP": True}
    check(scatter, (1,), x, where, y, old, num_warps=num_warps, **options)


@tilewright.jit
def halves(x, y, N: tl.constexpr):
    tl.atomic_add(y + tl.arange(0, N), tl.load(x + tl.arange(0, N)), sem="relaxed")


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_adjacent_floats_are_added_in_one_access(dtype: str) -> None:
    x, y = random_array((1024,), dtype), random_array((1024,), dtype, 1)
    text = ptx_text(halves, (x, y), N=1024, num_warps=4)
    wide = ".add.v4.f32" if dtype == "float32" else ".add.noftz.v4.f16x2"
    assert f"red.relaxed.gpu.global{wide}" in text


@tilewright.jit
def tickets(counter, y, N: tl.constexpr):
    first = tl.atomic_add(counter, N)
    tl.store(y + first + tl.arange(0, N), first)
    tl.atomic_max(counter + 1, first)


@pytest.mark.parametrize("num_warps", WARPS)
def test_a_scalar_acts_once_and_every_thread_sees_it(num_warps: int) -> None:
    counter, y = np.zeros(2, np.int32), np.zeros(4 * 64, np.int32)
    check(tickets, (4,), counter, y, N=64, num_warps=num_warps)


@tilewright.jit
def swaps(y, expected, new, old, N: tl.constexpr):
    places = tl.arange(0, N)
    found = tl.atomic_cas(y + places, tl.load(expected + places), tl.load(new + places))
    tl.store(old + places, found)


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "float16", "float32", "float64"])
def test_compare_and_swap(dtype: str) -> None:
    y = random_array((128,), dtype, span=4).round().astype(dtype)
    expected = random_array((128,), dtype, 1, span=4).round().astype(dtype)
    new, old = random_array((128,), dtype, 2), np.zeros(128, dtype)
    check(swaps, (1,), y, expected, new, old, N=128, num_warps=4)


@tilewright.jit
def locks(lock, total, N: tl.constexpr):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total + tl.arange(0, N), tl.load(total + tl.arange(0, N)) + 1)
    tl.atomic_xchg(lock, 0)


@pytest.mark.parametrize("num_warps", WARPS)
def test_a_lock_guards_what_is_behind_it(num_warps: int) -> None:
    lock, total = np.zeros(1, np.int32), np.zeros(256, np.int32)
    check(locks, (3,), lock, total, N=256, num_warps=num_warps)


@tilewright.jit
def flags(x, y, flag):
    tl.atomic_store(flag, 5)
    seen = tl.atomic_load(flag)
    each = tl.atomic_load(x + tl.arange(0, 64), mask=tl.arange(0, 64) < 50, sem="relaxed")
    tl.atomic_store(y + tl.arange(0, 64), each + seen, mask=tl.arange(0, 64) < 50)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_atomic_loads_and_stores(dtype: str) -> None:
    x, y, flag = random_array((64,), dtype, span=50), np.zeros(64, dtype), np.zeros(1, dtype)
    check(flags, (1,), x, y, flag, num_warps=4)


@tilewright.jit
def orders(y, ORDER: tl.constexpr, SCOPE: tl.constexpr):
    tl.atomic_add(y, 1, sem=ORDER, scope=SCOPE)


@pytest.mark.parametrize("order", ["relaxed", "acquire", "release", "acq_rel"])
@pytest.mark.parametrize("scope", ["cta", "gpu", "sys"])
def test_order_and_scope_reach_ptx(order: str, scope: str) -> None:
    text = ptx_text(orders, (np.zeros(1, np.int32),), ORDER=order, SCOPE=scope, num_warps=4)
    name = "red" if order in ("relaxed", "release") else "atom"
    assert f"{name}.{order}.{scope}.global.add.u32" in text


def test_a_release_comes_after_a_barrier_and_an_acquire_before_one() -> None:
    text = llvm_text(orders, (np.zeros(1, np.int32),), ORDER="acq_rel", SCOPE="gpu", num_warps=4)
    first, _, second = text.partition("atom.acq_rel")
    assert "barrier.cta.sync" in first.split("define ptx_kernel")[1]
    assert "barrier.cta.sync" in second
