"""One array through several arguments: threads leave the bits that the interpreter leaves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.in_place import InPlace, generate_in_place
from tests.fuzz.loading import module_at
from tilewright import JITFunction

FEW, MANY = range(0, 24, 6), range(1000, 1400, 50)
FOUND = (9_000_902,)
"""A tile that a loop loads at `k * 16` is stored at its first place, through another argument."""


def load(program: InPlace, folder: Path) -> JITFunction:
    """The kernel of a program, compiled by Python from a file."""
    path = folder / f"in_place_{program.seed}.py"
    path.write_text(program.text)
    return module_at(path).kernel


def check(seed: int, folder: Path) -> None:
    """Hold the CPU and the threads of a GPU, in two orders, to the interpreter."""
    program = generate_in_place(seed)
    kernel = load(program, folder)
    expected = program.arguments()
    kernel.interpret[(1,)](*expected)
    options = {"num_warps": program.num_warps}
    for way, launch, more in (
        ("the CPU", kernel, {}),
        ("threads", kernel.simulate, options),
        ("threads in another order", kernel.simulate, {**options, "seed": seed}),
    ):
        found = program.arguments()
        launch[(1,)](*found, **more)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other, f"seed {seed}, {way}:\n{program.text}")


@pytest.mark.parametrize("first", FEW)
def test_an_array_through_several_arguments(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 6):
        check(seed, tmp_path)


@pytest.mark.parametrize("seed", FOUND)
def test_what_was_wrong_once_agrees(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", MANY)
def test_an_array_through_several_arguments_many_times(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 50):
        check(seed, tmp_path)


def test_a_seed_gives_one_program_in_place() -> None:
    assert generate_in_place(5) == generate_in_place(5) != generate_in_place(6)
