"""Long and deep programs: they compile, in a time that grows with their size, and are right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import growth_programs as programs
from tests.kernels.growing import compiled, grown, interpreted, seconds, simulated
from tilewright.frontend.frame import MAX_NESTING
from tilewright.support.errors import NestingTooDeep

TARGETS = ("cpu", "sm_90a")


def chain_result(size: int) -> list[int]:
    v = np.arange(64, dtype=np.uint32)
    for _ in range(size // 2):
        v = v * np.uint32(3) + np.uint32(1)
    return v.view(np.int32).tolist()


def test_a_chain_of_5000_operations_is_right_everywhere(tmp_path: Path):
    kernel = grown(programs.chain, 5000, tmp_path)
    expected = chain_result(5000)
    assert compiled(kernel) == expected
    assert interpreted(kernel) == expected
    assert simulated(kernel) == expected


def test_a_polynomial_of_degree_600_in_an_unrolled_loop_is_right(tmp_path: Path):
    kernel = grown(programs.unrolled, 600, tmp_path)
    assert compiled(kernel) == interpreted(kernel) == simulated(kernel)


def test_addresses_that_are_loaded_in_a_chain_compile(tmp_path: Path):
    body = "\n".join("    v = tl.load(x + (v & 63))" for _ in range(300))
    kernel = programs.load(programs.kernel(body), tmp_path, "chased")
    assert compiled(kernel) == interpreted(kernel) == list(range(64))


@pytest.mark.parametrize("shape", [programs.nested_for, programs.nested_while, programs.nested_if])
def test_nests_of_40_levels_compile_and_are_right(shape: programs.Shape, tmp_path: Path):
    kernel = grown(shape, 40, tmp_path)
    for target in TARGETS:
        assert seconds(kernel, target) < 10
    if shape is programs.nested_if:
        assert compiled(kernel) == interpreted(kernel) == simulated(kernel)


def test_40_arms_of_elif_compile_and_are_right(tmp_path: Path):
    kernel = grown(programs.elif_chain, 40, tmp_path)
    assert compiled(kernel) == interpreted(kernel) == simulated(kernel)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", [programs.nested_for, programs.nested_while, programs.nested_if])
def test_twice_the_depth_does_not_square_the_time(
    shape: programs.Shape, target: str, tmp_path: Path
):
    seconds(grown(shape, 4, tmp_path), target)
    shallow = seconds(grown(shape, 12, tmp_path), target)
    assert seconds(grown(shape, 36, tmp_path), target) < 27 * max(shallow, 0.05)


def test_200_functions_that_call_one_another_are_right(tmp_path: Path):
    kernel = grown(programs.nested_calls, 200, tmp_path)
    assert compiled(kernel) == interpreted(kernel) == simulated(kernel)


def test_an_expression_of_800_terms_is_right(tmp_path: Path):
    kernel = grown(programs.expression, 800, tmp_path)
    assert compiled(kernel) == [800 * i for i in range(64)]


def test_a_kernel_compiles_however_deep_its_caller_stands(tmp_path: Path):
    kernel = grown(programs.nested_while, 60, tmp_path)

    def call_at(depth: int) -> list[int]:
        return call_at(depth - 1) if depth else compiled(kernel)

    assert call_at(500) == compiled(grown(programs.nested_while, 60, tmp_path))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", [programs.nested_for, programs.nested_while, programs.elif_chain])
def test_a_nest_compiles_up_to_the_limit_and_is_refused_beyond(
    shape: programs.Shape, target: str, tmp_path: Path
):
    seconds(grown(shape, MAX_NESTING - 1, tmp_path), target)
    with pytest.raises(NestingTooDeep, match=f"nested more than {MAX_NESTING} deep"):
        seconds(grown(shape, MAX_NESTING + 2, tmp_path), target)


@pytest.mark.parametrize("target", TARGETS)
def test_20_loops_that_may_be_left_do_not_multiply_the_time(target: str, tmp_path: Path):
    assert seconds(grown(programs.nested_break, 20, tmp_path), target) < 20


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", [programs.reductions, programs.stores])
def test_tiles_that_several_nests_need_are_found_in_one_walk(
    shape: programs.Shape, target: str, tmp_path: Path
):
    seconds(grown(shape, 4, tmp_path), target)
    assert seconds(grown(shape, 120, tmp_path), target) < 8


@pytest.mark.parametrize("target", TARGETS)
def test_a_nested_where_of_256_entries_compiles_at_once(target: str, tmp_path: Path):
    seconds(grown(programs.lookup, 4, tmp_path), target)
    assert seconds(grown(programs.lookup, 256, tmp_path), target) < 4


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("shape", "size"), [(programs.shared_masks, 18), (programs.shared_quotients, 9)]
)
def test_values_that_are_used_twice_are_looked_at_once(
    shape: programs.Shape, size: int, target: str, tmp_path: Path
):
    seconds(grown(shape, 4, tmp_path), target)
    assert seconds(grown(shape, size, tmp_path), target) < 4
    assert seconds(grown(shape, 40, tmp_path), target) < 8


def test_values_that_are_used_twice_are_right(tmp_path: Path):
    for shape in (programs.shared_masks, programs.shared_quotients):
        kernel = grown(shape, 9, tmp_path)
        assert compiled(kernel) == interpreted(kernel) == simulated(kernel)


def test_sums_and_stores_in_a_row_are_right(tmp_path: Path):
    for shape in (programs.reductions, programs.stores, programs.lookup):
        kernel = grown(shape, 40, tmp_path)
        assert compiled(kernel) == interpreted(kernel)
