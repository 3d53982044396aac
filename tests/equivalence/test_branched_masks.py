"""Masks under a branch keep the bits: whichever side is taken, and where sums of indices wrap."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.corpus.case import Case, Values
from tests.corpus.forming import run_tiles
from tests.corpus.partitioned import RINGS, Partitioned, attention_case
from tests.corpus.run import run_module, tile_module
from tests.corpus.threads import gpu_request, run_plain_threads
from tests.equivalence.test_overlapped_products import LENGTHS, overlapped, simulated
from tests.equivalence.test_rings import lowered, over, require_same
from tilewright.ir.levels import T0R
from tilewright.ir.schedule import Schedule
from tilewright.ir.schedule_attributes import annotate_schedule
from tilewright.ir.verify_level import verify_level
from tilewright.ops.control_flow import IfOp
from tilewright.ops.function import find_kernel
from tilewright.passes.branch_masks import BranchMasks
from tilewright.targets.nvidia.interpret import NVIDIA_INTERPRETATION
from tilewright.targets.nvidia.ops import NVIDIA_OPS


@tilewright.jit
def masked(out, row, column, bound, num_steps, HOW: tl.constexpr, SIZE: tl.constexpr):
    """Adds up which elements of a tile a mask keeps, over some steps."""
    rows = row + tl.arange(0, SIZE)
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for step in range(num_steps):
        columns = column + step * SIZE + tl.arange(0, SIZE)
        tile = total + 1.0
        if HOW == 0:
            kept = tl.where(rows[:, None] >= columns[None, :], tile, -3.0)
        elif HOW == 1:
            kept = tl.where(columns[None, :] > rows[:, None], tile, -3.0)
        elif HOW == 2:
            kept = tl.where((columns[None, :] < bound) & (rows[:, None] <= bound), tile, -3.0)
        elif HOW == 3:
            inner = tl.where(columns[None, :] < bound, tile, -3.0)
            kept = tl.where(rows[:, None] - 5 < columns[None, :], inner, -4.0)
        elif HOW == 4:
            kept = tl.where(rows[:, None] == columns[None, :], tile, -3.0)
        else:
            kept = tl.where((rows[:, None] < bound) | (columns[None, :] < bound), tile, -3.0)
        total = kept
    at = tl.arange(0, SIZE)
    tl.store(out + at[:, None] * SIZE + at[None, :], total)


def case_of(how: int, row: int, column: int, bound: int, num_steps: int) -> Case:
    sizes = {"row": row, "column": column, "bound": bound, "num_steps": num_steps}

    def inputs(rng: np.random.Generator) -> Values:
        return {"out": np.full((16, 16), np.nan, np.float32), **sizes, "HOW": how, "SIZE": 16}

    def unknown(values: SimpleNamespace) -> None:
        raise AssertionError("only compared with itself")

    return Case(f"masked-{how}-{row}-{column}-{bound}", masked, (1,), inputs, unknown)


def branches(case: Case) -> tuple[int, dict[str, np.ndarray]]:
    """How many branches the pass makes, and what the arrays hold then."""
    module = tile_module(gpu_request(case))
    annotate_schedule(find_kernel(module), Schedule(mask="branch"))
    BranchMasks().apply(module)
    verify_level(module, T0R.extended(*NVIDIA_OPS))
    count = sum(isinstance(op, IfOp) for op in module.walk())
    return count, run_module(case, module, NVIDIA_INTERPRETATION)


TOP, LOW = 2**31 - 1, -(2**31)
ENDS = [0, 15, 16, 17, -16, 40, TOP, TOP - 14, TOP - 15, TOP - 16, LOW, LOW + 3, LOW + 5]


@pytest.mark.parametrize("how", [0, 1, 2, 3])
def test_every_side_of_a_branch_keeps_the_bits(how: int) -> None:
    rng = np.random.default_rng(how)
    for _ in range(60):
        row, column, bound = (int(v) for v in rng.choice(ENDS, 3))
        case = case_of(how, row, column, bound, int(rng.integers(0, 4)))
        count, found = branches(case)
        assert count == 1
        require_same(found, run_tiles(case))


@pytest.mark.parametrize("how", [4, 5])
def test_masks_that_no_scalar_decides_stay(how: int) -> None:
    assert branches(case_of(how, 3, 0, 8, 3))[0] == 0


def test_without_being_asked_for_nothing_branches() -> None:
    module = tile_module(gpu_request(case_of(0, 0, 0, 0, 2)))
    BranchMasks().apply(module)
    assert not any(isinstance(op, IfOp) for op in module.walk())


CASES = [Partitioned(attention_case(*shape), RINGS) for shape in LENGTHS[1:]]


@over(CASES)
@pytest.mark.parametrize("order", ["second", "first"])
def test_attention_keeps_its_bits(case: Partitioned, order: str) -> None:
    text = overlapped(case, order, 2, 2) + "; mask branch"
    module = lowered(case, text, "T2")
    require_same(run_module(case.case, module, NVIDIA_INTERPRETATION), run_tiles(case.case))
    require_same(simulated(case, text), run_plain_threads(case.case))
