"""Loops over the steps of all tiles, whose step is made together with something else."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl


@tilewright.jit
def made_with_another(out, depth, tiles):
    """The branch that makes the step counts, too."""
    step, tile, count = -1, 0, 0
    for _ in range(0, depth * tiles):
        if step == depth - 1:
            step = 0
            count += 10
        else:
            step += 1
        if step == 0:
            tile += 1
        if step == depth - 1:
            tl.store(out + tile, count + step)


@tilewright.jit
def read_before_it_wraps(out, depth, tiles):
    """The number behind the step is read where it is the depth, too."""
    step, tile, count = -1, 0, 0
    for _ in range(0, depth * tiles):
        following = step + 1
        step = tl.where(step == depth - 1, 0, following)
        count += following
        if step == 0:
            tile += 1
        if step == depth - 1:
            tl.store(out + tile, count)


@tilewright.jit
def branch_that_stores(out, depth, tiles):
    """The branch that makes the step stores."""
    step, tile = -1, 0
    for _ in range(0, depth * tiles):
        if step == depth - 1:
            tl.store(out + 16 + tile, step)
            step = 0
        else:
            step += 1
        if step == 0:
            tile += 1
        if step == depth - 1:
            tl.store(out + tile, tile)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize(
    "kernel",
    [made_with_another, read_before_it_wraps, branch_that_stores],
    ids=lambda kernel: kernel.fn.__name__,
)
def test_what_is_made_beside_the_step_stays(kernel: tilewright.JITFunction, depth: int) -> None:
    found, expected = np.full(32, -1, np.int32), np.full(32, -1, np.int32)
    kernel.simulate[(1,)](found, depth, 4)
    kernel.interpret[(1,)](expected, depth, 4)
    np.testing.assert_array_equal(found, expected)
