"""A launch proves that stores by the copy engine start at no negative index."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.targets.nvidia.test_bulk_access import scheduled
from tilewright.runtime.launch_numbers import fits

BLOCK, LENGTH = 64, 256
KINDS = ("add", "subtract", "multiply", "divide", "remainder")
GRID = (4, 1, 1)


@tilewright.jit
def shifted(out, step, length, M: tl.constexpr, HOW: tl.constexpr):
    """Store a block of rows of ones for each program, `step` blocks apart."""
    target = tl.make_tensor_descriptor(out, [length, 64], [64, 1], [M, 64])
    block = tl.program_id(0)
    if HOW == "map of the program":
        target = tl.make_tensor_descriptor(out + block * 64, [length, 64], [64, 1], [M, 64])
    if HOW == "halves":
        block = block // step * step + block % step
    elif HOW == "divided by the program":
        block = step * block // (1 + block)
    elif HOW == "a difference":
        block = block - step + step
    else:
        block = block * step
    target.store([block * M, 0], tl.full((M, 64), 1.0, tl.float16))


def launch(step: int, how: str, **options: object) -> tuple[bool, str]:
    """Whether a launch keeps to what the kernel demands, and what is said of it."""
    args = (np.zeros((LENGTH, 64), np.float16), step, LENGTH)
    found, words = scheduled(shifted, args, M=BLOCK, HOW=how, **options)
    return fits(found.metadata, GRID, words), "\n".join(found.remarks)


@pytest.mark.parametrize(
    ("how", "step", "is_fit"), [("product", 2, True), ("product", -2, False), ("halves", 2, True)]
)
def test_a_launch_is_asked_where_the_kernel_does_not_tell(
    how: str, step: int, is_fit: bool
) -> None:
    found, remarks = launch(step, how)
    assert "the copy engine makes the store where no index is negative" in remarks
    assert found is is_fit


def test_a_divisor_of_zero_is_no_proof() -> None:
    assert not launch(0, "halves")[0]


@pytest.mark.parametrize("how", ["divided by the program", "a difference", "map of the program"])
def test_what_a_launch_may_fail_to_see_stays_with_pointers(how: str) -> None:
    found, remarks = launch(2, how)
    assert found and "made of pointers: an index may be negative" in remarks


def test_the_program_for_other_launches_demands_nothing() -> None:
    found, remarks = launch(-2, "product", bulk_access="never")
    assert found and "made of pointers: an index may be negative" in remarks


@pytest.mark.parametrize("step", [1, 2, -1])
def test_rows_outside_of_the_tensor_are_not_written(step: int) -> None:
    out = np.zeros((LENGTH, 64), np.float16)
    shifted.simulate[GRID](out, step, LENGTH, M=BLOCK, HOW="product")
    written = {block for block in (step * program for program in range(4)) if 0 <= block < 4}
    expected = np.repeat([block in written for block in range(4)], BLOCK)
    np.testing.assert_array_equal(out, np.repeat(expected[:, None], 64, 1))


@tilewright.jit
def computed(out, a, b, length, M: tl.constexpr, FIRST: tl.constexpr, SECOND: tl.constexpr):
    """Store a block of ones where two steps of arithmetic say."""
    target = tl.make_tensor_descriptor(out, [length, 64], [64, 1], [M, 64])
    block = step_of(step_of(tl.program_id(0), a, FIRST), b, SECOND)
    target.store([block * M, 0], tl.full((M, 64), 1.0, tl.float16))


@tilewright.jit
def step_of(value, operand, KIND: tl.constexpr):
    if KIND == "add":
        return value + operand
    elif KIND == "subtract":
        return value - operand
    elif KIND == "multiply":
        return value * operand
    elif KIND == "divide":
        return value // operand
    return value % operand


def numpy_step(value: int, operand: int, kind: str) -> int:
    """The same, with quotients towards zero."""
    quotient = int(value / operand) if operand else 0
    answers = {
        "add": value + operand,
        "subtract": value - operand,
        "multiply": value * operand,
        "divide": quotient,
        "remainder": value - quotient * operand,
    }
    return answers[kind]


@pytest.mark.parametrize("seed", range(16))
def test_blocks_land_where_arithmetic_of_any_sign_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = [str(kind) for kind in rng.choice(list(KINDS), 2)]
    a, b = (int(x) for x in rng.choice([-3, -2, -1, 1, 2, 3], 2))
    out = np.zeros((LENGTH, 64), np.float16)
    computed.simulate[GRID](out, a, b, LENGTH, M=BLOCK, FIRST=kinds[0], SECOND=kinds[1])
    blocks = {numpy_step(numpy_step(p, a, kinds[0]), b, kinds[1]) for p in range(4)}
    expected = np.repeat([float(block in blocks) for block in range(4)], BLOCK)
    np.testing.assert_array_equal(out, np.repeat(expected[:, None], 64, 1), f"{kinds} {a} {b}")
