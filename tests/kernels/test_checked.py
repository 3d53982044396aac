"""The checked mode: the compiled kernel reports what went wrong, where, and harms nothing."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.corpus.case import Case, check
from tests.corpus.everything import CASES, over
from tests.corpus.run import run_compiled
from tilewright.support.errors import (
    AssertionFailed,
    KernelFault,
    OffsetOverflow,
    OutOfBoundsAccess,
)

SIZE, LEAD = 100, 64


@tilewright.jit
def copy_without_mask(x, out, shift, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i + shift)
    tl.store(out + i, a)


@tilewright.jit
def store_without_mask(out, shift, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i + shift, i)


@tilewright.jit
def scalar_store(out, place):
    tl.store(out + place, tl.program_id(0))


@tilewright.jit
def masked_copy(x, out, n, limit, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < limit, other=0), mask=i < n)


@tilewright.jit
def tile_store(out, rows, columns, M: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) * M + tl.arange(0, M)[:, None]
    j = tl.arange(0, N)[None, :]
    tl.store(out + i * columns + j, i + j, mask=j < columns)


@tilewright.jit
def gather_unchecked(x, ids, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + tl.load(ids + i)))


@tilewright.jit
def add_atomically(cells, place, BLOCK: tl.constexpr):
    tl.atomic_add(cells + place + tl.arange(0, BLOCK), 1)


@tilewright.jit
def overflowing_rows(x, out, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0) + 3
    i = tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0) * BLOCK + i, tl.load(x + row * stride + i))


@tilewright.jit
def asserting(x, limit, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i)
    tl.device_assert(a < limit, "value above the limit")
    tl.store(x + i, a + 1)


def framed(size: int = SIZE) -> tuple[np.ndarray, np.ndarray]:
    """An array inside a larger one, whose other elements must not change."""
    memory = np.full(size + 2 * LEAD, -7, np.int32)
    inside = memory[LEAD : LEAD + size]
    inside[:] = np.arange(size)
    return memory, inside


def require_untouched(memory: np.ndarray) -> None:
    assert (memory[:LEAD] == -7).all() and (memory[-LEAD:] == -7).all()


def line_of(kernel: tilewright.JITFunction, text: str) -> int:
    """The line in this file of the kernel's line that contains `text`."""
    lines, first = inspect.getsourcelines(kernel.fn)
    return first + next(k for k, line in enumerate(lines) if text in line)


def require_report(
    fault: KernelFault, kernel: tilewright.JITFunction, line: str, name: str, program: int
) -> None:
    text = str(fault)
    assert fault.span is not None
    assert fault.span.line == line_of(kernel, line)
    assert fault.span.file.endswith("test_checked.py")
    assert f"`{name}`" in text
    assert f"program ({program}, 0, 0)" in text


@pytest.mark.parametrize("shift", [1, 4, 10_000, -1, -40, 1 << 29])
def test_a_load_outside_is_reported_with_tensor_program_and_line(shift: int) -> None:
    _, x = framed(96)
    memory, out = framed(96)
    with pytest.raises(OutOfBoundsAccess) as caught:
        copy_without_mask[(3,)](x, out, shift, BLOCK=32, checked=True)
    program = 2 if 0 < shift < 32 else 0
    if abs(shift) < 100:
        require_report(caught.value, copy_without_mask, "tl.load", "x", program)
    assert "load" in str(caught.value)
    require_untouched(memory)


@pytest.mark.parametrize(("shift", "index"), [(1, 31), (16, 16), (-1, 0), (-8, 0)])
def test_a_store_outside_is_reported_and_not_done(shift: int, index: int) -> None:
    memory, out = framed(32)
    with pytest.raises(OutOfBoundsAccess) as caught:
        store_without_mask[(1,)](out, shift, BLOCK=32, checked=True)
    require_report(caught.value, store_without_mask, "tl.store", "out", 0)
    assert "store" in str(caught.value) and f"[{index}]" in str(caught.value)
    require_untouched(memory)


@pytest.mark.parametrize("place", [-1, 100, 101, -(1 << 31), (1 << 31) - 1])
def test_a_scalar_store_outside_is_reported_and_not_done(place: int) -> None:
    memory, out = framed()
    with pytest.raises(OutOfBoundsAccess):
        scalar_store[(1,)](out, place, checked=True)
    require_untouched(memory)


def test_what_lies_inside_is_stored_beside_what_is_not() -> None:
    memory, out = framed(40)
    with pytest.raises(OutOfBoundsAccess):
        store_without_mask[(2,)](out, 0, BLOCK=32, checked=True)
    np.testing.assert_array_equal(out, np.arange(40))
    require_untouched(memory)


def test_masked_lanes_may_point_anywhere() -> None:
    _, x = framed()
    memory, out = framed()
    masked_copy[(4,)](x, out, SIZE, SIZE, BLOCK=32, checked=True)
    np.testing.assert_array_equal(out, x)
    require_untouched(memory)


def test_a_mask_that_is_one_too_wide_is_caught() -> None:
    _, x = framed()
    _, out = framed()
    with pytest.raises(OutOfBoundsAccess) as caught:
        masked_copy[(4,)](x, out, SIZE, SIZE + 1, BLOCK=32, checked=True)
    require_report(caught.value, masked_copy, "tl.load", "x", 3)
    assert "[4]" in str(caught.value)


def test_a_tile_names_both_indices() -> None:
    memory, out = framed(20 * 5)
    with pytest.raises(OutOfBoundsAccess) as caught:
        tile_store[(2,)](out, 20, 5, M=16, N=8, checked=True)
    require_report(caught.value, tile_store, "tl.store", "out", 1)
    assert "[4, 0]" in str(caught.value)
    require_untouched(memory)


@pytest.mark.parametrize("bad", [-1, 100, 1 << 30, -(1 << 31)])
def test_a_bad_index_in_data_is_caught(bad: int) -> None:
    _, x = framed()
    memory, out = framed(64)
    ids = np.arange(64, dtype=np.int32)
    ids[41] = bad
    with pytest.raises(KernelFault) as caught:
        gather_unchecked[(2,)](x, ids, out, BLOCK=32, checked=True)
    require_report(caught.value, gather_unchecked, "tl.load(ids", "x", 1)
    assert "[9]" in str(caught.value)
    require_untouched(memory)


def test_an_atomic_outside_is_caught_and_not_done() -> None:
    memory, cells = framed(64)
    with pytest.raises(OutOfBoundsAccess) as caught:
        add_atomically[(3,)](cells, 60, BLOCK=16, checked=True)
    assert "`cells`" in str(caught.value)
    require_untouched(memory)


def test_an_offset_that_overflows_int32_is_named_as_that() -> None:
    _, x = framed()
    memory, out = framed(64)
    with pytest.raises(OffsetOverflow) as caught:
        overflowing_rows[(2,)](x, out, (1 << 30) + 5, BLOCK=32, checked=True)
    assert "`x`" in str(caught.value)
    assert caught.value.span is not None
    assert caught.value.span.line == line_of(overflowing_rows, "tl.store")
    require_untouched(memory)


@pytest.mark.parametrize("option", ["debug", "checked"])
def test_a_failed_assertion_names_its_message_index_and_line(option: str) -> None:
    _, x = framed(96)
    with pytest.raises(AssertionFailed) as caught:
        asserting[(3,)](x, 70, BLOCK=32, **{option: True})
    text = str(caught.value)
    assert "value above the limit" in text and "program (2, 0, 0)" in text and "[6]" in text
    assert caught.value.span is not None
    assert caught.value.span.line == line_of(asserting, "device_assert")


def test_assertions_cost_nothing_without_debug() -> None:
    _, x = framed(96)
    asserting[(3,)](x, 0, BLOCK=32)
    np.testing.assert_array_equal(x, np.arange(96) + 1)


def test_the_process_lives_on_and_the_next_launch_is_clean() -> None:
    memory, out = framed(32)
    for _ in range(3):
        with pytest.raises(OutOfBoundsAccess):
            store_without_mask[(1,)](out, 1, BLOCK=32, checked=True)
        store_without_mask[(1,)](out, 0, BLOCK=32, checked=True)
        np.testing.assert_array_equal(out, np.arange(32))
    require_untouched(memory)


def test_the_environment_switches_the_mode_on(monkeypatch: pytest.MonkeyPatch) -> None:
    memory, out = framed(32)
    monkeypatch.setenv("TILEWRIGHT_CHECKED", "1")
    with pytest.raises(OutOfBoundsAccess):
        store_without_mask[(1,)](out, 1, BLOCK=32)
    monkeypatch.delenv("TILEWRIGHT_CHECKED")
    require_untouched(memory)


CLEAN = [case for case in CASES if not case.is_slow][::7]


@over(CLEAN)
def test_no_kernel_of_the_corpus_raises_a_false_alarm(case: Case) -> None:
    got = run_compiled(case, checked=True)
    check(case, got, case.expected(), "checked mode against NumPy")
