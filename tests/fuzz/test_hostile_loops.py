"""Random loops over memory laid out against them: one result, whoever runs them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.hostile import HostileProgram, generate_hostile
from tests.fuzz.loading import module_at
from tilewright import JITFunction

FEW, MANY = range(6), range(1000, 1200)


def load(program: HostileProgram, folder: Path) -> JITFunction:
    """The kernel of a program, compiled by Python from a file."""
    path = folder / f"hostile_{program.seed}.py"
    path.write_text(program.text)
    return module_at(path).kernel


def check(seed: int, folder: Path) -> None:
    """Hold the CPU, one iteration at a time and several to the interpreter."""
    program = generate_hostile(seed)
    kernel, grid = load(program, folder), (program.programs,)
    expected = program.arguments()
    kernel.interpret[grid](*expected.values(), STAGES=1)
    warps, depth = (4, 1, 8)[seed % 3], 2 + seed % 3
    bulk = {"bulk_access": "always"} if seed % 4 == 0 else {}
    ways = {
        "the CPU": (kernel, {"STAGES": 1}),
        "one iteration": (kernel.simulate, {"STAGES": 1, "num_warps": warps}),
        f"{depth} iterations": (kernel.simulate, {"STAGES": depth, "num_warps": warps, **bulk}),
    }
    for way, (launch, options) in ways.items():
        found = program.arguments()
        launch[grid](*found.values(), **options)
        for name, array in expected.items():
            if isinstance(array, np.ndarray):
                np.testing.assert_array_equal(found[name], array, f"seed {seed}, {way}: {name}")


@pytest.mark.parametrize("seed", FEW)
def test_a_hostile_loop_in_every_way(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", MANY)
def test_many_hostile_loops(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)


def test_a_seed_gives_one_hostile_program() -> None:
    assert generate_hostile(5) == generate_hostile(5) != generate_hostile(6)
