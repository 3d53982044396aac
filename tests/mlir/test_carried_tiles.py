"""Tiles that are loaded and carried: their buffers live as long as the tiles, and no longer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.jit import JITFunction

pytestmark = pytest.mark.mlir


@tilewright.jit
def two_steps_behind(x, out, steps, B: tl.constexpr):
    at = tl.arange(0, B)
    p = x + tl.program_id(0) * B
    older, old = tl.load(p + at), tl.load(p + 32 + at)
    for i in range(steps):
        new = tl.load(p + 64 + i * 32 + at)
        tl.store(out + (tl.program_id(0) * 8 + i) * B + at, older * 100 + old * 10 + new)
        older = old
        old = new
    tl.store(out + (tl.program_id(0) * 8 + 7) * B + at, older - old)


@tilewright.jit
def kept_sometimes(x, out, steps, B: tl.constexpr):
    at = tl.arange(0, B)
    kept = tl.load(x + at)
    for i in range(steps):
        seen = tl.load(x + (i + 1) * B + at)
        if tl.sum(seen, 0) % 2 == tl.program_id(0) % 2:
            kept = seen
        tl.store(x + (i + 1) * B + at, kept + seen, mask=tl.program_id(0) == 0)
        tl.store(out + (tl.program_id(0) * 8 + i) * B + at, kept)


@tilewright.jit
def until_large(x, out, steps, B: tl.constexpr):
    at = tl.arange(0, B)
    total, last, i = tl.zeros((B,), tl.int32), tl.load(x + at), 0
    while (i < steps) & (tl.max(total, 0) < 90):
        now = tl.load(x + tl.program_id(0) * B + i * B + at)
        total += now - last
        last, i = now, i + 1
    tl.store(out + tl.program_id(0) * 8 * B + at, total * 7 + last + i)


@tilewright.jit
def written_and_read_again(x, out, steps, B: tl.constexpr):
    at = tl.arange(0, B)
    p = x + tl.program_id(0) * 8 * B
    for i in range(steps):
        before = tl.load(p + at)
        tl.store(p + at, before * 2 + i)
        after = tl.load(p + at)
        tl.store(p + 3 + at, before + after, mask=at < B - i)
        tl.store(out + (tl.program_id(0) * 8 + i) * B + at, tl.load(p + 1 + at) - before)


def results(launch: Callable[..., object], steps: int) -> tuple[np.ndarray, np.ndarray]:
    x = (np.arange(2048, dtype=np.int32) * 37) % 101
    out = np.full(2048, 77, np.int32)
    launch(x, out, steps, B=32)
    return x, out


@pytest.mark.parametrize("steps", [0, 1, 2, 6])
@pytest.mark.parametrize(
    "kernel",
    [two_steps_behind, kept_sometimes, until_large, written_and_read_again],
    ids=lambda kernel: kernel.__name__,
)
def test_carried_tiles_are_what_the_interpreter_says(
    kernel: JITFunction, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One program of `kept_sometimes` writes what it reads itself: the others would race with it.
    grid = (1,) if kernel is kept_sometimes else (5,)
    monkeypatch.setenv("TILEWRIGHT_TARGET", "mlir")
    expected = results(kernel.interpret[grid], steps)
    for got, right in zip(results(kernel[grid], steps), expected, strict=True):
        np.testing.assert_array_equal(got, right)
