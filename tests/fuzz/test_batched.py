"""Random products of batches: the copy engine stores what threads would, and nothing beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.batched import generate_batched
from tests.fuzz.loading import module_at
from tilewright.support.errors import NotPowerOfTwo


def check(seed: int, folder: Path) -> str:
    """Hold the threads of a launch to the interpreter; the remarks of the kernel that ran."""
    program = generate_batched(seed)
    path = folder / f"batched_{seed}.py"
    path.write_text(program.text)
    kernel, expected, found = module_at(path).kernel, program.arguments(), program.arguments()
    order = seed if seed % 2 else None
    try:
        simulation = kernel.simulate[program.grid](**found, **program.options, seed=order)
    except NotPowerOfTwo:
        return ""  # 192 rows, and a launch that no roles are made for
    kernel.interpret[program.grid](**expected, **program.options)
    # What lies in front of the argument and behind what is stored is one array with it.
    of_found, of_expected = (np.asarray(given["out"]).base for given in (found, expected))
    np.testing.assert_array_equal(of_found, of_expected, f"seed {seed}: {program}")
    return "\n".join(simulation.remarks)


@pytest.mark.parametrize("first", range(0, 24, 8))
def test_random_batches_agree(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 8):
        check(seed, tmp_path)


def test_many_are_stored_by_the_copy_engine(tmp_path: Path) -> None:
    remarks = [check(seed, tmp_path) for seed in range(100, 112)]
    assert sum("the copy engine makes the store" in text for text in remarks) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1400, 20))
def test_more_random_batches_agree(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 20):
        check(seed, tmp_path)
