"""The examples run and check themselves; here also at the sizes where kernels go wrong."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from examples import (
    decode_attention,
    fused_attention,
    fused_softmax,
    grouped_gemm,
    layer_norm,
    low_memory_dropout,
    matmul,
    vector_add,
)

FOLDER = Path(__file__).resolve().parents[2] / "examples"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")


@pytest.mark.parametrize("name", NAMES)
def test_example_runs_and_says_that_it_is_right(name: str, capsys) -> None:
    importlib.import_module(f"examples.{name}").main()
    assert capsys.readouterr().out.startswith(f"{name}: ")


@pytest.mark.parametrize("name", NAMES)
def test_every_stage_of_an_example_keeps_the_contract_of_its_level(name: str) -> None:
    checks = {"TILEWRIGHT_VERIFY_EACH": "1", "TILEWRIGHT_ALWAYS_COMPILE": "1"}
    paths = os.pathsep.join([str(FOLDER.parent), *(path for path in sys.path if path)])
    done = subprocess.run(
        [sys.executable, "-m", f"examples.{name}"],
        env={**os.environ, **checks, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith(f"{name}: ")


@pytest.mark.parametrize("size", [1, 255, 256, 257, 4096])
def test_vector_add_writes_every_element_and_none_beyond(size: int, rng) -> None:
    x, y = rng.standard_normal((2, size), dtype=np.float32)
    out = np.full(size + 64, 7.0, dtype=np.float32)
    grid = (-(-size // 256),)
    vector_add.add_kernel[grid](x, y, out, size, BLOCK=256)
    np.testing.assert_array_equal(out[:size], x + y)
    np.testing.assert_array_equal(out[size:], 7.0)


@pytest.mark.parametrize("width", [1, 2, 31, 64, 1000])
def test_softmax_of_huge_scores_is_finite_and_sums_to_one(width: int, rng) -> None:
    x = 1e4 * rng.standard_normal((5, width), dtype=np.float32)
    y = fused_softmax.softmax(x)
    np.testing.assert_allclose(y.astype(np.float64).sum(axis=1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(y, fused_softmax.reference(x), rtol=2e-6, atol=1e-8)


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 7, 65), (64, 64, 32), (65, 63, 33)])
def test_matmul_is_right_where_a_tile_is_larger_than_the_matrix(
    shape: tuple[int, int, int], rng
) -> None:
    m, n, k = shape
    a = rng.standard_normal((m, k), dtype=np.float32)
    b = rng.standard_normal((k, n), dtype=np.float32)
    expected = matmul.reference(a, b)
    np.testing.assert_allclose(matmul.matmul(a, b), expected, rtol=1e-5, atol=1e-4)


def test_dropout_scales_what_it_keeps(rng) -> None:
    x = rng.standard_normal(3000, dtype=np.float32)
    y = low_memory_dropout.dropout(x, 0.25, seed=2**40 + 3)
    np.testing.assert_allclose(y, low_memory_dropout.reference(x, 0.25, 2**40 + 3), rtol=1e-6)


@pytest.mark.parametrize("num_sums", [1, 3, 64])
def test_layer_norm_gradients_do_not_depend_on_the_number_of_locks(num_sums: int, rng) -> None:
    x, grad_y = rng.standard_normal((2, 50, 65), dtype=np.float32)
    weight, bias = rng.standard_normal((2, 65), dtype=np.float32)
    _, saved = layer_norm.forward(x, weight, bias)
    gradients = layer_norm.backward(grad_y, saved, num_sums)
    expected = layer_norm.reference(x, weight, bias, grad_y)[1:]
    for gradient, exact in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(gradient, exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length", [1, 63, 64, 130])
def test_attention_is_right_at_the_edges_of_tiles(length: int, causal: bool, rng) -> None:
    q, k, v, grad_out = rng.standard_normal((4, 1, length, 64), dtype=np.float32)
    out, saved = fused_attention.forward(q, k, v, causal)
    results = (out, *fused_attention.backward(grad_out, saved))
    expected = fused_attention.reference(q, k, v, grad_out, causal)
    for result, exact in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, exact, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_of_bfloat16_rounds_only_weights_and_result(causal: bool, rng) -> None:
    q, k, v = rng.standard_normal((3, 2, 130, 64), dtype=np.float32).astype(ml_dtypes.bfloat16)
    out, _ = fused_attention.forward(q, k, v, causal, (32, 64))
    expected = fused_attention.reference(q, k, v, v, causal)[0]
    # Half a unit in the last of 8 bits, once for each weight and once for the result.
    np.testing.assert_allclose(out.astype(np.float64), expected, rtol=2**-7, atol=2**-7)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16], ids=["f32", "bf16"])
@pytest.mark.parametrize(
    ("heads", "groups", "length", "max_splits"),
    [(1, 1, 1, 1), (4, 4, 64, 2), (6, 2, 65, 9), (8, 1, 300, 3), (8, 2, 300, 64)],
)
def test_decoding_reads_the_keys_of_its_length_and_no_others(
    heads: int, groups: int, length: int, max_splits: int, dtype: type, rng
) -> None:
    q = rng.standard_normal((heads, 64), dtype=np.float32).astype(dtype)
    k, v = rng.standard_normal((2, groups, length + 70, 64), dtype=np.float32).astype(dtype)
    k[:, length:], v[:, length:] = np.nan, np.nan
    out = decode_attention.decode(q, k, v, length, max_splits, block_n=32)
    exact = decode_attention.reference(q, k, v, length)
    limit = 1e-5 if dtype is np.float32 else 2**-7
    np.testing.assert_allclose(out.astype(np.float64), exact, rtol=limit, atol=limit)


@pytest.mark.parametrize("num_programs", [1, 2, 100])
def test_grouped_gemm_shares_its_tiles_among_any_number_of_programs(num_programs: int, rng) -> None:
    pairs = [
        (
            rng.standard_normal((m, 40), dtype=np.float32),
            rng.standard_normal((40, n), dtype=np.float32),
        )
        for m, n in ((10, 70), (129, 64))
    ]
    products = grouped_gemm.grouped_gemm(pairs, num_programs)
    for (a, b), product in zip(pairs, products, strict=True):
        expected = a.astype(np.float64) @ b.astype(np.float64)
        np.testing.assert_allclose(product, expected, rtol=1e-5, atol=1e-4)
