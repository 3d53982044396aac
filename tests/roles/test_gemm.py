"""Products by roles: the T2 interpreter and the simulator agree with NumPy to the bit."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.corpus.case import Case
from tests.corpus.threads import lower_for_gpu
from tests.roles.gemm import Gemm
from tests.roles.running import emitted, interpret, placed, simulated
from tilewright.interp.simt.simulate import simulate

BF16 = ml_dtypes.bfloat16
SMALL = {"columns": 64, "group": 2}
PROGRAMS = {
    "one group": Gemm(rows=64, replicas=1, slots=2, **SMALL),
    "rows shared by two": Gemm(slots=3, **SMALL),
    "rows shared by three": Gemm(rows=192, replicas=3, slots=2, **SMALL),
    "released late": Gemm(slots=3, late=True, **SMALL),
    "tiles by turns": Gemm(rows=64, split="tiles", slots=3, late=True, **SMALL),
    "tiles by three turns": Gemm(rows=64, split="tiles", slots=2, replicas=3, **SMALL),
    "one tile a program": Gemm(slots=2, persistent=False, **SMALL),
}


def whole_numbers(rows: int, columns: int, seed: int) -> np.ndarray:
    """Numbers whose products and sums are exact, in whatever order."""
    drawn = np.random.default_rng(seed).integers(-4, 5, (rows, columns))
    return drawn.astype(BF16)


def check(program: Gemm, m: int, n: int, k: int, programs: int, seed: int | None = None) -> None:
    """Both run the program and find the product."""
    a, b = whole_numbers(m, k, 1), whole_numbers(k, n, 2)
    expected = (a.astype(np.float32) @ b.astype(np.float32)).astype(BF16)
    module = placed(program.module())
    code = emitted(module)
    for name, run in (("interpreter", interpret), ("threads", simulated)):
        out = np.full((m, n), np.nan, BF16)
        extra = {"seed": seed} if run is simulated else {}
        what = module if run is interpret else code
        run(what, [a, b, out, m, n, k], programs, **extra)  # type: ignore[operator]
        np.testing.assert_array_equal(out, expected, err_msg=name)


def tiles_of(program: Gemm, m: int, n: int) -> int:
    return -(-m // program.rows) * -(-n // program.columns)


@pytest.mark.parametrize("name", PROGRAMS)
def test_more_tiles_than_programs_and_ragged_edges(name: str) -> None:
    program = PROGRAMS[name]
    m, n = 2 * program.rows + 40, 2 * program.columns - 24
    programs = 2 if program.persistent else tiles_of(program, m, n)
    check(program, m, n, 200, programs)


@pytest.mark.parametrize("name", ["rows shared by two", "released late", "tiles by turns"])
@pytest.mark.parametrize("over", [-1, 0, 1, "twice"])
def test_trip_counts_around_the_number_of_slots(name: str, over: int | str) -> None:
    program = PROGRAMS[name]
    steps = 2 * program.slots + 1 if isinstance(over, str) else program.slots + over
    check(program, 2 * program.rows, program.columns, 64 * steps, 1, seed=3)


@pytest.mark.parametrize("tiles", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("name", ["tiles by turns", "tiles by three turns"])
def test_every_number_of_tiles_by_turns(name: str, tiles: int) -> None:
    program = PROGRAMS[name]
    check(program, tiles * program.rows, program.columns, 64, 1, seed=tiles)


@tilewright.jit
def synchronous(a, b, c, M, N, K, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    j, k = tl.arange(0, COLUMNS), tl.arange(0, DEPTH)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, K, DEPTH):
        x = tl.load(a + i[:, None] * K + start + k[None, :])
        y = tl.load(b + (start + k)[:, None] * N + j[None, :])
        total = tl.dot(x, y, total)
    tl.store(c + i[:, None] * N + j[None, :], total.to(tl.bfloat16))


@pytest.mark.parametrize("name", ["rows shared by two", "released late", "tiles by turns"])
def test_the_bits_are_those_of_the_synchronous_kernel(name: str) -> None:
    """Each element is summed in the same order, so that rounding is the same, too."""
    program = PROGRAMS[name]
    m, n, k = 256, program.columns, 320
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal(shape).astype(BF16) for shape in ((m, k), (k, n)))
    out = np.full((m, n), np.nan, BF16)
    simulated(emitted(placed(program.module())), [a, b, out, m, n, k], 1)

    def values(_: np.random.Generator) -> dict[str, object]:
        sizes = {"ROWS": 64, "COLUMNS": n, "DEPTH": 64}
        return {"a": a, "b": b, "c": np.zeros((m, n), BF16), "M": m, "N": n, "K": k, **sizes}

    case = Case("synchronous", synchronous, (m // 64,), values, lambda given: None)
    threads = lower_for_gpu(case)
    simulate(
        threads.text,
        str(threads.scheduled.metadata["symbol"]),
        (m // 64, 1, 1),
        threads.num_threads,
        threads.arguments,
        int(str(threads.scheduled.metadata["shared_bytes"])),
    )
    expected = threads.memory.arrays()["c"].reshape(m, n)
    np.testing.assert_array_equal(out.view(np.uint16), expected.view(np.uint16))
