"""Long and deep programs: they compile, in a time that grows with their size, and are right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import growth_programs as programs
from tests.kernels.growing import compiled, grown, interpreted, seconds, simulated

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
