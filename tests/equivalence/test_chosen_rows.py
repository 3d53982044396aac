"""Rows chosen by a bound, and numbers that loops count: the same elements as the program has."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.corpus.case import Case, Values
from tests.corpus.run import prepare, run_module, tile_module
from tests.equivalence.test_accesses import Observer, show_arguments
from tilewright.analysis.affine.access import Accesses
from tilewright.analysis.affine.box import as_box
from tilewright.analysis.affine.tensor_box import TensorBox
from tilewright.analysis.facts import AxisFacts
from tilewright.machine.gpus import SM_90A
from tilewright.ops.memory.ir import LoadOp


@tilewright.jit
def chosen(a, b, c, M, N, K, B: tl.constexpr, STEP: tl.constexpr):
    """A product whose operands have their first row or column where there is no other."""
    rows = tl.program_id(0) * B + tl.arange(0, B)
    columns = tl.program_id(1) * B + tl.arange(0, B)
    near = tl.where(rows < M, rows, 0)
    beside = tl.where(columns < N, columns, 0)
    steps = tl.arange(0, STEP)
    total = tl.zeros((B, B), tl.float32)
    for k in range(0, tl.cdiv(K, STEP)):
        inside = steps < K - k * STEP
        x = tl.load(a + near[:, None] * K + k * STEP + steps[None, :], inside[None, :], other=0.0)
        y = tl.load(b + beside[None, :] * K + k * STEP + steps[:, None], inside[:, None], other=0.0)
        total = tl.dot(x, y, total)
    mask = (rows < M)[:, None] & (columns < N)[None, :]
    tl.store(c + rows[:, None] * N + columns[None, :], total, mask=mask)


def product_case(m: int, n: int, k: int) -> Case:
    """A product over more programs than it has blocks of rows."""

    def inputs(rng: np.random.Generator) -> Values:
        a, b = (rng.integers(-3, 4, (rows, k)).astype(np.float16) for rows in (m, n))
        c = np.zeros((m, n), np.float32)
        return {"a": a, "b": b, "c": c, "M": m, "N": n, "K": k, "B": 32, "STEP": 16}

    def reference(v: SimpleNamespace) -> None:
        v.c[:] = v.a.astype(np.float64) @ v.b.astype(np.float64).T

    grid = (-(-m // 32) + 1, -(-n // 32))
    return Case(f"chosen-{m}-{n}-{k}", chosen, grid, inputs, reference)


@pytest.mark.parametrize(("m", "n", "k"), [(40, 72, 48), (17, 33, 40), (64, 32, 16), (1, 100, 8)])
def test_boxes_end_where_rows_are_chosen_no_more(m: int, n: int, k: int) -> None:
    case, checked = product_case(m, n, k), Counter[str]()
    module = tile_module(prepare(case).request)
    show_arguments(module)
    loads = [op for op in module.walk() if isinstance(op, LoadOp)]
    boxes = [as_box(op, Accesses(), AxisFacts(module), SM_90A) for op in loads]
    assert all(isinstance(box, TensorBox) and any(d.is_cut for d in box.dims) for box in boxes)
    run_module(case, module, observers=[Observer(module, checked)])
    assert checked["boxes"] > 0


@tilewright.jit
def counted(
    seen, last, first, end, by, ahead, BY: tl.constexpr, STEPS: tl.constexpr, IS_FIXED: tl.constexpr
):  # fmt: skip
    """Numbers that step as the loop does, from so many steps and so much ahead of it."""
    step = BY if IS_FIXED else by
    other = first + 7 - STEPS * step
    beside = first - step
    at = 0
    for i in range(first, end, step):
        other += step
        beside = step + beside
        tl.store(seen + at, other - 7)
        tl.store(seen + at + 1, beside)
        tl.store(seen + at + 2, i - other + ahead)
        at += 3
    tl.store(last, other)
    tl.store(last + 1, at)


@pytest.mark.parametrize("is_fixed", [False, True])
@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_numbers_that_step_as_a_loop_does_are_what_they_were(steps: int, is_fixed: bool) -> None:
    """Also where they wrap around the ends of 32 bits, and where the loop does not run."""
    rng = np.random.default_rng(steps + 10 * is_fixed)
    far = 2**31
    ranges = [(0, 40), (-30, 5), (5, 5), (9, 3), (far - 40, far - 9), (-far, 30 - far)]
    for first, end in [*ranges, tuple(sorted(rng.integers(-99, 99, 2).tolist()))]:
        by, ahead = int(rng.integers(2, 9)), int(rng.integers(-far, far))
        found = []
        for run in (counted.interpret, counted.simulate):
            seen, last = np.zeros(600, np.int32), np.zeros(2, np.int32)
            sizes = {"BY": by, "STEPS": steps, "IS_FIXED": is_fixed}
            run[(1,)](seen, last, first, end, by, ahead, **sizes)
            found.append((seen, last))
        np.testing.assert_array_equal(found[0][0], found[1][0])
        np.testing.assert_array_equal(found[0][1], found[1][1])
        counts = np.arange(first, end, by, dtype=np.int64)
        beside = found[0][0][1 : 3 * len(counts) : 3]
        np.testing.assert_array_equal(beside, counts)
