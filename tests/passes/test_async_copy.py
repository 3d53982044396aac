"""copy_async: which loads are copied to shared memory, where the copies start, what waits for."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.passes.laid_out import named, names, steps
from tilewright.jit import JITFunction
from tilewright.ops.function import FuncOp

F16, F32 = np.zeros(1 << 14, np.float16), np.zeros(1 << 14, np.float32)
COPY, WAIT, LOAD = "ttg.async_copy_global_to_local", "ttg.async_wait", "tt.load"


@tilewright.jit
def product(a, b, c, STRIDE: tl.constexpr, SIZE: tl.constexpr):
    """c = a @ b."""
    i, j = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    x = tl.load(a + i * STRIDE + j)
    y = tl.load(b + i * STRIDE + j)
    tl.store(c + i * SIZE + j, tl.dot(x, y))


@tilewright.jit
def masked(a, b, c, rows, SIZE: tl.constexpr, OTHER: tl.constexpr):
    """A product of a tile that ends early, with something in place of what is missing."""
    i, j = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    x = tl.load(a + i * SIZE + j, mask=i < rows, other=OTHER)
    tl.store(c + i * SIZE + j, tl.dot(x, tl.load(b + i * SIZE + j)))


@tilewright.jit
def kept(a, b, c, SIZE: tl.constexpr):
    """An operand that is stored as well."""
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    x = tl.load(a + at)
    tl.store(c + at, tl.dot(x, tl.load(b + at)) + x.to(tl.float32))


@tilewright.jit
def volatile(a, b, c, SIZE: tl.constexpr):
    """An operand that others may change at any time."""
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    x = tl.load(a + at, volatile=True)
    tl.store(c + at, tl.dot(x, tl.load(b + at)))


@tilewright.jit
def scaled(a, b, c, SIZE: tl.constexpr):
    """An operand that is computed first."""
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    tl.store(c + at, tl.dot(tl.load(a + at) * 2, tl.load(b + at)))


@tilewright.jit
def twice(a, b, c, SIZE: tl.constexpr):
    """A product of what the first product stored."""
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    first = tl.dot(tl.load(a + at), tl.load(b + at))
    tl.store(a + at, first.to(tl.float16))
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at)))


@tilewright.jit
def overwritten(a, b, c, SIZE: tl.constexpr, IS_LOOP: tl.constexpr):
    """A product of operands whose memory is overwritten before it."""
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    x, y = tl.load(a + at), tl.load(b + at)
    for _ in range(2 if IS_LOOP else 1):
        tl.store(a + at, tl.zeros((SIZE, SIZE), tl.float16))
    tl.store(c + at, tl.dot(x, y))


def copied(kernel: JITFunction, *extra: object, **options: object) -> FuncOp:
    arguments = (F16, F16, F32, *extra)
    return steps(kernel, arguments, SIZE=64, **options)["copy-async"]


def test_operands_that_go_to_shared_memory_alone_are_copied() -> None:
    found = names(copied(product, STRIDE=64))
    assert found.count(COPY) == 2 and LOAD not in found


def test_a_wait_leaves_running_what_was_started_behind_what_it_waits_for() -> None:
    kernel = copied(product, STRIDE=64)
    pending = [op.properties["num"].value.data for op in named(kernel, WAIT)]
    assert pending == [1, 0]


def test_copies_start_before_the_first_wait() -> None:
    found = [name for name in names(copied(product, STRIDE=64)) if name in (COPY, WAIT)]
    assert found == [COPY, COPY, WAIT, WAIT]


@pytest.mark.parametrize("other", [None, 0.0])
def test_zeros_in_place_of_what_is_missing_are_filled_in_by_the_copy(other: float | None) -> None:
    assert names(copied(masked, 50, OTHER=other)).count(COPY) == 2


@pytest.mark.parametrize("other", [1.0, -0.0])
def test_anything_else_in_place_of_what_is_missing_is_a_load(other: float) -> None:
    found = names(copied(masked, 50, OTHER=other))
    assert found.count(COPY) == 1 and found.count(LOAD) == 1


@pytest.mark.parametrize("kernel", [kept, volatile, scaled])
def test_a_load_whose_value_is_needed_in_registers_stays(kernel: JITFunction) -> None:
    found = names(copied(kernel))
    assert found.count(COPY) == 1 and found.count(LOAD) == 1


def test_addresses_that_are_not_aligned_for_a_copy_are_loaded() -> None:
    found = names(copied(product, STRIDE=65))
    assert found.count(LOAD) == 2 and COPY not in found


def test_a_copy_does_not_start_above_a_store_that_may_change_what_it_reads() -> None:
    found = [name for name in names(copied(twice)) if name in (COPY, "tt.store")]
    assert found == [COPY, COPY, "tt.store", COPY, COPY, "tt.store"]


def test_a_copy_moves_as_many_elements_as_the_load_would() -> None:
    for copy in named(copied(product, STRIDE=64), COPY):
        assert copy.attributes["tw.access"].data.vector == 8


@pytest.mark.parametrize("is_loop", [False, True])
def test_a_copy_is_done_before_its_memory_may_be_overwritten(is_loop: bool) -> None:
    found = names(copied(overwritten, IS_LOOP=is_loop))
    assert found.count(COPY) == 2
    last_wait = max(index for index, name in enumerate(found) if name == WAIT)
    assert last_wait < found.index("scf.for" if is_loop else "tt.store")
