"""How many tiles are under way where nobody says it, from what the choice depends on."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.ptxas.kernels import request_of
from tilewright.compiler.stages import stage_text

HALVES = np.zeros((4096, 128), np.float16)
FLOATS = np.zeros((4096, 256), np.float32)


@tilewright.jit
def product(a, b, c, K, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    rows, columns, depth = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    acc = tl.zeros((M, N), tl.float32)
    for k in range(0, K, D):
        x = tl.load(a + rows[:, None] * K + (k + depth)[None, :])
        y = tl.load(b + (k + depth)[:, None] * N + columns[None, :])
        acc = tl.dot(x, y, acc)
    tl.store(c + rows[:, None] * N + columns[None, :], acc)


@tilewright.jit
def attention(q, k, v, out, N, M: tl.constexpr, KEYS: tl.constexpr, D: tl.constexpr):
    rows, keys, depth = tl.arange(0, M), tl.arange(0, KEYS), tl.arange(0, D)
    x = tl.load(q + rows[:, None] * D + depth[None, :])
    acc = tl.zeros((M, D), tl.float32)
    for start in range(0, N, KEYS):
        at = (start + keys)[:, None] * D + depth[None, :]
        weights = tl.exp(tl.dot(x, tl.load(k + at).T))
        acc = tl.dot(weights.to(tl.float16), tl.load(v + at), acc)
    tl.store(out + rows[:, None] * D + depth[None, :], acc)


@tilewright.jit
def attention_by_engine(q, k, v, out, N, M: tl.constexpr, KEYS: tl.constexpr, D: tl.constexpr):
    x = tl.make_tensor_descriptor(q, [N, D], [D, 1], [M, D]).load([0, 0])
    keys = tl.make_tensor_descriptor(k, [N, D], [D, 1], [KEYS, D])
    values = tl.make_tensor_descriptor(v, [N, D], [D, 1], [KEYS, D])
    acc = tl.zeros((M, D), tl.float32)
    for start in range(0, N, KEYS):
        weights = tl.exp(tl.dot(x, keys.load([start, 0]).T))
        acc = tl.dot(weights.to(tl.float16), values.load([start, 0]), acc)
    tl.store(out + tl.arange(0, M)[:, None] * D + tl.arange(0, D)[None, :], acc)


@tilewright.jit
def total(x, out, N, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        acc += tl.load(x + start + tl.arange(0, BLOCK))
    tl.store(out + tl.arange(0, BLOCK), acc)


def decided(kernel, args, **meta: object) -> str:
    return stage_text(request_of(kernel, args, meta), "decide-schedule")


@pytest.mark.parametrize(
    ("blocks", "num_warps", "slots"),
    [((128, 256, 64), 8, 4), ((128, 128, 64), 4, 2), ((64, 64, 32), 4, 2), ((256, 128, 64), 8, 4)],
)
def test_large_steps_of_a_product_have_four_slots_and_small_ones_two(
    blocks: tuple[int, int, int], num_warps: int, slots: int
) -> None:
    sizes = dict(zip("MND", blocks, strict=True))
    args = (HALVES, HALVES, FLOATS, 4096)
    text = decided(product, args, **sizes, num_warps=num_warps, bulk_access="never")
    assert f"slots {slots} cp_async" in text


def test_a_count_that_is_said_is_taken() -> None:
    blocks = {"M": 64, "N": 128, "D": 64}
    said = decided(product, (HALVES, HALVES, FLOATS, 4096), **blocks, num_stages=3)
    assert "slots 3 tma" in said
    none = decided(product, (HALVES, HALVES, FLOATS, 4096), **blocks, num_stages=1)
    assert "tw.schedule" not in none


@pytest.mark.parametrize(
    ("keys", "num_warps", "is_pipelined"),
    [(128, 8, True), (64, 8, False), (64, 4, False)],
)
def test_attention_is_pipelined_where_no_more_than_one_program_fits_anyway(
    keys: int, num_warps: int, is_pipelined: bool
) -> None:
    args = (HALVES, HALVES, HALVES, FLOATS, 4096)
    options = {"num_warps": num_warps, "num_consumer_groups": 0}
    text = decided(attention, args, M=128, KEYS=keys, D=128, **options)
    assert ("slots 2 cp_async" in text) is is_pipelined


@pytest.mark.parametrize(
    ("blocks", "num_warps", "is_pipelined"),
    [((64, 64, 64), 4, True), ((128, 64, 64), 8, True), ((128, 128, 64), 8, False)],
)
def test_the_engine_fills_two_slots_where_all_programs_keep_room(
    blocks: tuple[int, int, int], num_warps: int, is_pipelined: bool
) -> None:
    sizes = dict(zip(("M", "KEYS", "D"), blocks, strict=True))
    args = (HALVES, HALVES, HALVES, FLOATS, 4096)
    options = {"num_warps": num_warps, "num_consumer_groups": 0}
    text = decided(attention_by_engine, args, **sizes, **options)
    assert ("slots 2 tma" in text) is is_pipelined


def test_a_loop_without_products_is_left_as_it_is() -> None:
    assert "tw.schedule" not in decided(total, (FLOATS, FLOATS, 4096), BLOCK=1024)


@pytest.mark.parametrize(
    ("blocks", "slots"), [((32, 32, 32), 3), ((16, 64, 64), 3), ((32, 128, 64), 2)]
)
def test_products_of_single_warps_are_copied_ahead_by_threads(
    blocks: tuple[int, int, int], slots: int
) -> None:
    sizes = dict(zip("MND", blocks, strict=True))
    args = (HALVES, HALVES, FLOATS, 4096)
    assert f"slots {slots} cp_async release wait" in decided(product, args, **sizes)
    for said in (2, 4):
        text = decided(product, args, **sizes, num_stages=said)
        assert f"slots {said} cp_async release wait" in text
        assert "tma" not in text


def test_matrix_loads_read_the_slots_of_single_warps() -> None:
    args, sizes = (HALVES, HALVES, FLOATS, 4096), {"M": 32, "N": 32, "D": 32}
    ahead = stage_text(request_of(product, args, sizes), "t1")
    staged = stage_text(request_of(product, args, sizes), "copy-async")
    in_order = stage_text(request_of(product, args, {**sizes, "num_stages": 1}), "copy-async")
    assert ahead.count("ttg.convert_layout") >= 2
    assert staged.count("ttg.async_copy_global_to_local") == 6
    assert staged.count("ttg.convert_layout") == ahead.count("ttg.convert_layout") - 2
    assert "ttg.async_copy_global_to_local" not in in_order


@tilewright.jit
def decoding(q, k, v, out, N, M: tl.constexpr, KEYS: tl.constexpr, D: tl.constexpr):
    rows, keys, depth = tl.arange(0, M), tl.arange(0, KEYS), tl.arange(0, D)
    x = tl.load(q + rows[:, None] * D + depth[None, :])
    acc = tl.zeros((M, D), tl.float32)
    for start in range(0, N, KEYS):
        turned = (start + keys)[None, :] * D + depth[:, None]
        weights = tl.exp(tl.dot(x, tl.load(k + turned)))
        at = (start + keys)[:, None] * D + depth[None, :]
        acc = tl.dot(weights.to(tl.float16), tl.load(v + at), acc)
    tl.store(out + rows[:, None] * D + depth[None, :], acc)


@pytest.mark.parametrize(("keys", "slots"), [(16, 3), (64, 2), (256, 0)])
def test_decoding_has_keys_on_their_way_as_long_as_two_programs_fit(keys: int, slots: int) -> None:
    args = (HALVES, HALVES, HALVES, FLOATS, 4096)
    text = decided(decoding, args, M=16, KEYS=keys, D=128)
    assert (f"slots {slots} cp_async release wait" in text) is bool(slots)
    assert ("tw.schedule" in text) is bool(slots)
