"""Scans along rows keep the order of the blocks, to the bit, however many chains run at once."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.passes.lowered import nests

RUN = 64


@tilewright.jit
def sums(x, out, width, WIDTH: tl.constexpr, REVERSE: tl.constexpr):
    """The sums of the first elements of each row."""
    r, c = tl.program_id(0), tl.arange(0, WIDTH)
    row = tl.load(x + r * width + c, mask=c < width, other=0.0)
    tl.store(out + r * width + c, tl.cumsum(row, axis=0, reverse=REVERSE), mask=c < width)


@tilewright.jit
def step(a, b, c, d):
    """Two steps of x -> a x + b as one."""
    return a * c, b * c + d


@tilewright.jit
def recurrence(x, y, out, WIDTH: tl.constexpr):
    """out[i] = x[i] out[i - 1] + y[i], as a scan of pairs."""
    c = tl.arange(0, WIDTH)
    _, values = tl.associative_scan((tl.load(x + c), tl.load(y + c)), 0, step)
    tl.store(out + c, values)


@tilewright.jit
def greater(a, b):
    """The greater of two, by a branch."""
    best = a
    if b > a:
        best = b
    return best


@tilewright.jit
def peaks(x, out, WIDTH: tl.constexpr):
    """The greatest of the first elements."""
    c = tl.arange(0, WIDTH)
    tl.store(out + c, tl.associative_scan(tl.load(x + c), 0, greater))


def blocked(x: np.ndarray, size: int = RUN) -> tuple[np.ndarray, np.ndarray]:
    """The sums in blocks of 64, of 64² …, each from its first part on; and their total."""
    if len(x) <= RUN:
        prefix = np.add.accumulate(x)
        return prefix, prefix[-1]
    inner = RUN
    while inner * RUN < len(x):
        inner *= RUN
    parts = [x[at : at + inner] for at in range(0, len(x), inner)]
    result, before = [], None
    for part in parts:
        prefix, total = _behind(part, before)
        result.append(prefix)
        before = total if before is None else before + total
    return np.concatenate(result), before


def _behind(x: np.ndarray, carry: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The sums of a part behind what precedes it, and the part's own total."""
    if len(x) <= RUN:
        prefix = np.add.accumulate(x)
        return prefix if carry is None else carry + prefix, prefix[-1]
    result, before = [], None
    for at in range(0, len(x), RUN):
        passed = carry if before is None else before
        if carry is not None and before is not None:
            passed = carry + before
        prefix, total = _behind(x[at : at + RUN], passed)
        result.append(prefix)
        before = total if before is None else before + total
    assert before is not None
    return np.concatenate(result), before


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("width", [64, 100, 512, 1000, 1024, 4096, 8192, 16000])
def test_sums_have_the_bits_of_the_blocks(width, reverse, dtype, rng) -> None:
    x = rng.standard_normal((3, width)).astype(dtype)
    out, size = np.zeros_like(x), tilewright.next_power_of_2(width)
    sums[(3,)](x, out, width, WIDTH=size, REVERSE=reverse)
    if dtype == "float16":
        turned = x[:, ::-1] if reverse else x
        expected = np.cumsum(turned.astype(np.float64), axis=1)
        expected = expected[:, ::-1] if reverse else expected
        np.testing.assert_allclose(out.astype(np.float64), expected, atol=0.03 * width**0.5)
        return
    for row, found in zip(x, out, strict=True):
        padded = np.zeros(size, dtype)
        padded[:width] = row
        expected = blocked(padded[::-1])[0][::-1] if reverse else blocked(padded)[0]
        np.testing.assert_array_equal(found, expected[:width])


@pytest.mark.parametrize("width", [128, 512, 2048])
def test_a_scan_of_pairs_is_a_recurrence(width, rng) -> None:
    x, y = rng.uniform(-0.9, 0.9, (2, width))
    out, expected = np.zeros(width), np.zeros(width)
    recurrence[(1,)](x, y, out, WIDTH=width)
    value = 0.0
    for i in range(width):
        value = x[i] * value + y[i]
        expected[i] = value
    np.testing.assert_allclose(out, expected, rtol=1e-9, atol=1e-12)


def test_a_branch_in_the_function_keeps_the_scan_scalar(rng) -> None:
    x = rng.standard_normal(1024).astype(np.float32)
    out = np.zeros_like(x)
    peaks[(1,)](x, out, WIDTH=1024)
    np.testing.assert_array_equal(out, np.maximum.accumulate(x))


def test_eight_runs_are_summed_side_by_side() -> None:
    f32 = np.zeros(1024, np.float32)
    module, _ = nests(sums, x=f32, out=f32, width=1024, WIDTH=1024, REVERSE=False)
    assert any(len(op.results) == 8 for op in module.walk() if op.name == "scf.for")
