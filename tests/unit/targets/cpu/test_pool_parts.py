"""The pool's functions one by one, on one thread: see docs/internals/native-launch.md."""

from __future__ import annotations

import ctypes
import platform
import sys

import pytest

from tests.unit.native_parts import Functions, load_parts
from tilewright.targets.cpu.runtime.pool import KernelRecord
from tilewright.targets.cpu.runtime.pool_ir import pool_text
from tilewright.targets.cpu.runtime.pool_layout import (
    CHUNK_NS,
    INLINE_NS,
    NUM_CALLER_ARENAS,
    PARTICIPANT_BYTES,
    PARTICIPANT_FIELDS,
    POOL_FIELDS,
    POOL_HEADER_BYTES,
    SLICE_NS,
)

RUN_TYPE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)
MAX_THREADS = 8


@pytest.fixture(scope="module")
def parts() -> Functions:
    names = (
        "num_programs choose_width choose_chunk update_estimate publish_job run_job choose_alone"
    )
    text = pool_text(platform.machine(), sys.platform == "linux")
    words = "enter_alone leave_alone enter_beside leave_beside borrow_arena return_arena"
    return load_parts(text, *names.split(), *words.split())


class Pool:
    """The zeroed state of a pool without workers, with its fields by name."""

    def __init__(self, num_threads: int) -> None:
        size = POOL_HEADER_BYTES + MAX_THREADS * PARTICIPANT_BYTES + 64
        self._buffer = ctypes.create_string_buffer(size)
        self.address = -(-ctypes.addressof(self._buffer) // 64) * 64
        at = self.address + POOL_FIELDS["num_threads"]
        ctypes.c_int64.from_address(at).value = num_threads

    def read(self, field: str) -> int:
        return ctypes.c_int64.from_address(self.address + POOL_FIELDS[field]).value

    def range(self, index: int) -> tuple[int, int]:
        at = self.address + POOL_HEADER_BYTES + index * PARTICIPANT_BYTES
        words = (ctypes.c_int64.from_address(at + PARTICIPANT_FIELDS[f]) for f in ("next", "end"))
        first, end = (word.value for word in words)
        return first, end


def record(program_ns: float = -1.0, kernel: int = 0, flags: int = 0) -> KernelRecord:
    return KernelRecord(kernel, 0, program_ns, None, 0, flags)


@pytest.mark.parametrize(
    ("grid", "programs"),
    [
        ((4, 3, 2), 24),
        ((1, 1, 1), 1),
        ((5, 0, 7), 0),
        ((2**31 - 1, 2**31 - 1, 2), (2**31 - 1) ** 2 * 2),
        ((2**31 - 1, 2**31 - 1, 4), -1),  # past 2^63
    ],
)
def test_the_programs_of_a_grid_are_counted(
    parts: Functions, grid: tuple[int, int, int], programs: int
):
    assert parts["num_programs"](ctypes.addressof((ctypes.c_int32 * 3)(*grid))) == programs


@pytest.mark.parametrize(
    ("program_ns", "programs", "width"),
    [
        (-1.0, 100, 4),  # nobody has measured it: all threads
        (-1.0, 3, 3),  # never more than programs
        ((INLINE_NS - 1) / 100, 100, 1),  # too little work to wake a worker
        (3.5 * SLICE_NS / 100, 100, 3),  # a participant for each slice of work
        (1e30, 100, 4),
    ],
)
def test_a_job_is_as_wide_as_its_work(
    parts: Functions, program_ns: float, programs: int, width: int
):
    pool, kernel = Pool(4), record(program_ns)
    chosen = parts["choose_width"](pool.address, ctypes.addressof(kernel), programs)
    assert chosen == width


def test_a_kernel_may_ask_for_every_thread(parts: Functions):
    pool, kernel = Pool(4), record(1e-3, flags=KernelRecord.ALWAYS_PARALLEL)
    assert parts["choose_width"](pool.address, ctypes.addressof(kernel), 100) == 4


@pytest.mark.parametrize(
    ("program_ns", "programs", "chunk"),
    [
        (CHUNK_NS / 5, 10_000, 5),  # long enough to hide the claim
        (1.0, 64, 2),  # but eight claims a participant, here of four
        (1.0, 3, 1),
        (0.0, 10**6, 10**6 // 32),
    ],
)
def test_a_chunk_hides_its_claim_and_leaves_some_to_steal(
    parts: Functions, program_ns: float, programs: int, chunk: int
):
    kernel = record(program_ns)
    assert parts["choose_chunk"](ctypes.addressof(kernel), programs, 4) == chunk


def test_an_estimate_rises_at_once_and_falls_by_halves(parts: Functions):
    kernel = record(1.0)
    parts["update_estimate"](ctypes.addressof(kernel), 0, 0)
    assert kernel.program_ns == 1.0, "no program ran, so nothing was measured"
    parts["update_estimate"](ctypes.addressof(kernel), 0, 1)  # as if begun when the clock was
    assert kernel.program_ns > 1e6
    kernel.program_ns = 1e30
    parts["update_estimate"](ctypes.addressof(kernel), 0, 1)
    assert 0.5e30 <= kernel.program_ns < 0.51e30


def publish(
    parts: Functions, pool: Pool, kernel: KernelRecord, programs: int, width: int, first: int = 0
) -> None:
    parts["publish_job"](pool.address, ctypes.addressof(kernel), 0, 0, first, programs, width)


def test_a_job_gives_each_participant_a_range(parts: Functions):
    pool = Pool(4)
    publish(parts, pool, record(), 10, 4)
    assert [pool.range(i) for i in range(4)] == [(0, 3), (3, 6), (6, 8), (8, 10)]
    assert (pool.read("job_width"), pool.read("job_chunk")) == (4, 1)


def test_what_has_run_alone_is_nobodys_range(parts: Functions):
    pool = Pool(2)
    publish(parts, pool, record(), 10, 2, first=3)
    assert [pool.range(i) for i in range(2)] == [(3, 7), (7, 10)]


@pytest.mark.parametrize(
    ("alone_ns", "flags", "width", "first"),
    [
        (-1.0, KernelRecord.MAY_BE_ALONE, 1, 6400),
        (-1.0, KernelRecord.MAY_BE_ALONE, 4, 100),  # a part, to learn how long a program takes
        (20.0, KernelRecord.MAY_BE_ALONE, 4, 6400),  # 80 ns alone for 100 ns of four
        (30.0, KernelRecord.MAY_BE_ALONE, 4, 0),
        (20.0, KernelRecord.HAS_ATOMICS, 1, 0),
        (20.0, KernelRecord.MAY_BE_ALONE | KernelRecord.ALWAYS_PARALLEL, 1, 0),
    ],
)
def test_the_faster_form_of_a_launch_is_taken(
    parts: Functions, alone_ns: float, flags: int, width: int, first: int
):
    kernel = record(100.0, flags=flags)
    kernel.alone_ns = alone_ns
    assert parts["choose_alone"](ctypes.addressof(kernel), 6400, width) == first


def test_a_launch_is_alone_only_while_nobody_is_beside_it(parts: Functions):
    assert parts["enter_alone"]()
    assert not parts["enter_alone"]()
    parts["enter_beside"]()  # of the same thread: it would wait for itself
    parts["leave_beside"]()
    parts["leave_alone"]()
    parts["enter_beside"]()
    assert not parts["enter_alone"]()
    parts["leave_beside"]()
    assert parts["enter_alone"]()
    parts["leave_alone"]()


def run_alone(
    parts: Functions, participant: int, programs: int, width: int
) -> list[tuple[int, int]]:
    """The chunks that one participant runs, in order, when no other comes."""
    ran: list[tuple[int, int]] = []
    kernel = RUN_TYPE(lambda args, grid, begin, end, context: ran.append((begin, end)))
    address = ctypes.cast(kernel, ctypes.c_void_p).value or 0
    pool, launch = Pool(width), (ctypes.c_int64 * 8)()
    context = (ctypes.c_int64 * 4)(0, 0, 0, ctypes.addressof(launch))
    publish(parts, pool, record(kernel=address), programs, width)
    count = parts["run_job"](pool.address, participant, ctypes.addressof(context))
    assert count == sum(end - begin for begin, end in ran) == programs
    return ran


def test_the_launching_thread_runs_programs_in_order(parts: Functions):
    ran = run_alone(parts, 0, 40, 2)
    assert ran == [(i, i + 2) for i in range(0, 40, 2)]


def test_a_worker_starts_with_its_own_range_and_steals_around_the_end(parts: Functions):
    ran = run_alone(parts, 2, 4, 4)
    assert ran == [(2, 3), (3, 4), (0, 1), (1, 2)]


def test_an_arena_is_lent_once_at_a_time(parts: Functions):
    pool = Pool(1)
    lent = [parts["borrow_arena"](pool.address, 100) for _ in range(NUM_CALLER_ARENAS + 1)]
    assert lent[-1] is None and len(set(lent[:-1])) == NUM_CALLER_ARENAS
    parts["return_arena"](lent[3])
    assert parts["borrow_arena"](pool.address, 100) == lent[3]
