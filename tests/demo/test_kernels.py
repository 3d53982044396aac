"""The demo's kernels, compiled, against NumPy and the float64 reference."""

from __future__ import annotations

import math

import numpy as np
import pytest

from examples.demo import peaks
from examples.demo.kernel_operations import SMALL_MATMUL_BLOCKS, KernelOperations, matmul
from examples.demo.model import Floats, Model
from examples.demo.profile import Profile, ProfiledOperations, rows_of
from tests.demo.agreement import assert_agrees, embed


def exact_gelu(x: Floats) -> np.ndarray:
    return np.array([0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in x.ravel().tolist()])


def test_kernel_network_agrees_with_float64(model: Model, token_ids: list[list[int]]) -> None:
    assert_agrees(model, token_ids, KernelOperations())


def test_padding_does_not_change_an_embedding(model: Model, token_ids: list[list[int]]) -> None:
    together = embed(model, token_ids, KernelOperations())
    alone = [embed(model, [ids], KernelOperations())[0] for ids in token_ids]
    np.testing.assert_allclose(together, alone, atol=1e-6)


@pytest.mark.parametrize("shape", [(1, 1, 1), (17, 65, 33), (5, 3, 200)], ids=str)
@pytest.mark.parametrize("transposed", [False, True])
def test_matmul_covers_sizes_that_no_block_divides(
    shape: tuple[int, int, int], transposed: bool, rng: np.random.Generator
) -> None:
    m, n, k = shape
    a = rng.standard_normal((m, k), dtype=np.float32)
    b = rng.standard_normal((n, k) if transposed else (k, n), dtype=np.float32)
    b = b.T if transposed else b
    bias = rng.standard_normal(n, dtype=np.float32)
    actual = matmul(a, b, bias, False, SMALL_MATMUL_BLOCKS)
    expected = a.astype(np.float64) @ b + bias
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-4)


def test_gelu_epilogue_follows_the_exact_formula(rng: np.random.Generator) -> None:
    a = rng.standard_normal((9, 21), dtype=np.float32)
    b = rng.standard_normal((21, 40), dtype=np.float32)
    actual = matmul(a, b, None, True, SMALL_MATMUL_BLOCKS)
    np.testing.assert_allclose(actual.ravel(), exact_gelu(a @ b), rtol=1e-5, atol=1e-5)


def test_copy_writes_every_element_and_nothing_beyond() -> None:
    source = np.arange(peaks.COPY_BLOCK + 3, dtype=np.float32)
    target = np.full(source.size + 5, -1, dtype=np.float32)
    peaks.copy(source, target[: source.size])
    assert np.array_equal(target[: source.size], source)
    assert (target[source.size :] == -1).all()


def test_profile_has_a_row_for_each_operation(model: Model, token_ids: list[list[int]]) -> None:
    profile = Profile()
    embed(model, token_ids, ProfiledOperations(KernelOperations(), profile))
    rows = {row.name: row for row in rows_of([profile])}
    assert rows["attention"].calls == 2 * len(model.layers)
    assert rows["matmul + bias"].calls == 6 * len(model.layers)
    assert all(row.seconds > 0 and (row.flops or row.moved_bytes) for row in rows.values())
