"""Index arithmetic by bases and constants: exact where the numbers are data."""

from __future__ import annotations

import numpy as np

import tilewright
import tilewright.language as tl
from tests.unit.codegen.simt.launching import check


@tilewright.jit
def wrapping(x, wide, unsigned, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    value = tl.load(x + i) + 5
    tl.store(wide + i, value.to(tl.int64))
    tl.store(unsigned + i, (value.to(tl.uint32) - 9).to(tl.uint64))


@tilewright.jit
def widened_offsets(x, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(out + (i + 3).to(tl.int64) * 2, tl.load(x + i.to(tl.int64)))


@tilewright.jit
def shifted(out, n):
    for k in range(n):
        tl.store(out + (k << k), n << k)


def test_a_number_that_wrapped_is_widened_as_it_is() -> None:
    edge = np.iinfo(np.int32)
    x = np.array([edge.max, edge.max - 4, edge.min, -5, 0, 7, 3, -1], np.int32).repeat(16)
    check(wrapping, (1,), x, np.zeros(128, np.int64), np.zeros(128, np.uint64), SIZE=128)


def test_offsets_may_be_wide() -> None:
    x = np.arange(128, dtype=np.float32)
    check(widened_offsets, (1,), x, np.zeros(300, np.float32), SIZE=128)


def test_scalars_shift_by_scalars() -> None:
    check(shifted, (1,), np.zeros(64, np.int32), 4)
