"""Atomics of a launch that runs alone are plain updates: the same bits, and nothing is lost."""

from __future__ import annotations

import signal
import threading

import ml_dtypes
import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.passes.lowered import nests
from tilewright.runtime.kernel import CompiledKernel
from tilewright.targets.cpu.driver import CpuKernel
from tilewright.targets.cpu.runtime.pool import KernelRecord

ROWS, WIDTH = 4, 128
KINDS = {
    "add": ("float32", "float64", "float16", "bfloat16", "int32", "uint64"),
    "max": ("float32", "int32", "uint32", "int64"),
    "min": ("float64", "int32", "uint64"),
    "and": ("int32", "uint64"),
    "or": ("int32",),
    "xor": ("int64",),
    "xchg": ("float32", "int32"),
}
CASES = [(kind, dtype) for kind, dtypes in KINDS.items() for dtype in dtypes]


@tilewright.jit
def update(x, index, out, old, n, s, KIND: tl.constexpr, WHERE: tl.constexpr):
    """Every element of a tile updates one of `out`, in one of several orders of addresses."""
    r, c = tl.arange(0, 4)[:, None], tl.arange(0, 128)[None, :]
    at = r * 128 + c
    mask = (c < n) & (r < 3)
    value = tl.load(x + at)
    if WHERE == "rows":
        place = out + r * s + c
    elif WHERE == "columns":
        place = out + c * s + r
    elif WHERE == "backward":
        place = out + r * s + 127 - c
    else:
        place = out + tl.load(index + at)
    if KIND == "add":
        was = tl.atomic_add(place, value, mask=mask)
    elif KIND == "max":
        was = tl.atomic_max(place, value, mask=mask)
    elif KIND == "min":
        was = tl.atomic_min(place, value, mask=mask)
    elif KIND == "and":
        was = tl.atomic_and(place, value, mask=mask)
    elif KIND == "or":
        was = tl.atomic_or(place, value, mask=mask)
    elif KIND == "xor":
        was = tl.atomic_xor(place, value, mask=mask)
    else:
        was = tl.atomic_xchg(place, value, mask=mask)
    tl.store(old + at, was, mask=mask)


@tilewright.jit
def count(x, out, n, BLOCK: tl.constexpr):
    """A histogram by an atomic for each element."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + tl.load(x + i, mask=i < n, other=0), 1, mask=i < n)


@tilewright.jit
def add_row(x, out, width, BLOCK: tl.constexpr):
    """Every program adds its row to the one row of `out`."""
    c = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(0) * width + c, mask=c < width)
    tl.atomic_add(out + c, row, mask=c < width)


@tilewright.jit
def add_when_free(lock, x, out, BLOCK: tl.constexpr):
    """The same under a lock, which somebody else may hold."""
    c = tl.arange(0, BLOCK)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.atomic_add(out + c, tl.load(x + c))
    tl.atomic_xchg(lock, 0)


@tilewright.jit
def add_for_all(x, out, BLOCK: tl.constexpr):
    """Additions that other processes see."""
    c = tl.arange(0, BLOCK)
    tl.atomic_add(out + c, tl.load(x + c), scope="sys")


def values(rng: np.random.Generator, dtype: str, count: int) -> np.ndarray:
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    if kind.kind in "iu":
        return rng.integers(0, 1 << 20, count).astype(kind)
    return rng.standard_normal(count).astype(kind)


def record_of(kernel: CompiledKernel) -> KernelRecord:
    """The launch record of a compiled kernel."""
    loaded = kernel.loaded
    assert isinstance(loaded, CpuKernel)
    return loaded.record


@pytest.mark.parametrize("where", ["rows", "columns", "backward", "scattered"])
@pytest.mark.parametrize(("kind", "dtype"), CASES)
def test_both_forms_leave_the_same_bits(kind, dtype, where, rng) -> None:
    x = values(rng, dtype, ROWS * WIDTH)
    index = rng.integers(0, 40, ROWS * WIDTH).astype(np.int32)
    for n, stride in ((WIDTH, 130), (101, 7), (17, 0), (0, 1)):
        found = []
        for is_alone in (True, False):
            out, old = values(np.random.default_rng(1), dtype, 70000), np.zeros_like(x)
            given = (x, index, out, old, n, stride)
            kernel = update.warmup(*given, KIND=kind, WHERE=where, grid=(1,))
            record_of(kernel).flags = KernelRecord.HAS_ATOMICS | (
                KernelRecord.MAY_BE_ALONE if is_alone else 0
            )
            update[(1,)](*given, KIND=kind, WHERE=where)
            found.append((out, old))
        for alone, beside in zip(*found, strict=True):
            assert np.array_equal(alone.view(np.uint8), beside.view(np.uint8))


def test_every_form_of_a_histogram_counts_all(rng) -> None:
    x = rng.integers(0, 50, 100_003).astype(np.int32)
    expected = np.bincount(x, minlength=50)
    for _ in range(4):
        out = np.zeros(50, np.int32)
        count[(tilewright.cdiv(x.size, 512),)](x, out, x.size, BLOCK=512)
        assert np.array_equal(out, expected)


def test_threads_that_launch_at_once_lose_no_update(rng) -> None:
    x = np.ones((301, 100), np.float32)
    counts, out = np.zeros(100, np.int32), np.zeros(100, np.float32)
    lock, locked = np.zeros(1, np.int32), np.zeros(128, np.float32)
    numbers = np.arange(100, dtype=np.int32).repeat(20)

    def hammer() -> None:
        for _ in range(20):
            add_row[(301,)](x, out, 100, BLOCK=128)
            count[(8,)](numbers, counts, numbers.size, BLOCK=256)
            add_when_free[(3,)](lock, x, locked, BLOCK=128)

    threads = [threading.Thread(target=hammer) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
        assert not thread.is_alive()
    assert (counts == 4 * 20 * 20).all()
    assert (out == 4 * 20 * 301).all()
    assert (locked == 4 * 20 * 3).all()


def test_a_signal_handler_may_launch_while_a_launch_is_alone(rng) -> None:
    x, out, inner = np.ones((2000, 100), np.float32), np.zeros(100, np.float32), []
    nested = np.zeros(100, np.float32)

    def handler(number: int, frame: object) -> None:
        add_row[(50,)](x, nested, 100, BLOCK=128)
        inner.append(number)

    before = signal.signal(signal.SIGINT, handler)
    try:
        add_row[(2000,)](x, out, 100, BLOCK=128)
        timer = threading.Timer(0.05, signal.raise_signal, (signal.SIGINT,))
        timer.start()
        rounds = 1
        while not inner:
            add_row[(2000,)](x, out, 100, BLOCK=128)
            rounds += 1
    finally:
        signal.signal(signal.SIGINT, before)
    assert (nested == 50 * len(inner)).all()
    assert (out == 2000 * rounds).all()


def test_a_kernel_that_may_wait_is_never_alone() -> None:
    f32, i32 = np.zeros(128, np.float32), np.zeros(1, np.int32)
    module, _ = nests(add_when_free, lock=i32, x=f32, out=f32, BLOCK=128)
    assert "cpu.is_alone" not in str(module)


def test_what_other_processes_see_stays_atomic() -> None:
    f32 = np.zeros(128, np.float32)
    module, _ = nests(add_for_all, x=f32, out=f32, BLOCK=128)
    assert "cpu.is_alone" not in str(module)


def test_a_row_is_added_by_vectors() -> None:
    f32 = np.zeros(128, np.float32)
    module, report = nests(add_row, x=f32, out=f32, width=100, BLOCK=128)
    assert any("beside other launches" in text for nest in report.nests for text in nest.remarks)
    assert "vector<64xf32>, vector<64xi1>) -> ()" in str(module)
    assert "cpu.is_alone" in str(module)
