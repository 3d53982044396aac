"""The schedule for AVX-512: a script that stock MLIR runs, and that changes no result."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.corpus.case import Case, check
from tests.corpus.everything import CASES, FAMILIES
from tests.corpus.run import run_compiled
from tests.mlir.texts import text_of
from tilewright.targets.mlir.schedule import has_schedule, interpreting, with_schedule
from tilewright.targets.mlir.tools import TO_BUFFERS, find_tools

FLOATS = np.zeros(1 << 14, np.float32)
MATMULS = [case for case in FAMILIES["matmul"] if not case.is_slow]
ATTENTION = [case for case in CASES if case.name.startswith("attention-")]
OTHERS = [case for case in CASES if not case.is_slow and case not in MATMULS][::7]


@tilewright.jit
def product(a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, steps, columns = tl.arange(0, M), tl.arange(0, K), tl.arange(0, N)
    left = a + rows[:, None] * k + steps[None, :]
    right = b + steps[:, None] * N + columns[None, :]
    acc = tl.zeros((M, N), tl.float32)
    for _ in range(0, k, K):
        acc = tl.dot(tl.load(left), tl.load(right), acc)
        left += K
        right += K * N
    tl.store(c + rows[:, None] * N + columns[None, :], acc)


@tilewright.jit
def chain(x, out, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + at, tl.exp(tl.load(x + at) + 1) * 0.5)


@tilewright.jit
def flipped(x, out, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + at, tl.flip(tl.load(x + at)))


@tilewright.jit
def carries(x, out, B: tl.constexpr):
    at, acc = tl.arange(0, B), tl.zeros((B,), tl.float32)
    for i in range(4):
        acc = acc * 0.5 + tl.load(x + i * B + at)
    tl.store(out + at, acc)


@tilewright.jit
def total(x, out, B: tl.constexpr):
    tl.store(out, tl.sum(tl.load(x + tl.arange(0, B)), axis=0))


def product_text(m: int, n: int) -> str:
    return text_of(product, FLOATS, FLOATS, FLOATS, 64, M=m, N=n, K=16)


@pytest.mark.parametrize(
    ("m", "n", "sizes"), [(64, 64, "8, 32, 1"), (4, 64, "4, 32, 1"), (16, 16, "8, 16, 1")]
)
def test_a_product_is_tiled_to_two_registers_of_eight_rows(m: int, n: int, sizes: str) -> None:
    text = with_schedule(product_text(m, n))
    assert "linalg.matmul {schedule = 0 : i64} ins(" in text
    assert 'match ops{["linalg.matmul"]} attributes {schedule = 0 : i64}' in text
    assert f"tile_sizes [{sizes}]" in text


def test_a_chain_of_elementwise_ops_is_tiled_to_a_register() -> None:
    text = with_schedule(text_of(chain, FLOATS, FLOATS, B=256))
    assert "attrs = {schedule = 0 : i64}" in text and "tile_sizes [16]" in text


@pytest.mark.parametrize("kernel", [flipped, total], ids=["flip", "sum"])
def test_a_lookup_and_a_sum_stay_as_they_are(kernel: tilewright.JITFunction) -> None:
    text = with_schedule(text_of(kernel, FLOATS, FLOATS, B=256))
    assert "linalg.generic" in text and "schedule = " not in text
    assert "@__transform_main" in text


def test_a_loop_hands_on_what_it_made() -> None:
    """Not in the tensor that carried it, which MLIR does not take of an op that is tiled."""
    text = text_of(carries, FLOATS, FLOATS, B=64)
    placed = re.search(r"(%\d+) = bufferization\.materialize_in_destination (%\d+) in %\d+ :", text)
    assert placed is not None and f"scf.yield {placed[1]} :" in text
    scheduled = with_schedule(text)
    assert f"scf.yield {placed[2]} :" in scheduled and f"{placed[1]} = " not in scheduled


def test_a_module_has_one_script_or_none() -> None:
    text = product_text(64, 64)
    assert not has_schedule(text) and has_schedule(with_schedule(text))


# With stock MLIR.


@pytest.mark.mlir
def test_the_script_parses_and_turns_a_product_into_vectors() -> None:
    tools = find_tools()
    text = with_schedule(product_text(64, 64))
    assert has_schedule(tools.run_passes(text))
    tiled = tools.run_passes(text, interpreting(()))
    assert "linalg.matmul" not in tiled and "transform." not in tiled.partition("func.func")[2]
    loops = re.findall(r"scf\.for .*-> \(vector<8x32xf32>\)", tiled)
    assert len(loops) == 1, "the sum of 8 rows of 32 columns stays in registers"
    assert "vector.contract" in tiled


@pytest.mark.mlir
def test_tiles_of_a_product_are_no_copies() -> None:
    tools = find_tools()
    buffers = tools.to_buffers(with_schedule(product_text(64, 64)))
    plain = tools.run_passes(product_text(64, 64), TO_BUFFERS)
    assert buffers.count("memref.alloc(") == plain.count("memref.alloc(")
    loops = buffers[buffers.index("scf.for") :]
    assert "memref.alloc(" not in loops


@pytest.mark.mlir
@pytest.mark.parametrize("case", [*MATMULS, *ATTENTION, *OTHERS], ids=lambda case: case.name)
def test_a_kernel_of_the_corpus_gives_the_same(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_TARGET", "mlir")
    monkeypatch.setenv("TILEWRIGHT_MLIR_SCHEDULE", "cpu")
    check(case, run_compiled(case), case.expected(), "scheduled for AVX-512 against NumPy")
