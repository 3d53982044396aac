"""Attention as people vary it: each runs as roles where nobody asks, and is what NumPy computes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.targets.nvidia.descriptor_launching import lowered
from tilewright.ir.op import Array

DEPTH, ROWS, COLUMNS, WINDOW, CAP = 128, 128, 64, 100, 30.0


@tilewright.jit
def varied(
    q, k, v, out, bias, n, scale, GROUP: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
    CAP: tl.constexpr, BIASED: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """softmax(q k^T) v of any length; `GROUP` heads share keys, 0 is no window and no cap."""
    first, head = tl.program_id(0) * BM, tl.program_id(1)
    rows, dims = first + tl.arange(0, BM), tl.arange(0, D)
    own = head.to(tl.int64) * n * D
    shared = (head // GROUP).to(tl.int64) * n * D
    is_row = rows[:, None] < n
    at = own + rows[:, None] * D + dims[None, :]
    x = tl.load(q + at, mask=is_row, other=0.0)
    acc = tl.zeros((BM, D), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    top = tl.full((BM,), -1.0e30, tl.float32)
    before = 0
    after = n
    if CAUSAL:
        after = tl.minimum(n, first + BM)
    if WINDOW:
        before = tl.maximum(0, (first - WINDOW) // BN * BN)
    for start in range(before, after, BN):
        keys = start + tl.arange(0, BN)
        is_key = keys < n
        y = tl.load(k + shared + keys[None, :] * D + dims[:, None], mask=is_key[None, :], other=0.0)
        z = tl.load(v + shared + keys[:, None] * D + dims[None, :], mask=is_key[:, None], other=0.0)
        s = tl.dot(x, y) * scale
        if CAP:
            s = CAP * (1 - 2 / (1 + tl.exp(2 * s / CAP)))
        if BIASED:
            is_both = is_row & is_key[None, :]
            s += tl.load(bias + rows[:, None] * n + keys[None, :], mask=is_both, other=0.0)
        s = s * 1.4426950408889634
        if CAUSAL:
            s = tl.where(rows[:, None] >= keys[None, :], s, -1.0e30)
        if WINDOW:
            s = tl.where(rows[:, None] - keys[None, :] <= WINDOW, s, -1.0e30)
        s = tl.where(is_key[None, :], s, -1.0e30)
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        alpha = tl.exp2(top - new)
        total = total * alpha + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.float16), z, acc * alpha[:, None])
        top = new
    tl.store(out + at, (acc / total[:, None]).to(tl.float16), mask=is_row)


@dataclass(frozen=True)
class Variant:
    """One launch over `heads` of `n` rows each."""

    n: int
    is_causal: bool = False
    group: int = 1
    window: int = 0
    cap: float = 0.0
    is_biased: bool = False
    heads: int = 1

    def arguments(self) -> list[Array]:
        """Queries, keys, values, a place for the result, and a bias for each pair of rows."""
        generator = np.random.default_rng(self.n)
        shape = (self.heads, self.n, DEPTH)
        q, k, v = (generator.standard_normal(shape).astype(np.float16) for _ in range(3))
        bias = generator.standard_normal((self.n, self.n)).astype(np.float32)
        return [q, k, v, np.zeros_like(q), bias]

    def constants(self) -> dict[str, object]:
        """What the kernel is compiled for."""
        kinds = {"WINDOW": self.window, "CAP": self.cap, "BIASED": self.is_biased}
        blocks = {"BM": ROWS, "BN": COLUMNS, "D": DEPTH}
        return {"GROUP": self.group, "CAUSAL": self.is_causal, **kinds, **blocks}

    def expected(self) -> Array:
        """The result in float64."""
        q, k, v, _, bias = (array.astype(np.float64) for array in self.arguments())
        of = np.arange(self.heads) // self.group
        s = np.einsum("hid,hjd->hij", q, k[of]) / DEPTH**0.5
        if self.cap:
            s = self.cap * np.tanh(s / self.cap)
        if self.is_biased:
            s = s + bias
        apart = np.arange(self.n)[:, None] - np.arange(self.n)[None, :]
        if self.is_causal:
            s = np.where(apart >= 0, s, -np.inf)
        if self.window:
            s = np.where(apart <= self.window, s, -np.inf)
        p = np.exp(s - s.max(-1, keepdims=True))
        return np.einsum("hij,hjd->hid", p / p.sum(-1, keepdims=True), v[of])


VARIANTS = [
    Variant(256, is_causal=True, group=2, heads=2),
    Variant(17),
    Variant(200, is_causal=True),
    Variant(256, is_causal=True, window=WINDOW),
    Variant(128, cap=CAP),
    Variant(200, is_causal=True, is_biased=True),
]


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_a_variant_of_attention_runs_as_roles_and_is_right(variant: Variant) -> None:
    arguments, n = variant.arguments(), variant.n
    constants = variant.constants()
    program = lowered(varied, [*arguments, n, DEPTH**-0.5], constants)
    assert any("runs as roles" in remark for remark in program.scheduled.remarks)
    varied.simulate[-(-n // ROWS), variant.heads](*arguments, n, DEPTH**-0.5, **constants)
    expected = variant.expected()
    error = np.linalg.norm(arguments[3] - expected) / np.linalg.norm(expected)
    # Weights and results are rounded to 11 bits.
    assert error < 5e-4
