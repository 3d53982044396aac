"""Loads that run ahead of stores through another argument: the bits of one iteration at a time."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.targets.nvidia.pipelined_kernels import softmax
from tests.unit.targets.nvidia.test_pipelined_loops import accounts, at_t2
from tilewright.jit import JITFunction
from tilewright.ops.function import find_kernel
from tilewright.runtime.launch_numbers import LaunchConditions
from tilewright.targets.nvidia.tma.launch_conditions import guards_of

ROWS, COLUMNS = 9, 32
WIDE = 256


@tilewright.jit
def counted_up(x, out, rows, stride, STAGES: tl.constexpr, BLOCK: tl.constexpr):
    """Each row is one more than a row of `x`, which may be the one that was stored before."""
    at = tl.arange(0, BLOCK)
    for row in tl.range(0, rows, num_stages=STAGES):
        tl.store(out + row * stride + at, tl.load(x + row * stride + at) + 1.0)


@tilewright.jit
def summed_up(x, y, out, rows, STAGES: tl.constexpr, BLOCK: tl.constexpr):
    """Two loads of a row, of which either may be what an earlier row was stored to."""
    at = tl.arange(0, BLOCK)
    for row in tl.range(0, rows, num_stages=STAGES):
        left = tl.load(x + row * BLOCK + at)
        right = tl.load(y + (rows - 1 - row) * BLOCK + at)
        tl.store(out + row * BLOCK + at, left + right)


@tilewright.jit
def counted_in_branches(x, out, rows, stride, STAGES: tl.constexpr, BLOCK: tl.constexpr):
    """As `counted_up`, where every second row is stored in two halves, and one in four is not."""
    at = tl.arange(0, BLOCK)
    for row in tl.range(0, rows, num_stages=STAGES):
        value = tl.load(x + row * stride + at) + 1.0
        if row % 2 == 0:
            tl.store(out + row * stride + at, value, mask=at < BLOCK // 2)
            if row % 4 == 0:
                tl.store(out + row * stride + at, value, mask=at >= BLOCK // 2)
        else:
            tl.store(out + row * stride + at, value)


def counted(
    how: str, shift: int, stride: int, stages: int, kernel: JITFunction = counted_up
) -> np.ndarray:
    """The memory behind a launch on two views of one array, `shift` elements apart."""
    memory = np.arange(2 * ROWS * COLUMNS, dtype=np.float32)
    low, high = memory[: ROWS * COLUMNS], memory[abs(shift) :][: ROWS * COLUMNS]
    x, out = (low, high) if shift >= 0 else (high, low)
    launch = kernel.interpret if how == "interpreter" else kernel.simulate
    options = {} if how == "interpreter" else {"num_warps": 1}
    launch[(1,)](x, out, ROWS, stride, STAGES=stages, BLOCK=COLUMNS, **options)
    return memory


@pytest.mark.parametrize("stride", [COLUMNS, COLUMNS // 2, 0])
@pytest.mark.parametrize("shift", [0, 1, COLUMNS, -COLUMNS, 2 * COLUMNS, ROWS * COLUMNS])
def test_a_row_finds_what_an_earlier_row_stored(shift: int, stride: int) -> None:
    expected = counted("interpreter", shift, stride, 1)
    for stages in (2, 4):
        found = counted("simulator", shift, stride, stages)
        np.testing.assert_array_equal(found, expected, f"{stages} stages")


@pytest.mark.parametrize("shift", [0, 1, COLUMNS, -COLUMNS, 2 * COLUMNS, ROWS * COLUMNS])
def test_stores_of_branches_are_found_by_later_rows(shift: int) -> None:
    expected = counted("interpreter", shift, COLUMNS, 1, counted_in_branches)
    for stages in (2, 4):
        found = counted("simulator", shift, COLUMNS, stages, counted_in_branches)
        np.testing.assert_array_equal(found, expected, f"{stages} stages")


def test_rows_run_ahead_of_stores_in_branches() -> None:
    memory = np.zeros(ROWS * WIDE, np.float32)
    args = (memory, memory.copy(), ROWS, WIDE)
    module = at_t2(counted_in_branches, args, dict(STAGES=3, BLOCK=WIDE))
    assert accounts(module) == ["loads run 2 iterations ahead, to 3 slots of 1024 bytes"]


@pytest.mark.parametrize(("of_x", "of_y"), [(0, 0), (1, 0), (0, 1), (4, 2), (9, 9)])
def test_each_load_of_a_loop_is_asked_about(of_x: int, of_y: int) -> None:
    def run(is_simulated: bool, **options: object) -> np.ndarray:
        memory = np.arange(20 * COLUMNS, dtype=np.float32)
        x, y = (memory[rows * COLUMNS :][: ROWS * COLUMNS] for rows in (of_x, of_y))
        out = memory[2 * COLUMNS :][: ROWS * COLUMNS]
        launch = summed_up.simulate if is_simulated else summed_up.interpret
        launch[(1,)](x, y, out, ROWS, BLOCK=COLUMNS, **options)
        return memory

    expected = run(False, STAGES=1)
    np.testing.assert_array_equal(run(True, STAGES=3, num_warps=1), expected)


PLACES = {
    "apart": (0, 4000, 32, True),
    "beside each other": (0, 9 * 32 * 4, 32, True),
    "the other way around": (9 * 32 * 4, 0, 32, True),
    "one array": (256, 256, 32, True),
    "one array whose rows overlap": (256, 256, 16, False),
    "one array that is one row": (256, 256, 0, False),
    "a row further": (256, 256 + 32 * 4, 32, False),
    "a row back": (256 + 32 * 4, 256, 32, False),
    "four bytes further": (256, 260, 32, False),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_launch_tells_whether_rows_may_run_ahead(name: str) -> None:
    x, out, stride, is_fit = PLACES[name]
    arguments = (np.zeros(8, np.float32), np.zeros(8, np.float32), ROWS, 24)
    module = at_t2(counted_up, arguments, dict(STAGES=3, BLOCK=COLUMNS))
    conditions = LaunchConditions(guards_of(find_kernel(module)))
    values = [(1 << 40) + x, (1 << 40) + out, ROWS, stride]
    assert conditions.hold(values, (1, 1, 1)) == is_fit
    options = dict(STAGES=3, BLOCK=COLUMNS, may_overlap=True)
    other = at_t2(counted_up, arguments, options)
    assert guards_of(find_kernel(other)) == ()


@pytest.mark.parametrize("in_place", [False, True])
def test_rows_of_one_array_run_ahead(in_place: bool) -> None:
    """Softmax, also in its own memory, with rows that are shorter than a block."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((10, 100)).astype(np.float32)
    expected = np.exp(x - x.max(1, keepdims=True))
    expected /= expected.sum(1, keepdims=True)
    out = x if in_place else np.empty_like(x)
    softmax.simulate[(3,)](x, out, 10, 100, STAGES=3, BLOCK=128)
    np.testing.assert_allclose(out, expected, rtol=1e-5)
