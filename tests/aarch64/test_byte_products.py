"""Products of bytes on AArch64: exact at the extremes, by the instruction for them."""

from __future__ import annotations

import signal
from types import SimpleNamespace

import numpy as np
import pytest

from tests.aarch64.emulator import EmulationFailed, compile_case, emitted_assembly, run_emulated
from tests.aarch64.machines import APPLE_M1, MACHINES, Emulated
from tests.corpus.case import Case, Values, blank, check, whole
from tests.corpus.everything import CASES
from tests.corpus.matmul import matmul
from tilewright import language as tl

pytestmark = pytest.mark.aarch64

# (m, n, k) and its tile: ragged ends everywhere, one step that no whole group of four fills.
SIZES = (((50, 37, 70), (16, 32, 32)), ((9, 5, 3), (8, 4, 4)), ((33, 64, 200), (32, 32, 64)))
# A core of Armv8.0-A: floats and NEON, no products of bytes.
BASE_CPU = "cortex-a72"
every_machine = pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)


def product(size: tuple[int, int, int], tile: tuple[int, int, int]) -> Case:
    m, n, k = size

    def inputs(rng: np.random.Generator) -> Values:
        a, b = whole(rng, (m, k), np.int8), whole(rng, (k, n), np.int8)
        # The extremes meet: what saturates or takes the wrong sign cannot agree.
        low, high = -128, 127
        a[0, :], b[:, 0] = high, high
        a[1, :], b[:, 1] = low, low
        return {
            "a": a, "b": b, "c": blank((m, n), np.int32), "m": m, "n": n, "k": k,
            "sam": k, "sak": 1, "sbk": n, "sbn": 1,
            "M": tile[0], "N": tile[1], "K": tile[2], "ACC": tl.int32,
        }  # fmt: skip

    def reference(a: SimpleNamespace) -> None:
        a.c[:] = a.a.astype(np.int64) @ a.b.astype(np.int64)

    name = f"bytes-{m}x{n}x{k}"
    return Case(name, matmul, (-(-m // tile[0]), -(-n // tile[1])), inputs, reference)


@every_machine
@pytest.mark.parametrize(("size", "tile"), SIZES)
def test_products_of_bytes_are_exact(
    machine: Emulated, size: tuple[int, int, int], tile: tuple[int, int, int]
) -> None:
    case = product(size, tile)
    check(case, run_emulated(case, machine), case.expected(), machine.machine.name)


@every_machine
def test_they_are_dot_products_of_fours_or_of_two_rows_by_two_columns(machine: Emulated) -> None:
    has_2x2 = machine.machine.has_feature("i8mm")
    for rows, word in ((1, "sdot"), (16, "smmla" if has_2x2 else "sdot")):
        prepared, _ = compile_case(product((50, 37, 70), (rows, 32, 32)), machine)
        words = set(emitted_assembly(prepared).split())
        assert words & {"sdot", "udot", "smull", "umull", "smmla", "ummla"} == {word}


@every_machine
def test_a_core_without_the_instruction_refuses_the_code(machine: Emulated) -> None:
    with pytest.raises(EmulationFailed) as caught:
        run_emulated(product(*SIZES[0]), machine, BASE_CPU)
    assert caught.value.status == -signal.SIGILL


def test_the_core_without_the_instruction_runs_other_code() -> None:
    """It is the instruction that it refuses."""
    (case,) = (case for case in CASES if case.name == "dot-float32-nn-128x64x32")
    check(case, run_emulated(case, APPLE_M1, BASE_CPU), case.expected(), BASE_CPU)
