"""Random walks over numbers: whatever a loop is made to count, programs visit what they visited."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.loading import module_at
from tests.fuzz.walks import CAPACITY, TooLong, generate_walk, visited
from tests.unit.targets.nvidia.persistent_kernels import scheduled_for
from tilewright.runtime.launch_numbers import launch_guards, words_of

SMS = 4


def check(seed: int, folder: Path) -> str:
    """Hold the threads of a launch to Python; "counted" where the loop counts other numbers.

    It is "plain" where the launch does not keep to what that demands, and "kept" where nothing may
    be demanded.
    """
    program = generate_walk(seed)
    try:
        expected = visited(program)
    except TooLong:
        return "too long"
    path = folder / f"walk_{seed}.py"
    path.write_text(program.text)
    kernel, given, read = module_at(path).kernel, program.arguments(), program.arguments()
    kernel.simulate[(program.programs,)](**given, seed=seed if seed % 2 else None)
    log = np.asarray(given["log"]).reshape(program.programs, CAPACITY)
    for numbers, row in zip(expected, log, strict=True):
        assert row.tolist() == numbers + [-77] * (CAPACITY - len(numbers)), f"seed {seed}"
    kernel.interpret[(program.programs,)](**read)
    np.testing.assert_array_equal(given["sums"], read["sums"], f"seed {seed}")
    scheduled, _, values = scheduled_for(kernel, tuple(read.values()), SMS, {})
    guards = [guard for guard in launch_guards(scheduled.metadata) if "counts" in guard.text]
    words = words_of([value for _, value in values])
    holds = all(guard.holds(words, (program.programs, 1, 1)) for guard in guards)
    return ("counted" if holds else "plain") if guards else "kept"


@pytest.mark.parametrize("first", range(0, 120, 30))
def test_random_walks_visit_what_python_does(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 30):
        check(seed, tmp_path)


def test_many_are_counted_and_many_may_not_be(tmp_path: Path) -> None:
    found = Counter(check(seed, tmp_path) for seed in range(1000, 1060))
    assert min(found["counted"], found["plain"], found["kept"]) >= 6, found


@pytest.mark.slow
@pytest.mark.parametrize("first", range(2000, 4000, 100))
def test_more_random_walks_visit_what_python_does(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 100):
        check(seed, tmp_path)
