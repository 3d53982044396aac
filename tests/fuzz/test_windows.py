"""Masks that are windows: what Python makes of the text, whoever runs it."""

from __future__ import annotations

import linecache
from pathlib import Path

import numpy as np
import pytest

from tests.fuzz import eager_language
from tests.fuzz.loading import module_at
from tests.fuzz.windows import PROGRAMS, Windows

LAUNCHES = 3


def check(seed: int, folder: Path) -> None:
    """Hold random launches of a random program to NumPy, compiled and interpreted."""
    program = Windows(seed)
    path = folder / f"windows_{seed}.py"
    path.write_text(program.text)
    linecache.checkcache(str(path))
    kernel = module_at(path).kernel
    for number, launch in enumerate(program.launches(LAUNCHES)):
        expected = program.arguments(launch, number)
        eager_language.run(program.text, expected, PROGRAMS)
        ways = [("the CPU", kernel)]
        if number == 0:  # a hundred times as slow
            ways.append(("the interpreter", kernel.interpret))
        for way, run in ways:
            found = program.arguments(launch, number)
            run[(PROGRAMS,)](**found)
            for name in ("out", "seen", "cells"):
                left, right = (np.asarray(arrays[name]) for arrays in (found, expected))
                message = f"seed {seed}, {way}, {launch}: {name}\n{program.text}"
                np.testing.assert_array_equal(left, right, message)


@pytest.mark.parametrize("seed", range(16))
def test_random_windows_show_the_same_whoever_looks(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 2000))
def test_many_random_windows_show_the_same(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)
