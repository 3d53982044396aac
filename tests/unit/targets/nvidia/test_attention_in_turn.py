"""Causal attention by roles that take block after block, on the simulated GPU."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.ptxas.kernels import benchmark_kernels, request_of
from tilewright.compiler.stages import schedule_of
from tilewright.runtime.tensor_descriptor import TensorDescriptor

LENGTH, HEADS, DEPTH, BLOCK = 256, 4, 64, 128
OPTIONS = {"HEAD_DIM": DEPTH, "BLOCK_M": BLOCK, "BLOCK_N": 64, "num_consumer_groups": 2}


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Causal attention of each head in float64."""
    wide = [part.astype(np.float64).reshape(HEADS, LENGTH, DEPTH) for part in (q, k, v)]
    scores = wide[0] @ wide[1].swapaxes(1, 2) / np.sqrt(DEPTH)
    scores = np.where(np.tri(LENGTH, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(2, keepdims=True))
    return (weights / weights.sum(2, keepdims=True) @ wide[2]).reshape(-1, DEPTH)


@pytest.mark.parametrize(("programs", "group"), [(3, 2), (1, 4), (8, 1), (5, 4)])
def test_each_block_is_taken_once(programs: int, group: int, rng: np.random.Generator) -> None:
    shape = (HEADS * LENGTH, DEPTH)
    q, k, v = (rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for _ in range(3))
    out = np.full(shape, np.nan, ml_dtypes.bfloat16)
    tiles = [
        TensorDescriptor.from_tensor(part, [rows, DEPTH])
        for part, rows in ((q, BLOCK), (k, 64), (v, 64), (out, BLOCK))
    ]
    kernel = benchmark_kernels().attention_in_turn
    scale = float(np.log2(np.e) / np.sqrt(DEPTH))
    arguments = (*tiles, LENGTH, HEADS, scale)
    kernel.simulate[(programs,)](*arguments, **OPTIONS, GROUP=group)
    expected = attention(q, k, v)
    error = np.linalg.norm(out.astype(np.float64) - expected) / np.linalg.norm(expected)
    assert error < 4e-3


def test_it_runs_as_roles_that_store_by_the_copy_engine() -> None:
    x = np.zeros((HEADS * LENGTH, DEPTH), ml_dtypes.bfloat16)
    tiles = [TensorDescriptor.from_tensor(x, [rows, DEPTH]) for rows in (BLOCK, 64, 64, BLOCK)]
    kernel = benchmark_kernels().attention_in_turn
    request = request_of(kernel, (*tiles, LENGTH, HEADS, 0.1), {**OPTIONS, "GROUP": 2})
    scheduled = schedule_of(request)
    assert any("math x2" in remark for remark in scheduled.remarks)
    assert len(scheduled.metadata["tensor_maps"]) == 4
