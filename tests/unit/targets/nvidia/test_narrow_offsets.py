"""Offsets that wrap in a narrow type have addresses of their own in the PTX.

LLVM's back end took the address of `int8 x + 2` for the address of `int8 x` plus two elements.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.corpus.case import EXACT, Case
from tests.corpus.threads import lower_for_gpu, run_threads
from tilewright.machine.gpus import SM_90A
from tilewright.targets.nvidia.ptx import to_ptx


@tilewright.jit
def gather(x, start, out, WIDE: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    index = (i * 2).to(start.dtype.element_ty) + tl.load(start) + 3
    tl.store(out + i, tl.load(x + 400 + index.to(WIDE)))


def case_of(element: type, narrow: type, wide: tl.dtype) -> Case:
    rng = np.random.default_rng(5)
    x = rng.integers(-99, 99, 2048).astype(element)
    start = rng.integers(0, 127, 1).astype(narrow)

    def reference(arguments: object) -> None:
        steps = (np.arange(512) * 2).astype(narrow)
        with np.errstate(over="ignore"):
            index = steps + start + narrow(3)
        arguments.out[:] = arguments.x[400 + index.astype(np.int64)]

    values = {"x": x, "start": start, "out": np.zeros(512, element), "WIDE": wide, "B": 256}
    return Case("gather", gather, (2,), lambda _: dict(values), reference, EXACT)


@pytest.mark.parametrize("wide", [tl.int8, tl.int32, tl.int64], ids=str)
@pytest.mark.parametrize("element", [np.int8, np.int16, np.float32, np.float64])
def test_each_element_of_a_narrow_offset_has_an_address(element: type, wide: tl.dtype) -> None:
    case = case_of(element, np.int8, wide)
    ptx = to_ptx(lower_for_gpu(case).text, SM_90A)
    loads = re.findall(r"ld\.global\.b(\d+) \t%\w+, \[(%rd\d+)\+(\d+)\];", ptx)
    bits = 8 * np.dtype(element).itemsize
    gathered = [(base, int(moved)) for size, base, moved in loads if int(size) == bits]
    assert len(gathered) == 2
    assert {moved for _, moved in gathered} == {400 * bits // 8}
    assert len({base for base, _ in gathered}) == 2


@pytest.mark.parametrize("narrow", [np.int8, np.int16, np.uint8])
@pytest.mark.parametrize("element", [np.int8, np.float32])
def test_wrapped_offsets_gather_the_right_elements(element: type, narrow: type) -> None:
    case = case_of(element, narrow, tl.int32)
    if narrow is np.int16:  # does not wrap, and must not be taken to
        case = case_of(element, narrow, tl.int16)
    got = run_threads(case)
    np.testing.assert_array_equal(got["out"], case.expected()["out"])


@tilewright.jit
def wide_rows(x, out, count, WIDTH: tl.constexpr, ROWS: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    at = rows[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    inside = (rows < count)[:, None]
    tl.store(out + at, tl.load(x + at, mask=inside, other=0), mask=inside)


def test_rows_that_are_widened_share_the_product_of_their_address() -> None:
    rng = np.random.default_rng(7)
    x = rng.standard_normal((100, 64)).astype(np.float32)

    def reference(arguments: object) -> None:
        arguments.out[:100] = arguments.x

    values = {"x": x, "out": np.zeros((128, 64), np.float32), "count": 100}
    sizes = {"WIDTH": 64, "ROWS": 64}
    case = Case("rows", wide_rows, (2,), lambda _: {**values, **sizes}, reference, EXACT)
    # A thread has 8 rows, which differ by constants: one product each is of the program, of the
    # first row, and of its bytes behind either pointer.
    assert len(re.findall(r" = mul i64 ", lower_for_gpu(case).text)) == 4
    np.testing.assert_array_equal(run_threads(case)["out"], case.expected()["out"])
