"""Races between programs, waiting, deadlocks, and the order in which programs run."""

from __future__ import annotations

import time

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.ops.harness import interpret
from tilewright.support.errors import DataRace, Deadlock

SEEDS = (None, 0, 1, 2, 3)


@tilewright.jit
def all_write(x):
    tl.store(x, tl.program_id(0))


@tilewright.jit
def all_read_one_writes(x, y):
    pid = tl.program_id(0)
    tl.store(y + pid, tl.load(x))
    if pid == 3:
        tl.store(x, 1)


def test_two_writes_of_one_element_race() -> None:
    with pytest.raises(DataRace) as caught:
        interpret(all_write, (2,), np.zeros(1, np.int32))
    text = str(caught.value)
    assert "write of element 0 of `x` races with the write by program (0, 0, 0)" in text
    assert "test_concurrency.py" in text
    assert "in program (1, 0, 0)" in text


def test_one_program_races_with_nobody() -> None:
    interpret(all_write, (1,), np.zeros(1, np.int32))


def test_write_races_with_an_earlier_read() -> None:
    with pytest.raises(DataRace, match="write of element 0 of `x` races with the read"):
        interpret(all_read_one_writes, (4,), np.zeros(1, np.int32), np.zeros(4, np.int32))


def test_race_check_can_be_left_out() -> None:
    interpret(all_write, (4,), np.zeros(1, np.int32), settings={"races": False})


def test_reads_do_not_race() -> None:
    interpret(all_read_one_writes, (3,), np.zeros(1, np.int32), np.zeros(4, np.int32))


def test_neighbouring_bytes_do_not_race() -> None:
    @tilewright.jit
    def each_its_byte(x):
        tl.store(x + tl.program_id(0), 1)

    x = np.zeros(16, np.int8)
    interpret(each_its_byte, (16,), x)
    assert x.all()


def test_wide_and_narrow_accesses_of_one_place_race() -> None:
    @tilewright.jit
    def mixed(wide, narrow):
        if tl.program_id(0) == 0:
            tl.store(wide, 1)
        else:
            tl.store(narrow + 2, 1)

    x = np.zeros(4, np.int32)
    with pytest.raises(DataRace):
        interpret(mixed, (2,), x, x.view(np.int8))


@tilewright.jit
def publish(data, flag, out, RELEASE: tl.constexpr, ACQUIRE: tl.constexpr):
    if tl.program_id(0) == 0:
        tl.store(data, 42)
        tl.atomic_xchg(flag, 1, sem=RELEASE)
    else:
        while tl.atomic_add(flag, 0, sem=ACQUIRE) == 0:
            pass
        tl.store(out, tl.load(data))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("semantics", [("release", "acquire"), ("acq_rel", "acq_rel")])
def test_release_and_acquire_order_two_programs(order, semantics) -> None:
    data, flag, out = (np.zeros(1, np.int32) for _ in range(3))
    interpret(
        publish, (2,), data, flag, out, RELEASE=semantics[0], ACQUIRE=semantics[1],
        settings={"order": order},
    )  # fmt: skip
    assert out[0] == 42


@pytest.mark.parametrize("semantics", [("relaxed", "acquire"), ("release", "relaxed")])
def test_relaxed_atomics_order_nothing(semantics) -> None:
    data, flag, out = (np.zeros(1, np.int32) for _ in range(3))
    with pytest.raises(DataRace, match="read of element 0 of `data`"):
        interpret(publish, (2,), data, flag, out, RELEASE=semantics[0], ACQUIRE=semantics[1])


def test_order_passes_through_a_third_program() -> None:
    @tilewright.jit
    def relay(data, flags, out):
        pid = tl.program_id(0)
        if pid > 0:
            while tl.atomic_add(flags + pid - 1, 0, sem="acquire") == 0:
                pass
        if pid == 0:
            tl.store(data, 7)
        if pid == 2:
            tl.store(out, tl.load(data))
        tl.atomic_xchg(flags + pid, 1, sem="release")

    data, flags, out = np.zeros(1, np.int32), np.zeros(3, np.int32), np.zeros(1, np.int32)
    interpret(relay, (3,), data, flags, out)
    assert out[0] == 7


def test_plain_access_races_with_an_atomic_one() -> None:
    @tilewright.jit
    def mixed(x):
        if tl.program_id(0) == 0:
            tl.atomic_add(x, 1)
        else:
            tl.store(x, 5)

    with pytest.raises(DataRace, match="races with the atomic write"):
        interpret(mixed, (2,), np.zeros(1, np.int32))


def test_atomics_do_not_race_with_each_other() -> None:
    @tilewright.jit
    def count(x, BLOCK: tl.constexpr):
        tl.atomic_add(x + tl.arange(0, BLOCK) % 4, 1, sem="relaxed")

    x = np.zeros(4, np.int32)
    interpret(count, (8,), x, BLOCK=16)
    assert x.tolist() == [32] * 4


@tilewright.jit
def locked_sum(lock, total, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total + offsets, tl.load(total + offsets) + 1)
    tl.atomic_xchg(lock, 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_lock_protects_plain_accesses(seed: int | None) -> None:
    lock, total = np.zeros(1, np.int32), np.zeros(8, np.int32)
    interpret(locked_sum, (12,), lock, total, BLOCK=8, settings={"seed": seed})
    assert total.tolist() == [12] * 8
    assert lock[0] == 0


@tilewright.jit
def barrier(count, parts, out):
    pid, size = tl.program_id(0), tl.num_programs(0)
    tl.store(parts + pid, pid + 1)
    tl.atomic_add(count, 1)
    while tl.atomic_add(count, 0) < size:
        pass
    total = 0
    for i in range(0, size):
        total += tl.load(parts + i)
    tl.store(out + pid, total)


@pytest.mark.parametrize("seed", SEEDS)
def test_programs_wait_for_later_ones(seed: int | None) -> None:
    count, parts, out = np.zeros(1, np.int32), np.zeros(6, np.int32), np.zeros(6, np.int32)
    interpret(barrier, (6,), count, parts, out, settings={"seed": seed})
    assert out.tolist() == [21] * 6


def test_interleavings_differ_by_seed() -> None:
    @tilewright.jit
    def ticket(counter, order):
        first = tl.atomic_add(counter, 1)
        second = tl.atomic_add(counter, 1)
        tl.store(order + tl.program_id(0), first * 100 + second)

    seen = set()
    for seed in range(6):
        counter, order = np.zeros(1, np.int32), np.zeros(8, np.int32)
        interpret(ticket, (8,), counter, order, settings={"seed": seed})
        assert counter[0] == 16
        seen.add(tuple(order.tolist()))
    assert len(seen) > 1


@pytest.mark.parametrize("seed", [None, 5])
def test_deadlock_names_programs_and_lines_at_once(seed: int | None) -> None:
    lock, total = np.ones(1, np.int32), np.zeros(8, np.int32)
    started = time.perf_counter()
    with pytest.raises(Deadlock) as caught:
        interpret(locked_sum, (2,), lock, total, BLOCK=8, settings={"seed": seed})
    assert time.perf_counter() - started < 60
    assert "programs (0, 0, 0), (1, 0, 0)" in caught.value.summary
    span = caught.value.span
    assert span is not None
    with open(span.file, encoding="utf-8") as file:
        assert "tl.atomic_cas(lock" in file.read().splitlines()[span.line - 1]


def test_loop_that_counts_its_attempts_ends_by_itself() -> None:
    @tilewright.jit
    def patient(flag, out):
        attempts = 0
        while (tl.atomic_add(flag, 0) == 0) & (attempts < 50):
            attempts += 1
        tl.store(out, attempts)

    flag, out = np.zeros(1, np.int32), np.zeros(1, np.int32)
    interpret(patient, (1,), flag, out)
    assert out[0] == 50


def test_long_computing_loop_is_no_deadlock() -> None:
    @tilewright.jit
    def collatz(n, out):
        steps = 0
        while n != 1:
            n = tl.where(n % 2 == 0, n // 2, 3 * n + 1)
            steps += 1
        tl.store(out, steps)

    out = np.zeros(1, np.int32)
    interpret(collatz, (1,), 27, out)
    assert out[0] == 111


def test_programs_run_in_the_order_asked_for() -> None:
    @tilewright.jit
    def append(counter, order):
        place = tl.atomic_add(counter, 1)
        tl.store(order + place, tl.program_id(0) + 10 * tl.program_id(1))

    counter, order = np.zeros(1, np.int32), np.zeros(4, np.int32)
    interpret(append, (2, 2), counter, order)
    assert order.tolist() == [0, 1, 10, 11]
    counter[:] = 0
    interpret(append, (2, 2), counter, order, settings={"order": (3, 1, 0, 2)})
    assert order.tolist() == [11, 1, 0, 10]


@pytest.mark.parametrize(
    ("name", "start", "values", "want"),
    [
        ("atomic_max", 3, [5, 1, 9, 2], 9),
        ("atomic_min", 3, [5, 1, 9, 2], 1),
        ("atomic_and", 0b1111, [0b1110, 0b1011, 0b1111, 0b1111], 0b1010),
        ("atomic_or", 0, [1, 4, 0, 8], 13),
        ("atomic_xor", 0, [1, 3, 7, 0], 5),
        ("atomic_add", 10, [1, 2, 3, 4], 20),
    ],
)
def test_read_modify_writes_on_one_address(name: str, start: int, values, want: int) -> None:
    kernels = {
        "atomic_max": rmw_max, "atomic_min": rmw_min, "atomic_and": rmw_and,
        "atomic_or": rmw_or, "atomic_xor": rmw_xor, "atomic_add": rmw_add,
    }  # fmt: skip
    x, v = np.array([start], np.int32), np.array(values, np.int32)
    old = np.zeros(4, np.int32)
    interpret(kernels[name], (1,), x, v, old, BLOCK=4)
    assert x[0] == want
    assert old[0] == start


@tilewright.jit
def rmw_max(x, v, old, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    tl.store(old + o, tl.atomic_max(x + o * 0, tl.load(v + o)))


@tilewright.jit
def rmw_min(x, v, old, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    tl.store(old + o, tl.atomic_min(x + o * 0, tl.load(v + o)))


@tilewright.jit
def rmw_and(x, v, old, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    tl.store(old + o, tl.atomic_and(x + o * 0, tl.load(v + o)))


@tilewright.jit
def rmw_or(x, v, old, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    tl.store(old + o, tl.atomic_or(x + o * 0, tl.load(v + o)))


@tilewright.jit
def rmw_xor(x, v, old, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    tl.store(old + o, tl.atomic_xor(x + o * 0, tl.load(v + o)))


@tilewright.jit
def rmw_add(x, v, old, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    tl.store(old + o, tl.atomic_add(x + o * 0, tl.load(v + o)))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_atomic_add_of_floats(dtype) -> None:
    x, v = np.zeros(1, dtype), np.arange(4).astype(dtype)
    interpret(rmw_add, (1,), x, v, np.zeros(4, dtype), BLOCK=4)
    assert x[0] == 6


def test_store_that_a_later_load_of_the_same_program_sees() -> None:
    @tilewright.jit
    def shift(x, BLOCK: tl.constexpr):
        offsets = tl.arange(0, BLOCK)
        values = tl.load(x + offsets + 1)
        tl.store(x + offsets, values)

    x = np.arange(17, dtype=np.float32)
    interpret(shift, (1,), x, BLOCK=16)
    assert x.tolist() == [*range(1, 17), 16]
