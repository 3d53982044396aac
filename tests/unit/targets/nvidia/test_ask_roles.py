"""Attention runs as roles where nobody says anything and it is faster so, with the same bits."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.targets.nvidia.test_bulk_access import scheduled

LENGTH = 256
SIZES = {"M": 128, "N": 64, "D": 128, "WS": False, "GATHERED": False}
ROLES = "the kernel runs as roles"


@tilewright.jit
def attention(
    q, k, v, out, table, length, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
    WS: tl.constexpr, GATHERED: tl.constexpr,
):  # fmt: skip
    """Attention by pointers, stored by a descriptor; keys in the order of a table, if GATHERED."""
    first = tl.program_id(0) * M
    rows, keys, dims = first + tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    x = tl.load(q + rows[:, None] * D + dims[None, :])
    target = tl.make_tensor_descriptor(out, [length, D], [D, 1], [M, D])
    acc = tl.zeros((M, D), tl.float32)
    total = tl.zeros((M,), tl.float32)
    highest = tl.full((M,), -1.0e30, tl.float32)
    for start in tl.range(0, length, N, warp_specialize=WS):
        at = start + keys
        if GATHERED:
            at = tl.load(table + at)
        scores = tl.dot(x, tl.load(k + at[None, :] * D + dims[:, None])) * 0.125
        new_highest = tl.maximum(highest, tl.max(scores, axis=1))
        weights = tl.exp2(scores - new_highest[:, None])
        rescale = tl.exp2(highest - new_highest)
        total = total * rescale + tl.sum(weights, axis=1)
        values = tl.load(v + at[:, None] * D + dims[None, :])
        acc = tl.dot(weights.to(tl.float16), values, acc * rescale[:, None])
        highest = new_highest
    target.store([first, 0], (acc / total[:, None]).to(tl.float16))


def arrays(dim: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(dim)
    q, k, v = (rng.standard_normal((LENGTH, dim)).astype(np.float16) for _ in range(3))
    return q, k, v, np.full_like(q, np.nan), rng.permutation(LENGTH).astype(np.int32)


def remarks(sizes: dict[str, object], **options: object) -> str:
    chosen = {**SIZES, **sizes}
    found, _ = scheduled(attention, (*arrays(int(str(chosen["D"]))), LENGTH), **chosen, **options)
    return "\n".join(found.remarks)


@pytest.mark.parametrize("num_warps", [4, 8])
@pytest.mark.parametrize("stages", [{}, {"num_stages": 2}])
def test_it_runs_as_two_groups_where_nobody_says_anything(
    num_warps: int, stages: dict[str, int]
) -> None:
    text = remarks({}, num_warps=num_warps, **stages)
    assert "roles, as attention is faster so; num_consumer_groups=0 has one program" in text
    assert f"{ROLES}: load (4 warps, 40 registers) | math x2" in text


@pytest.mark.parametrize(
    "options",
    [{"num_consumer_groups": 0}, {"num_stages": 1}, {"plan": "load#1 copy registers"}],
    ids=str,
)
def test_who_says_something_is_heard(options: dict[str, object]) -> None:
    assert ROLES not in remarks({}, num_warps=8, **options)


def test_small_heads_run_as_roles_of_which_two_programs_fit() -> None:
    text = remarks({"D": 64}, num_warps=8)
    assert f"{ROLES}: load (4 warps, 24 registers) | math x2 (4 warps, 104 registers)" in text
    assert "4 slots of 16384 bytes fit beside 32768 bytes" in text
    said = remarks({"D": 64}, num_warps=8, num_consumer_groups=2)
    assert "math x2 (4 warps, 232 registers)" in said


@pytest.mark.parametrize("sizes", [{"D": 64, "N": 128}, {"M": 64}], ids=str)
def test_what_is_slower_in_roles_has_none(sizes: dict[str, object]) -> None:
    assert "roles" not in remarks(sizes)
    hinted = remarks({**sizes, "WS": True})
    assert "no roles, as warp_specialize asks for: " in hinted and ROLES not in hinted
    assert ROLES in remarks(sizes, num_consumer_groups=1)


def test_what_cannot_be_formed_has_none_and_says_why() -> None:
    text = remarks({"GATHERED": True}, num_warps=8)
    assert "no roles, which attention is faster in: " in text
    assert "the copy engine does not make the load at " in text and ROLES not in text
    assert "threads do not copy it: its elements are adjacent along rows: load it trans" in text


def test_roles_that_nobody_asks_for_keep_the_bits() -> None:
    found: list[np.ndarray] = []
    for options in ({}, {"num_consumer_groups": 0}):
        args = arrays(128)
        attention.simulate[(LENGTH // 128,)](*args, LENGTH, **SIZES, num_warps=8, **options)
        found.append(args[3])
    np.testing.assert_array_equal(found[0], found[1])


@tilewright.jit
def shared_heads(
    q, k, v, out, size, length, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
    GROUP: tl.constexpr,
):  # fmt: skip
    """Attention where `GROUP` heads of queries have one head of keys."""
    head = tl.program_id(1)
    row, shared_row = head * length, head // GROUP * length
    queries = tl.make_tensor_descriptor(q, [size, D], [D, 1], [M, D])
    keys = tl.make_tensor_descriptor(k, [size, D], [D, 1], [N, D])
    values = tl.make_tensor_descriptor(v, [size, D], [D, 1], [N, D])
    target = tl.make_tensor_descriptor(out, [size, D], [D, 1], [M, D])
    first = tl.program_id(0) * M
    x = queries.load([row + first, 0])
    acc = tl.zeros((M, D), tl.float32)
    total = tl.zeros((M,), tl.float32)
    highest = tl.full((M,), -1.0e30, tl.float32)
    for start in range(0, first + M, N):
        scores = tl.dot(x, keys.load([shared_row + start, 0]).T) * 0.125
        is_seen = (first + tl.arange(0, M))[:, None] >= (start + tl.arange(0, N))[None, :]
        scores = tl.where(is_seen, scores, -1.0e30)
        new_highest = tl.maximum(highest, tl.max(scores, axis=1))
        weights = tl.exp2(scores - new_highest[:, None])
        rescale = tl.exp2(highest - new_highest)
        total = total * rescale + tl.sum(weights, axis=1)
        loaded = values.load([shared_row + start, 0])
        acc = tl.dot(weights.to(tl.float16), loaded, acc * rescale[:, None])
        highest = new_highest
    target.store([row + first, 0], (acc * (1 / total)[:, None]).to(tl.float16))


def test_heads_that_share_keys_run_as_roles() -> None:
    heads, group = 2, 2
    sizes = {"M": 128, "N": 64, "D": 128, "GROUP": group, "num_warps": 8}
    q, k, v, _, _ = arrays(128)
    out = np.full_like(q, np.nan)
    length = LENGTH // heads
    found, _ = scheduled(shared_heads, (q, k, v, out, LENGTH, length), **sizes)
    assert any(ROLES in text for text in found.remarks)
    shared_heads.simulate[(length // 128, heads)](q, k, v, out, LENGTH, length, **sizes)
    x, keys, values = (array.astype(np.float64).reshape(heads, length, 128) for array in (q, k, v))
    scores = np.einsum("hid,jd->hij", x, keys[0]) * 0.125
    scores = np.where(np.tril(np.ones((length, length), np.bool_)), scores, -np.inf)
    weights = np.exp2(scores - scores.max(-1, keepdims=True))
    expected = weights @ values[0] / weights.sum(-1, keepdims=True)
    np.testing.assert_allclose(out.reshape(expected.shape), expected, atol=4e-3)
