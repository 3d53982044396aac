"""What piece masks look at grows with a mask's ops, however often it takes each of them."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.ir import SSAValue

import tilewright
import tilewright.language as tl
from tests.passes.lowered import nests
from tilewright.targets.cpu.nests import piece_masks
from tilewright.targets.cpu.nests.coordinates import Coords
from tilewright.targets.cpu.nests.evaluate import Evaluator

F32 = np.zeros(1 << 16, np.float32)


@tilewright.jit
def narrow(x, out, m, STEPS: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr):
    """Columns of narrow matrices, the rows of which end where a long expression says."""
    c, r = tl.arange(0, COLUMNS)[:, None], tl.arange(0, ROWS)[None, :]
    matrix = c // 33
    end = matrix
    for _ in tl.static_range(STEPS):
        end = end * end + end
    mask = r + (end - end + matrix) * 257 < m
    loaded = tl.load(x + c % 33 + 33 * r + matrix * 33 * 257, mask=mask, other=0.0)
    tl.store(out + c + r * COLUMNS, loaded, mask=mask)


def test_what_is_looked_at_grows_with_the_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: dict[int, int] = {}
    is_same = piece_masks._is_same
    for steps in (4, 8):
        looks[steps] = 0

        def counted(ev: Evaluator, value: SSAValue, coords: Coords, steps: int = steps) -> bool:
            looks[steps] += 1
            return is_same(ev, value, coords)

        monkeypatch.setattr(piece_masks, "_is_same", counted)
        nests(narrow, x=F32, out=F32, m=64, STEPS=steps, COLUMNS=64, ROWS=64)
    assert 0 < looks[8] < 3 * looks[4]


@pytest.mark.parametrize("m", [0, 40, 64, 257, 300, 400])
def test_rows_end_where_the_expression_says(m: int) -> None:
    x = np.random.default_rng(m).standard_normal(33 * 257 * 2, np.float32)
    outs = np.full((2, 64 * 64), 7, np.float32)
    narrow[(1,)](x, outs[0], m, STEPS=3, COLUMNS=64, ROWS=64)
    narrow.interpret[(1,)](x, outs[1], m, STEPS=3, COLUMNS=64, ROWS=64)
    np.testing.assert_array_equal(*outs)
