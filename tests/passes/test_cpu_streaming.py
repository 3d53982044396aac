"""Stores that bypass the cache: of launches that write more than their share of it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation, SSAValue

import tilewright
import tilewright.language as tl
from examples.fused_softmax import softmax_kernel
from tests.corpus.case import Case, Values
from tests.corpus.run import launch, prepare
from tests.passes.lowered import WIDE, named, nests
from tilewright.runtime.drivers import load_driver
from tilewright.support.dataclass import replace

F32 = np.zeros(1 << 16, np.float32)


@tilewright.jit
def double(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


@tilewright.jit
def double_rows(x, out, rows, BLOCK: tl.constexpr):
    """A program writes one row after the other."""
    for row in range(rows):
        i = (tl.program_id(0) * rows + row) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i) * 2)


@tilewright.jit
def last_row(x, out, rows, BLOCK: tl.constexpr):
    """Each turn writes the same row."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for row in range(rows):
        tl.store(out + i, tl.load(x + row * BLOCK + i) * 2)


@tilewright.jit
def double_twice(x, out, rows, BLOCK: tl.constexpr):
    """What the first loop writes, the second one reads."""
    for row in range(rows):
        i = (tl.program_id(0) * rows + row) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i) * 2)
    for row in range(rows):
        i = (tl.program_id(0) * rows + row) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(out + i) * 2)


def size_tests(module: ModuleOp) -> list[tuple[int, bool]]:
    """What is compared with how often programs write: the limit, and whether turns count too."""
    found = []
    for op in named(module, "arith.cmpi"):
        made_of, limit = _made_of(op.operands[0]), _constant(op.operands[1])
        if limit is not None and "tt.get_num_programs" in made_of:
            found.append((limit, "arith.maxsi" in made_of))
    return found


def _constant(value: SSAValue) -> int | None:
    owner = value.owner
    known = owner.properties.get("value") if isinstance(owner, Operation) else None
    return known.value.data if isinstance(known, IntegerAttr) else None


def _made_of(value: SSAValue) -> set[str]:
    """The names of the ops that a value is computed by."""
    names, pending = set[str](), [value]
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, Operation):
            names.add(owner.name)
            pending += owner.operands
    return names


ROWS = {"x": F32, "out": F32, "rows": 4, "BLOCK": 1024}
PROGRAMS = WIDE.l3_bytes // 4096
"""How many programs fill the cache with 1,024 elements each."""


def test_what_only_moves_data_bypasses_the_cache_from_its_share_on() -> None:
    module, _ = nests(double, x=F32, out=F32, n=1000, BLOCK=1024)
    assert size_tests(module) == [(PROGRAMS * 3 // 8, False)]


def test_a_small_part_of_a_large_cache_is_filled_before_stores_bypass_it() -> None:
    large = replace(WIDE, host_l3_bytes=8 * WIDE.l3_bytes)
    module, _ = nests(double, large, x=F32, out=F32, n=1000, BLOCK=1024)
    assert size_tests(module) == [(PROGRAMS, False)]


def test_what_computes_exponentials_bypasses_it_once_it_is_full() -> None:
    row = {"x_ptr": F32, "out_ptr": F32, "x_stride": 1000, "out_stride": 1000, "width": 1000}
    module, _ = nests(softmax_kernel, **row, BLOCK=1024)
    assert {limit for limit, _ in size_tests(module)} == {PROGRAMS}


def test_the_turns_of_a_loop_count_that_writes_a_row_in_each() -> None:
    module, _ = nests(double_rows, **ROWS)
    assert size_tests(module) == [(PROGRAMS * 3 // 8, True)]


@pytest.mark.parametrize("kernel", [last_row, double_twice], ids=["the_same_row", "read_again"])
def test_turns_do_not_count_that_write_one_row_or_what_is_read_again(
    kernel: tilewright.JITFunction,
) -> None:
    module, _ = nests(kernel, **ROWS)
    tests = size_tests(module)
    assert tests and not any(by_turns for _, by_turns in tests)


@pytest.mark.parametrize("programs", [3, 40])
@pytest.mark.parametrize("kernel", [double_rows, double_twice], ids=["once", "read_again"])
def test_stores_that_bypass_the_cache_write_the_same(
    kernel: tilewright.JITFunction, programs: int
) -> None:
    """On both sides of the limit of a machine with a cache of 1 MiB."""
    rows, factor = 7, 2 if kernel is double_rows else 4

    def inputs(rng: np.random.Generator) -> Values:
        x = rng.standard_normal(programs * rows * 1024, dtype=np.float32)
        return {"x": x, "out": np.zeros_like(x), "rows": rows, "BLOCK": 1024}

    def doubled(values: SimpleNamespace) -> None:
        values.out[...] = factor * values.x

    case = Case(f"{kernel.__name__} {programs}", kernel, (programs,), inputs, doubled)
    small = replace(load_driver("cpu").machine(), l3_bytes=1 << 20)
    got = launch(prepare(case, small))
    np.testing.assert_array_equal(got["out"], case.expected()["out"])
