"""Choices that are stored where one of their arms was loaded, on a core with AVX2."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.passes.lowered import request_of
from tilewright.compiler.stages import stage_text
from tilewright.machine.cpus import MADE_UP_CPU
from tilewright.support.dataclass import replace

F32 = np.zeros(1, np.float32)
MASKED_STORE = re.compile(r"vmaskmovp[sd]\s+%[xy]mm\d+, %[xy]mm\d+, \S*\(")


@tilewright.jit
def greatest(x, out, steps, N: tl.constexpr):
    """The greatest of each column, with NaNs, as torch's helper has it."""
    i = tl.arange(0, N)
    acc = tl.full([N], float("-inf"), tl.float32)
    for step in range(steps):
        v = tl.load(x + step * N + i)
        acc = tl.where((acc > v) | (acc != acc), acc, v)
    tl.store(out + i, acc)


@tilewright.jit
def sum_of_greatest(x, out, steps, N: tl.constexpr):
    """Their sum, which is no vector's store."""
    i = tl.arange(0, N)
    acc = tl.full([N], float("-inf"), tl.float32)
    for step in range(steps):
        v = tl.load(x + step * N + i)
        acc = tl.where((acc > v) | (acc != acc), acc, v)
    tl.store(out, tl.sum(acc, 0))


@pytest.mark.parametrize("size", [64, 1024])
def test_no_masked_store_is_made(size: int) -> None:
    request = request_of(sum_of_greatest, x=F32, out=F32, steps=9, N=size)
    request = replace(request, machine=MADE_UP_CPU)
    assert not MASKED_STORE.search(stage_text(request, "asm"))


@pytest.mark.parametrize("size", [8, 64, 1024])
def test_nans_stay(size: int, rng: np.random.Generator) -> None:
    x = rng.choice([1.0, -0.0, 0.0, np.inf, -np.inf, np.nan, 3.0], (9, size)).astype(np.float32)
    out = np.zeros(size, np.float32)
    greatest[(1,)](x, out, 9, size)
    np.testing.assert_array_equal(out, np.maximum.reduce(x))
