"""Accesses that a mask shows wholly or not at all, on a core with AVX2."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.passes.lowered import WIDE, request_of
from tilewright.compiler.stages import stage_text
from tilewright.machine.cpus import MADE_UP_CPU
from tilewright.machine.model import MachineModel
from tilewright.support.dataclass import replace
from tilewright.targets.cpu.nests.masks import MASKED_ACCESSES

DTYPES = (np.float16, np.float32, np.int8)


@tilewright.jit
def copy(x, out, m, n, R: tl.constexpr, C: tl.constexpr):
    r, c = tl.arange(0, R)[:, None], tl.arange(0, C)[None, :]
    v = tl.load(x + r * n + c, mask=r < m, other=3)
    tl.store(out + r * n + c, v, mask=r < m)


@tilewright.jit
def gathered(x, out, index, m, start, n, R: tl.constexpr, C: tl.constexpr):
    """Columns in the order of an index, of rows that a mask shows in the middle."""
    r, c = tl.arange(0, R)[:, None], tl.arange(0, C)
    at = tl.load(index + c)[None, :]
    shown = (r >= start) & (r < m)
    tl.store(out + r * C + c[None, :], tl.load(x + r * n + at, mask=shown, other=3))


@tilewright.jit
def squares(x, out, m, n, R: tl.constexpr, C: tl.constexpr):
    """A row that is hidden is `other`."""
    r, c = tl.arange(0, R)[:, None], tl.arange(0, C)[None, :]
    v = tl.load(x + r * n + c, mask=r % 3 < m, other=3).to(tl.float32)
    tl.store(out + tl.arange(0, R), tl.sum(v * v, 1))


def text_of_copy(dtype: type, machine: MachineModel) -> str:
    # Too few columns for a nest that starts at a line of what it stores, whose ends are masked.
    arrays = np.zeros(1, dtype)
    request = request_of(copy, x=arrays, out=arrays, m=5, n=99, R=16, C=32)
    return stage_text(replace(request, machine=machine), "llir")


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_behind_a_mask_are_no_masked_accesses(dtype: type) -> None:
    text = text_of_copy(dtype, MADE_UP_CPU)
    assert "masked.store" not in text and "masked.load" not in text


def test_machines_with_masks_take_them() -> None:
    masked = replace(WIDE, features=(*WIDE.features, *(f"+{name}" for name in MASKED_ACCESSES)))
    text = text_of_copy(np.float16, masked)
    assert "masked.store" in text and "masked.load" in text


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m", [0, 1, 11, 16, 20])
def test_shown_rows_are_copied(dtype: type, m: int, rng: np.random.Generator) -> None:
    x = rng.integers(-99, 99, (16, 71)).astype(dtype)
    out = np.full((16, 71), 7, dtype)
    expected = out.copy()
    expected[:m, :64] = x[:m, :64]
    copy[(1,)](x, out, m, 71, 16, 64)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("start", "m"), [(0, 16), (3, 11), (9, 4), (15, 99)])
def test_hidden_rows_of_a_gather_are_other(
    dtype: type, start: int, m: int, rng: np.random.Generator
) -> None:
    x, index = rng.integers(-99, 99, (16, 71)).astype(dtype), rng.permutation(71)[:64]
    out = np.zeros((16, 64), dtype)
    gathered[(1,)](x, out, index.astype(np.int32), m, start, 71, 16, 64)
    expected = np.full((16, 64), 3, dtype)
    expected[start:m] = x[start:m, index]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m", [0, 1, 2, 3])
def test_hidden_rows_of_a_sum_are_other(dtype: type, m: int, rng: np.random.Generator) -> None:
    x, out = rng.integers(-9, 9, (16, 71)).astype(dtype), np.zeros(16, np.float32)
    squares[(1,)](x, out, m, 71, 16, 64)
    shown = (np.arange(16) % 3 < m)[:, None]
    seen = np.where(shown, x[:, :64], 3).astype(np.float32)
    np.testing.assert_array_equal(out, (seen * seen).sum(1))
