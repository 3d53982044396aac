"""Attention by roles: the same bits in every order of products, softmax and turns."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from tests.roles.attention import Attention
from tests.roles.running import emitted, interpret, placed, simulated
from tilewright.interp.simt.products import Products

BF16 = ml_dtypes.bfloat16
SMALL = Attention(keys=32, depth=64)
PROGRAMS = {
    "straight": SMALL,
    "turns": replace(SMALL, turns=True),
    "ahead": replace(SMALL, order="ahead"),
    "ahead, three slots": replace(SMALL, order="ahead", slots=3),
    "three groups": replace(SMALL, replicas=3),
    "three groups by turns": replace(SMALL, replicas=3, turns=True),
}


def operands(heads: int, length: int, depth: int) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    return [rng.standard_normal((heads * length, depth)).astype(BF16) for _ in range(3)]


def expected(q: np.ndarray, k: np.ndarray, v: np.ndarray, heads: int) -> np.ndarray:
    parts = (x.astype(np.float64).reshape(heads, -1, x.shape[1]) for x in (q, k, v))
    query, key, value = parts
    scores = query @ key.transpose(0, 2, 1) / np.sqrt(q.shape[1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return ((weights / weights.sum(-1, keepdims=True)) @ value).reshape(q.shape)


def threads(program: Attention, heads: int, length: int, seed: int | None = None) -> np.ndarray:
    """What the simulator of threads finds."""
    q, k, v = operands(heads, length, program.depth)
    out = np.full(q.shape, np.nan, BF16)
    arguments = [q, k, v, out, length, len(q), program.depth]
    simulated(emitted(placed(program.module())), arguments, len(q) // program.rows, seed)
    return out


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_find_the_attention(name: str) -> None:
    program, heads = PROGRAMS[name], 2
    length = program.rows * (1 if program.replicas == 3 else 2)
    q, k, v = operands(heads, length, program.depth)
    out = np.full(q.shape, np.nan, BF16)
    arguments = [q, k, v, out, length, len(q), program.depth]
    interpret(placed(program.module()), arguments, len(q) // program.rows)
    right = expected(q, k, v, heads)
    for found in (out, threads(program, heads, length)):
        error = np.linalg.norm(found.astype(np.float64) - right) / np.linalg.norm(right)
        assert error < 3e-3


@pytest.mark.parametrize("name", ["turns", "ahead", "ahead, three slots"])
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_the_bits_do_not_depend_on_the_order(name: str, seed: int | None) -> None:
    straight = threads(SMALL, 1, 128)
    other = threads(PROGRAMS[name], 1, 128, seed)
    np.testing.assert_array_equal(straight.view(np.uint16), other.view(np.uint16))


@pytest.mark.parametrize("keys", [128, 64, 32])
@pytest.mark.parametrize("order", ["straight", "ahead"])
def test_trip_counts_around_the_number_of_slots(keys: int, order: str) -> None:
    """One, two and four steps through rings of two slots; ahead runs its loop one step less."""
    program = replace(SMALL, keys=keys, order=order, turns=order == "straight")
    out, (q, k, v) = threads(program, 1, 128, seed=keys), operands(1, 128, 64)
    right = expected(q, k, v, 1)
    error = np.linalg.norm(out.astype(np.float64) - right) / np.linalg.norm(right)
    assert error < 3e-3


def test_products_whose_outputs_are_only_written_have_floats(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Scores start from nothing: the simulator must not take their registers for integers."""
    seen: list[np.dtype] = []
    start = Products.start

    def watched(self: Products, *given):  # type: ignore[no-untyped-def]
        made = start(self, *given)
        seen.extend(register.array.dtype for register in made)
        return made

    monkeypatch.setattr(Products, "start", watched)
    threads(SMALL, 1, 128)
    assert set(seen) == {np.dtype(np.float32)}
