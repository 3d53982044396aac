"""Rows that wrap: where nothing looks at them, and where something does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.passes.lowered import tiles
from tilewright.analysis.affine.access import Accesses
from tilewright.analysis.affine.demand import is_cut_off
from tilewright.jit import JITFunction
from tilewright.ops.memory.ir import LoadOp

M, N, K = 40, 72, 48
SIZES: dict[str, Any] = {"M": M, "N": N, "K": K, "B": 32, "STEP": 16}


@tilewright.jit
def operand(a, rows, steps, M, K, how: tl.constexpr):
    """A block of a row-major matrix that wraps, or has NaN where it would."""
    if how == "wrap":
        return tl.load(a + (rows % M)[:, None] * K + steps[None, :])
    inside = (rows < M)[:, None] & (steps < K)[None, :]
    return tl.load(a + rows[:, None] * K + steps[None, :], mask=inside, other=float("nan"))


@tilewright.jit
def product(a, b, c, M, N, K, B: tl.constexpr, STEP: tl.constexpr, how: tl.constexpr):
    """A product whose operands wrap in rows and columns, scaled and turned."""
    rows = tl.program_id(0) * B + tl.arange(0, B)
    columns = tl.program_id(1) * B + tl.arange(0, B)
    total = tl.zeros((B, B), tl.float32)
    for k in range(0, K, STEP):
        steps = k + tl.arange(0, STEP)
        x = operand(a, rows, steps, M, K, how) * 2
        y = operand(b, columns, steps, N, K, how).trans()
        if k != STEP:
            total = tl.dot(x, y, total, input_precision="ieee")
    turned = total.trans() + 1
    mask = (columns < N)[:, None] & (rows < M)[None, :]
    tl.store(c + rows[None, :] * N + columns[:, None], turned, mask=mask)


@tilewright.jit
def careless(a, b, c, M, N, K, B: tl.constexpr, STEP: tl.constexpr, how: tl.constexpr):
    """Uses that look at the rows that wrap."""
    rows, steps = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, STEP)
    x = operand(a, rows, steps, M, K, "wrap")
    at = rows[:, None] * STEP + steps[None, :]
    inside = (rows < M)[:, None]
    if how == "no mask":
        tl.store(c + at, x)
    elif how == "another bound":
        tl.store(c + at, x, mask=(rows < N)[:, None])
    elif how == "one more":
        tl.store(c + at, x, mask=(rows <= M)[:, None])
    elif how == "another start":
        tl.store(c + at, x, mask=(tl.arange(0, B) < M)[:, None])
    elif how == "summed":
        tl.store(c + steps, tl.sum(x, 0))
    elif how == "inner dimension":
        y = operand(b, rows, steps, N, K, "wrap")
        z = tl.dot(x.trans(), y, input_precision="ieee")
        i = tl.arange(0, STEP)
        tl.store(c + i[:, None] * STEP + i[None, :], z, mask=(i < M)[:, None])
    elif how == "one of two":
        tl.store(c + at, x, mask=inside)
        tl.store(c + at, x + 1)
    elif how == "as an address":
        tl.store(c + at + x.to(tl.int32), 0.0, mask=inside)
    elif how == "as a mask":
        tl.store(c + at, 0.0, mask=inside & (x > 0))
    elif how == "flipped":
        tl.store(c + at, tl.flip(x, 0), mask=inside)
    else:
        tl.store(c + at, x, mask=inside)


def wrapped_loads(kernel: JITFunction, how: str) -> list[bool]:
    """For every load that wraps, whether what wraps is cut off."""
    floats = np.zeros(1 << 12, np.float32)
    module = tiles(kernel, a=floats, b=floats, c=floats, how=how, **SIZES)
    accesses, found = Accesses(), list[bool]()
    for op in module.walk():
        access = accesses.of(op) if isinstance(op, LoadOp) else ""
        if isinstance(op, LoadOp) and not isinstance(access, str):
            for number, dim in enumerate(access.dims):
                if dim.modulus is not None:
                    length = dim.modulus.minus(dim.start)
                    found.append(is_cut_off(accesses, op.result, number, length))
    return found


def test_what_a_product_loads_beyond_its_rows_and_columns_is_cut_off() -> None:
    assert wrapped_loads(product, "wrap") == [True, True]


def test_a_product_is_the_same_whatever_is_loaded_there(rng: np.random.Generator) -> None:
    a, b = (rng.standard_normal((n, K), dtype=np.float32) for n in (M, N))
    results = []
    for how in ("wrap", "nan"):
        c = np.zeros((M, N), np.float32)
        product.interpret[(2, 3)](a, b, c, how=how, **SIZES)
        results.append(c)
    assert np.isfinite(results[0]).all() and (results[0] == results[1]).all()
    skipped = np.r_[0:16, 32:48]
    np.testing.assert_allclose(results[0], 2 * a[:, skipped] @ b[:, skipped].T + 1, atol=1e-4)


@pytest.mark.parametrize(
    "how",
    [
        "no mask",
        "another bound",
        "one more",
        "another start",
        "summed",
        "inner dimension",
        "one of two",
        "as an address",
        "as a mask",
        "flipped",
    ],
)
def test_what_is_looked_at_is_not_cut_off(how: str) -> None:
    found = wrapped_loads(careless, how)
    assert found and not any(found)


def test_a_masked_copy_cuts_off_what_wraps() -> None:
    assert wrapped_loads(careless, "copied") == [True]
