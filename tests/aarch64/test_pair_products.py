"""Products of bf16 on AArch64: by the instructions for them where the core has them, only there."""

from __future__ import annotations

import signal
from types import SimpleNamespace

import numpy as np
import pytest
from ml_dtypes import bfloat16

from tests.aarch64.emulator import EmulationFailed, compile_case, emitted_assembly, run_emulated
from tests.aarch64.machines import APPLE_M1, NEOVERSE_N1, NEOVERSE_V2, Emulated
from tests.corpus.case import Case, Values, blank, check
from tests.corpus.matmul import matmul
from tilewright import language as tl

pytestmark = pytest.mark.aarch64

# (m, n, k) and its tile: ragged ends everywhere, one step that no whole pair fills.
SIZES = (((50, 37, 70), (16, 32, 32)), ((9, 5, 3), (8, 4, 4)), ((33, 64, 200), (32, 32, 64)))
# Armv8.2-A with products of bytes, without those of bf16.
CORE_WITHOUT_PAIRS = "neoverse-n1"


def product(size: tuple[int, int, int], tile: tuple[int, int, int]) -> Case:
    """Whole numbers that f32 sums exactly in any order."""
    m, n, k = size

    def inputs(rng: np.random.Generator) -> Values:
        a, b = (rng.integers(-8, 9, shape).astype(bfloat16) for shape in ((m, k), (k, n)))
        return {
            "a": a, "b": b, "c": blank((m, n), np.float32), "m": m, "n": n, "k": k,
            "sam": k, "sak": 1, "sbk": n, "sbn": 1,
            "M": tile[0], "N": tile[1], "K": tile[2], "ACC": tl.float32,
        }  # fmt: skip

    def reference(a: SimpleNamespace) -> None:
        a.c[:] = a.a.astype(np.float64) @ a.b.astype(np.float64)

    name = f"bf16-{m}x{n}x{k}"
    return Case(name, matmul, (-(-m // tile[0]), -(-n // tile[1])), inputs, reference)


@pytest.mark.parametrize("machine", [NEOVERSE_N1, NEOVERSE_V2, APPLE_M1], ids=lambda e: e.cpu)
@pytest.mark.parametrize(("size", "tile"), SIZES)
def test_products_of_whole_numbers_are_exact(
    machine: Emulated, size: tuple[int, int, int], tile: tuple[int, int, int]
) -> None:
    case = product(size, tile)
    check(case, run_emulated(case, machine), case.expected(), machine.machine.name)


@pytest.mark.parametrize(
    ("machine", "rows", "expected"),
    [
        (NEOVERSE_N1, 32, {"fmla"}),
        (NEOVERSE_V2, 32, {"bfmmla"}),
        (NEOVERSE_V2, 1, {"bfdot"}),
        (APPLE_M1, 32, {"fmla"}),
    ],
    ids=["neoverse-n1", "neoverse-v2", "neoverse-v2, one row", "apple-m1"],
)
def test_they_are_products_of_fours_or_pairs_where_the_core_has_them(
    machine: Emulated, rows: int, expected: set[str]
) -> None:
    prepared, _ = compile_case(product((33, 64, 200), (rows, 32, 64)), machine)
    words = set(emitted_assembly(prepared).split())
    assert words & {"bfdot", "bfmmla", "fmla"} == expected


def test_a_core_without_the_instruction_refuses_the_code() -> None:
    with pytest.raises(EmulationFailed) as caught:
        run_emulated(product(*SIZES[0]), NEOVERSE_V2, CORE_WITHOUT_PAIRS)
    assert caught.value.status == -signal.SIGILL
