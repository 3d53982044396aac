"""What fails while a kernel runs is an error with its line, and no end of the process."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.support.errors import AssertionFailed, OutOfBoundsAccess

pytestmark = pytest.mark.mlir


@tilewright.jit
def asserts(x, out, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + offsets)
    tl.device_assert(values < 100, 'a "large" value: 100 % é')
    tl.device_assert(tl.sum(values) != 7, "seven")
    tl.store(out + offsets, values)


@tilewright.jit
def reads_behind(x, out, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.load(x + offsets))


@pytest.fixture(autouse=True)
def on_mlir(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_TARGET", "mlir")


def test_assertions_that_hold_change_nothing() -> None:
    x, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    asserts[(4,)](x, out, BLOCK=16, debug=True)
    np.testing.assert_array_equal(out, x)


@pytest.mark.parametrize("place, value, said", [(37, 100, 'a "large" value'), (16, -368, "seven")])
def test_a_failed_assertion_names_its_message_line_and_program(
    place: int, value: int, said: str
) -> None:
    x, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    x[place] = value if said != "seven" else 7 - int(x[17:32].sum())
    with pytest.raises(AssertionFailed, match=said) as caught:
        asserts[(4,)](x, out, BLOCK=16, debug=True)
    assert f"in program ({place // 16}, 0, 0)" in caught.value.summary
    assert caught.value.span is not None and caught.value.span.file == __file__
    x[:] = 1
    asserts[(4,)](x, out, BLOCK=16, debug=True)  # the record is clean again
    np.testing.assert_array_equal(out, x)


def test_checked_mode_finds_an_access_behind_the_end() -> None:
    x, out = np.zeros(24, np.float32), np.zeros(32, np.float32)
    with pytest.raises(OutOfBoundsAccess):
        reads_behind[(1,)](x, out, BLOCK=32, checked=True)
