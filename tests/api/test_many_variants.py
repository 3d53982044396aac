"""Variants of one kernel that a program launches in turn."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl


@tilewright.jit
def shifted(x, out, BY: tl.constexpr):
    """x + BY."""
    at = tl.arange(0, 16)
    tl.store(out + at, tl.load(x + at) + BY)


def test_each_of_twenty_variants_is_launched_warm(monkeypatch: pytest.MonkeyPatch) -> None:
    x, out = np.arange(16, dtype=np.int32), np.zeros(16, np.int32)
    for by in range(20):
        shifted[(1,)](x, out, BY=by)

    def slowly(*_: object) -> None:
        raise AssertionError("a variant that was launched before is looked up anew")

    monkeypatch.setattr(shifted, "_launch_slowly", slowly)
    for by in (*range(20), *reversed(range(20))):
        shifted[(1,)](x, out, BY=by)
        np.testing.assert_array_equal(out, x + by)
