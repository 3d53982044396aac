"""Random groups of products: roles, pipelines and programs compute what the text says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.grouped import FRONT, Grouped, generate_grouped, write_group
from tests.fuzz.loading import module_at
from tilewright import JITFunction
from tilewright.compiler.build import make_request
from tilewright.compiler.stages import schedule_of
from tilewright.frontend.devices import DevicePlacement
from tilewright.interp.simt.faults import GlobalRace
from tilewright.support.errors import DataRace, NotPowerOfTwo
from tilewright.targets.nvidia.host import named_machine


def load(program: Grouped, folder: Path) -> JITFunction:
    """The kernel of a program."""
    path = write_group(program, folder)
    return module_at(path).kernel


def check(seed: int, folder: Path) -> bool:
    """Hold the threads of a launch to the interpreter; False where nothing can be held."""
    program = generate_grouped(seed)
    kernel, grid = load(program, folder), (program.programs,)
    expected = program.memory()
    options = {**program.options, "P": program.programs}
    try:
        kernel.interpret[grid](**program.arguments(expected), **options)
    except DataRace:
        return False  # programs meet
    order, found = seed if seed % 2 else None, program.memory()
    try:
        kernel.simulate[grid](**program.arguments(found), **options, seed=order)
    except NotPowerOfTwo:
        return False  # 192 rows that no roles share
    except GlobalRace:
        found = program.memory()
        given = program.arguments(found)
        kernel.simulate[grid](**given, **options, seed=order, may_overlap=True)
    _compare(program, found, expected)
    return True


def runs_in_roles(seed: int, folder: Path) -> bool:
    """Whether the program of a seed is split into roles."""
    program = generate_grouped(seed)
    given = {**program.arguments(program.memory()), **program.options, "P": program.programs}
    call = load(program, folder).specialize_call((), given)
    placement, machine = DevicePlacement("nvidia"), named_machine("sm_90a")
    request = make_request(call.source, call.specialization, call.options, placement, machine)
    try:
        remarks = schedule_of(request).remarks
    except NotPowerOfTwo:
        return False
    return any("runs as roles" in remark for remark in remarks)


def _compare(program: Grouped, found: np.ndarray, expected: np.ndarray) -> None:
    """All bytes but the addresses, which differ."""
    np.testing.assert_array_equal(found[FRONT:], expected[FRONT:], f"seed {program.seed}")


@pytest.mark.parametrize("first", range(0, 16, 8))
def test_random_groups_agree(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 8):
        check(seed, tmp_path)


def test_what_was_wrong_once_agrees(tmp_path: Path) -> None:
    """A product of no depth, which waits for no operand, is stored onto sizes that were read."""
    assert check(9_560_092, tmp_path)


def test_some_groups_run_in_roles(tmp_path: Path) -> None:
    assert sum(runs_in_roles(seed, tmp_path) for seed in range(8)) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1400, 50))
def test_many_random_groups_agree(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 50):
        check(seed, tmp_path)


def test_a_seed_gives_one_group() -> None:
    assert generate_grouped(5) == generate_grouped(5) != generate_grouped(6)
