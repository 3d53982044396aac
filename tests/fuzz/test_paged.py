"""Random attentions over pages: threads leave the bits that the interpreter leaves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.paged import generate_paged


def check(seed: int, folder: Path | None = None) -> None:
    """Hold the threads of a launch to the interpreter."""
    program = generate_paged(seed)
    given, expected, arrays = program.arguments()
    program.kernel.interpret[(2,)](*given, **program.options, reachable=arrays)
    given, found, arrays = program.arguments()
    order = seed if seed % 2 else None
    program.kernel.simulate[(2,)](*given, **program.options, reachable=arrays, seed=order)
    np.testing.assert_array_equal(found, expected, f"seed {seed}: {program}")


@pytest.mark.parametrize("first", range(0, 24, 8))
def test_random_attentions_over_pages_agree(first: int) -> None:
    for seed in range(first, first + 8):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1400, 50))
def test_many_random_attentions_over_pages_agree(first: int) -> None:
    for seed in range(first, first + 50):
        check(seed)
