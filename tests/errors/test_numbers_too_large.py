"""Numbers that no machine word holds, where a small one is due: they are the author's error."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.support.errors import (
    InternalError,
    InvalidOption,
    LiteralOutOfRange,
    TilewrightError,
    TooManyIterations,
)


@tilewright.jit
def unrolls(out, K: tl.constexpr):
    for i in tl.static_range(K):
        tl.store(out, i)


@tilewright.jit
def unrolls_by_steps(out, K: tl.constexpr):
    for i in tl.static_range(K, -K, -1):
        tl.store(out, i)


@tilewright.jit
def promises(out, K: tl.constexpr):
    tl.store(out, tl.multiple_of(tl.load(out), K))


@tilewright.jit
def promises_runs(out, K: tl.constexpr):
    tl.store(out, tl.max_contiguous(tl.load(out), K))


@tilewright.jit
def has_stages(out, K: tl.constexpr):
    for i in tl.range(3, num_stages=K):
        tl.store(out, i)


@tilewright.jit
def packs(out, K: tl.constexpr):
    x = tl.load(out)
    tl.store(out, tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], tl.int32, True, K))


@tilewright.jit
def steps_far(out, K: tl.constexpr):
    for i in tl.static_range(0, K, K - 1):
        tl.store(out + i // (K - 1), 7)


KERNELS = {
    unrolls: TooManyIterations,
    unrolls_by_steps: TooManyIterations,
    promises: LiteralOutOfRange,
    promises_runs: LiteralOutOfRange,
    has_stages: InvalidOption,
    packs: LiteralOutOfRange,
}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("number", [2**62, 2**63, 2**64 + 1, 2**70])
def test_a_number_too_large_is_refused_where_it_is(
    kernel: tilewright.JITFunction, number: int
) -> None:
    with pytest.raises(TilewrightError) as caught:
        kernel.warmup(np.zeros(4, np.int32), K=number)
    assert not isinstance(caught.value, InternalError)
    assert isinstance(caught.value, KERNELS[kernel])
    assert "test_numbers_too_large.py:" in str(caught.value)


def test_few_large_steps_are_unrolled() -> None:
    out = np.zeros(4, np.int32)
    steps_far[(1,)](out, K=2**70)
    assert out.tolist() == [7, 7, 0, 0]
