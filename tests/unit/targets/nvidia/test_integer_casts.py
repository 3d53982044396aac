"""Integers to floats as the GPU's lanes compute them: every narrow integer, loaded or computed."""

from __future__ import annotations

from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.corpus.case import Case
from tests.corpus.threads import lower_for_gpu, run_threads
from tilewright.interp.casts import round_float

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
NARROW = [np.int8, np.uint8, np.int16, np.uint16]
FLOATS = [np.dtype(np.float32), np.dtype(np.float16), BFLOAT16]


@tilewright.jit
def cast(x_ptr, out_ptr, N: tl.constexpr, FLIP: tl.constexpr):
    """out = x as floats, or the complement of x, which no word of memory holds."""
    i = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + i)
    if FLIP:
        x = ~x
    tl.store(out_ptr + i, x.to(out_ptr.dtype.element_ty))


def numbers(dtype: type[np.integer]) -> np.ndarray:
    """Every number of up to 16 bits; of 32 bits those around what floats hold exactly."""
    info = np.iinfo(dtype)
    if info.bits <= 16:
        return np.arange(info.min, info.max + 1).astype(dtype)
    edges = [
        sign * (1 << bit) + near for bit in range(32) for sign in (-1, 1) for near in (-1, 0, 1)
    ]
    edges += [65504, 65519, 65520, 65535, -65519, -65520, 2049, 2051, -2049, (1 << 24) + 1]
    kept = [e for e in edges if info.min <= e <= info.max]
    return np.resize(np.array(kept, dtype=dtype), 256)


def case(dtype: type[np.integer], out: np.dtype, block: int, *, flips: bool) -> Case:
    """A cast of all numbers, `block` of them by a program."""
    x = numbers(dtype)

    def inputs(rng: np.random.Generator) -> dict[str, object]:
        given = {"x_ptr": rng.permutation(x), "out_ptr": np.zeros(x.size, out)}
        return {**given, "N": block, "FLIP": flips}

    def reference(v: SimpleNamespace) -> None:
        v.out_ptr[:] = round_float((~v.x_ptr if flips else v.x_ptr).astype(np.float64), out)

    return Case("cast", cast, (x.size // block,), inputs, reference)


@pytest.mark.parametrize("flips", [False, True])
@pytest.mark.parametrize("target", FLOATS)
@pytest.mark.parametrize("dtype", [*NARROW, np.int32, np.uint32])
def test_integers_are_rounded_once(dtype: type[np.integer], target: np.dtype, flips: bool) -> None:
    """Whole words of registers, and a thread's single one."""
    for block in (256, 128):
        made = case(dtype, target, block, flips=flips)
        got, expected = run_threads(made)["out_ptr"], made.expected()["out_ptr"]
        bits = f"u{got.dtype.itemsize}"
        np.testing.assert_array_equal(got.view(bits), expected.view(bits))


@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_integers_are_permuted(dtype: type[np.integer]) -> None:
    """No cast of theirs is left to the unit of special functions: words come from `prmt`."""
    for target in FLOATS:
        for flips in (False, True):
            text = lower_for_gpu(case(dtype, target, 256, flips=flips)).text
            casts = [line for line in text.splitlines() if "itofp" in line]
            assert "llvm.nvvm.prmt" in text and all("itofp i32" in line for line in casts)


@tilewright.jit
def cast_below(x_ptr, out_ptr, N: tl.constexpr, MOST: tl.constexpr):
    """out = the low bits of x, and what is below them, as floats."""
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, (x & MOST).to(tl.bfloat16))
    tl.store(out_ptr + N + i, ((x & MOST) - MOST).to(tl.bfloat16))


@pytest.mark.parametrize("most", [15, (1 << 25) - 1])
@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_small_words_become_bf16_by_float32(dtype: type[np.integer], most: int) -> None:
    """Those that float32 holds; others, and negative ones that are unsigned, round once."""

    def inputs(rng: np.random.Generator) -> dict[str, object]:
        x = rng.integers(0, np.iinfo(dtype).max, 256).astype(dtype)
        return {"x_ptr": x, "out_ptr": np.zeros(512, BFLOAT16), "N": 256, "MOST": most}

    def reference(v: SimpleNamespace) -> None:
        low = v.x_ptr & dtype(most)
        for part, numbers in ((v.out_ptr[:256], low), (v.out_ptr[256:], low - dtype(most))):
            part[:] = round_float(numbers.astype(np.float64), BFLOAT16)

    made = Case("cast_below", cast_below, (1,), inputs, reference)
    got, expected = run_threads(made)["out_ptr"], made.expected()["out_ptr"]
    np.testing.assert_array_equal(got.view("u2"), expected.view("u2"))
    is_by_float32 = "to double" not in lower_for_gpu(made).text
    assert is_by_float32 == (most == 15 and dtype is np.int32)
