"""The memory model: order within a program, progress and atomicity between programs.

Compiled kernels run on the native pool with real threads; arrays are small, so that programs
meet on the same cells.
"""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.support.errors import DataRace, Deadlock

PROGRAMS = 2000


@tilewright.jit
def shift_within(x, n, source, target, BLOCK: tl.constexpr):
    p = x + tl.program_id(0) * n
    i = tl.arange(0, BLOCK)
    a = tl.load(p + i + source)
    tl.store(p + i + target, a)


@tilewright.jit
def add_to_cells(cells, values, CELLS: tl.constexpr):
    p = tl.program_id(0)
    i = tl.arange(0, 32)
    tl.atomic_add(cells + (p + i) % CELLS, tl.load(values + p * 32 + i))


@tilewright.jit
def count_under_lock(lock, count, history):
    while tl.atomic_cas(lock, 0, 1, sem="acquire") != 0:
        pass
    before = tl.load(count)
    tl.store(count, before + 1)
    tl.store(history + before, tl.program_id(0))
    tl.atomic_xchg(lock, 0, sem="release")


@tilewright.jit
def add_floats_by_cas(total, x):
    bits = total.to(tl.pointer_type(tl.int32))
    value = tl.load(x + tl.program_id(0))
    old = tl.atomic_add(bits, 0)
    new = (old.to(tl.float32, bitcast=True) + value).to(tl.int32, bitcast=True)
    seen = tl.atomic_cas(bits, old, new)
    while seen != old:
        old = seen
        new = (old.to(tl.float32, bitcast=True) + value).to(tl.int32, bitcast=True)
        seen = tl.atomic_cas(bits, old, new)


@tilewright.jit
def chain(turn, out, x, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    while tl.atomic_add(turn, 0, sem="acquire") < p:
        pass
    before = tl.load(out + i)
    tl.store(out + i, before * 3 + tl.load(x + p))
    tl.atomic_xchg(turn, p + 1, sem="release")


@tilewright.jit
def neighbours(flags, data, out):
    p = tl.program_id(0)
    tl.store(data + p, p * 7)
    tl.atomic_xchg(flags + p, 1, sem="release")
    if p > 0:
        while tl.atomic_add(flags + p - 1, 0, sem="acquire") == 0:
            pass
        tl.store(out + p, tl.load(data + p - 1))


@tilewright.jit
def scale(x, out, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)


@tilewright.jit
def racy_sum(total, x):
    tl.store(total, tl.load(total) + tl.load(x + tl.program_id(0)))


@tilewright.jit
def waits_for_the_next(flags):
    p = tl.program_id(0)
    while tl.atomic_add(flags + (p + 1) % 4, 0, sem="acquire") == 0:
        pass
    tl.atomic_xchg(flags + p, 1, sem="release")


@pytest.mark.parametrize("block", [1, 8, 64, 256, 4096])
@pytest.mark.parametrize(("source", "target"), [(1, 0), (0, 1), (0, 7), (19, 0), (0, 0)])
@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_a_tile_load_completes_before_a_later_store(
    block: int, source: int, target: int, dtype: type, rng: np.random.Generator
) -> None:
    width = block + 32
    x = rng.integers(-100, 100, (4, width)).astype(dtype)
    expected = x.copy()
    expected[:, target : target + block] = x[:, source : source + block]
    shift_within[(4,)](x, width, source, target, BLOCK=block)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("cells", [1, 3, 64])
@pytest.mark.parametrize("dtype", [np.int32, np.uint64, np.float32, np.float64, np.float16])
def test_atomic_additions_from_many_programs_are_all_counted(
    cells: int, dtype: type, rng: np.random.Generator
) -> None:
    high = 2 if dtype == np.float16 else 1000
    programs = 8 if dtype == np.float16 else PROGRAMS
    values = rng.integers(0, high, (programs, 32)).astype(dtype)
    total = np.zeros(cells, dtype)
    expected = np.zeros(cells, np.int64)
    place = (np.arange(programs)[:, None] + np.arange(32)) % cells
    np.add.at(expected, place, values.astype(np.int64))
    if np.dtype(dtype).kind == "f" and expected.max() > 1 << 24 and dtype == np.float32:
        values //= 100  # sums stay exact
        expected[:] = 0
        np.add.at(expected, place, values.astype(np.int64))
    add_to_cells[(programs,)](total, values, CELLS=cells)
    np.testing.assert_array_equal(total.astype(np.int64), expected)


def test_a_lock_excludes_all_other_programs() -> None:
    lock, count = np.zeros(1, np.int32), np.zeros(1, np.int32)
    history = np.full(PROGRAMS, -1, np.int32)
    count_under_lock[(PROGRAMS,)](lock, count, history)
    assert count[0] == PROGRAMS and lock[0] == 0
    np.testing.assert_array_equal(np.sort(history), np.arange(PROGRAMS))


def test_compare_and_swap_builds_an_exact_float_sum() -> None:
    x = (np.arange(PROGRAMS) % 7).astype(np.float32)
    total = np.zeros(1, np.float32)
    add_floats_by_cas[(PROGRAMS,)](total, x)
    assert total[0] == x.sum()


def test_a_program_may_wait_for_the_one_before_it() -> None:
    programs = 300
    turn, out = np.zeros(1, np.int32), np.ones(64, np.int32)
    x = np.arange(programs, dtype=np.int32) % 5
    chain[(programs,)](turn, out, x, BLOCK=64)
    expected = 1
    for value in x.tolist():
        expected = (expected * 3 + value) & 0xFFFFFFFF
    assert (out.view(np.uint32) == expected).all()


def test_a_release_makes_earlier_stores_visible_to_the_acquirer() -> None:
    for _ in range(20):
        flags, data = np.zeros(PROGRAMS, np.int32), np.zeros(PROGRAMS, np.int32)
        out = np.zeros(PROGRAMS, np.int32)
        neighbours[(PROGRAMS,)](flags, data, out)
        np.testing.assert_array_equal(out[1:], np.arange(PROGRAMS - 1) * 7)


def test_three_threads_launch_at_once() -> None:
    errors: list[str] = []
    start = threading.Barrier(3)

    def work(number: int) -> None:
        x = np.arange(5000, dtype=np.float32) + number
        start.wait()
        for repeat in range(1, 60):
            out = np.zeros(5000, np.float32)
            scale[(-(-5000 // 128),)](x, out, 5000, float(repeat), BLOCK=128)
            if not np.array_equal(out, x * np.float32(repeat)):
                errors.append(f"thread {number}, launch {repeat}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_launches_and_so_does_its_parent_after() -> None:
    x, out = np.arange(100_000, dtype=np.float32), np.zeros(100_000, np.float32)
    grid = (-(-100_000 // 256),)
    scale[grid](x, out, 100_000, 2.0, BLOCK=256)
    child = os.fork()
    if child == 0:
        out[:] = 0
        scale[grid](x, out, 100_000, 3.0, BLOCK=256)
        os._exit(0 if np.array_equal(out, x * np.float32(3)) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    scale[grid](x, out, 100_000, 4.0, BLOCK=256)
    np.testing.assert_array_equal(out, x * np.float32(4))


def test_the_interpreter_reports_a_race_between_programs() -> None:
    with pytest.raises(DataRace) as caught:
        racy_sum.interpret[(4,)](np.zeros(1, np.int32), np.arange(4, dtype=np.int32))
    assert caught.value.span is not None


def test_the_interpreter_reports_programs_that_wait_in_a_circle() -> None:
    with pytest.raises(Deadlock):
        waits_for_the_next.interpret[(4,)](np.zeros(4, np.int32))
