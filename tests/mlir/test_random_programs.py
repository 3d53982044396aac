"""Random programs, lowered by stock MLIR and run, agree with the interpreter bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.corpus.run import run_compiled
from tests.fuzz.generator import generate
from tests.fuzz.oracle import examine

pytestmark = pytest.mark.mlir


@pytest.fixture(autouse=True)
def on_mlir(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_TARGET", "mlir")


# Two that went wrong: a sum of what one number was repeated to, constants of 8-bit floats.
@pytest.mark.parametrize("seed", [700_006, 700_015, *range(700_000, 700_005)])
def test_a_random_program_agrees(seed: int) -> None:
    finding = examine(generate(seed), (), {"mlir": run_compiled})
    assert finding is None, f"seed {seed}: {finding.kind}\n{finding.text}"


@tilewright.jit
def narrow_constants(x, out, B: tl.constexpr):
    at = tl.arange(0, B)
    v = tl.load(x + at)
    tl.store(out + at, tl.clamp(v, -3.0, 6.0) + tl.full((B,), 1.5, v.dtype))
    tl.store(out + B, tl.load(x) + tl.full((), 2.0, v.dtype))


def test_constants_of_narrow_floats_are_numbers() -> None:
    import ml_dtypes

    for dtype in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.bfloat16):
        x = np.linspace(-20, 20, 32).astype(dtype)
        expected, got = np.zeros(33, dtype), np.zeros(33, dtype)
        narrow_constants.interpret[(1,)](x, expected, B=32)
        narrow_constants[(1,)](x, got, B=32)
        assert got.tobytes() == expected.tobytes()
        assert got[31] == np.asarray(7.5).astype(dtype)


@tilewright.jit
def sums_of_one_number(out, n, B: tl.constexpr):
    same = tl.broadcast_to(n + tl.program_id(0), (B, 8))
    tl.store(out + tl.program_id(0) * 16 + tl.arange(0, 8), tl.sum(same, 0))
    tl.store(out + tl.program_id(0) * 16 + 8, tl.sum(tl.max(same, 1), 0))


def test_what_is_repeated_is_summed_as_often() -> None:
    out = np.zeros(48, np.int32)
    sums_of_one_number[(3,)](out, 5, B=16)
    for program in range(3):
        assert (out[program * 16 : program * 16 + 9] == 16 * (5 + program)).all()
