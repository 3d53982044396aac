"""Loads that the operands of products are computed from run ahead as those of products do."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.targets.nvidia.pipelined_kernels import halves
from tests.unit.targets.nvidia.test_pipelined_loops import accounts, at_t2, check
from tilewright.ir.schedule_attributes import schedule_of
from tilewright.machine.gpus import SM_90A
from tilewright.ops.function import find_kernel
from tilewright.schedule.annotations import shared_bytes


@tilewright.jit
def unpacked(a, b, scales, c, K, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """c = a @ (b * scales), of bytes that are scaled row by row of b."""
    rows, columns, depth = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    total = tl.zeros((M, N), tl.float32)
    for k in range(0, K, D):
        at = k + depth
        x = tl.load(a + rows[:, None] * K + at[None, :], mask=at[None, :] < K, other=0.0)
        y = tl.load(b + at[:, None] * N + columns[None, :], mask=at[:, None] < K, other=0)
        scale = tl.load(scales + at, mask=at < K, other=0.0)
        total = tl.dot(x, (y * scale[:, None]).to(tl.float16), total)
    tl.store(c + rows[:, None] * N + columns[None, :], total)


@tilewright.jit
def states(k, v, h, gate, T, D: tl.constexpr, STEP: tl.constexpr):
    """The states of linear attention in front of each chunk: h decays and adds k.T @ v up."""
    places, depth, at = tl.arange(0, STEP), tl.arange(0, D), tl.arange(0, D)
    state = tl.zeros((D, D), tl.float32)
    for t in range(tl.cdiv(T, STEP)):
        row = t * STEP + places
        if t % 2 == 0:
            tl.store(h + (t // 2 * D + depth[:, None]) * D + at[None, :], state.to(tl.float16))
        x = tl.load(k + row[None, :] * D + depth[:, None], mask=row[None, :] < T, other=0.0)
        y = tl.load(v + row[:, None] * D + at[None, :], mask=row[:, None] < T, other=0.0)
        decay = tl.load(gate + t)
        y = (y * tl.exp2(decay * (STEP - places))[:, None]).to(tl.float16)
        state = tl.dot(x, y, state * tl.exp2(decay * STEP))


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("depth", [0, 32, 64, 72, 160, 51])
def test_bytes_that_are_scaled(depth: int, num_warps: int) -> None:
    a = halves(21, 64, max(depth, 1))
    b = np.random.default_rng(22).integers(-8, 8, (max(depth, 1), 64)).astype(np.int8)
    scales = np.random.default_rng(23).standard_normal(max(depth, 1)).astype(np.float32)
    out = np.zeros((64, 64), np.float32)
    (said,) = check(
        unpacked, (1,), (a, b, scales), out, (depth,), M=64, N=64, D=32, num_warps=num_warps
    )
    rows_bytes = 0 if depth == 51 else 4096  # rows of 102 bytes are no copies
    slots = f"5 slots of {rows_bytes + 2048 + 128} bytes"
    assert said.startswith(f"loads run 4 iterations ahead, to {slots}")
    unpacked.simulate[(1,)](a, b, scales, out, depth, M=64, N=64, D=32, num_warps=num_warps)
    halved = (b * scales[:, None]).astype(np.float16)
    expected = a.astype(float)[:, :depth] @ halved.astype(float)[:depth]
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("length", [33, 64, 100, 320])
def test_states_that_a_branch_stores(length: int, num_warps: int) -> None:
    k, v = halves(24, length, 64), halves(25, length, 64)
    gate = -np.random.default_rng(26).random(16).astype(np.float32) / 64
    chunks = -(-length // 32)
    out = np.zeros((-(-chunks // 2), 64, 64), np.float16)
    (said,) = check(states, (1,), (k, v), out, (gate, length), D=64, STEP=32, num_warps=num_warps)
    assert said == "loads run 4 iterations ahead, to 5 slots of 8192 bytes"


@pytest.mark.parametrize(
    ("stages", "slots"),
    [
        (1, ""),  # the author's word
        (2, "slots 2"),
        (None, "slots 2"),  # nobody's, in a loop that adds products up
    ],
)
def test_how_many_slots(stages: int | None, slots: str) -> None:
    a, b = halves(27, 64, 256), np.zeros((256, 64), np.int8)
    meta = {} if stages is None else {"num_stages": stages}
    args = (a, b, np.zeros(256, np.float32), np.zeros((64, 64), np.float32), 256)
    module = at_t2(unpacked, args, dict(M=64, N=64, D=64, bulk_access="never", **meta))
    schedule = schedule_of(find_kernel(module))
    assert (schedule is not None and schedule.loops != ()) is bool(slots)
    if schedule is not None and slots:
        assert f"tiles load#0 load#1 load#2 {slots}" in str(schedule)
        assert accounts(module)[0].startswith("loads run 1 iterations ahead")


@tilewright.jit
def repeated(a, b, c, K, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """c = a @ b, of weights of 4 bits, eight of which are one number of b."""
    rows, columns, depth = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    total = tl.zeros((M, N), tl.float32)
    for k in range(0, K, D):
        x = tl.load(a + rows[:, None] * K + (k + depth)[None, :])
        words = tl.load(b + (k // 8 + depth // 8)[:, None] * N + columns[None, :])
        y = (words >> ((k + depth) % 8 * 4)[:, None]) & 15
        total = tl.dot(x, y.to(tl.float16), total)
    tl.store(c + rows[:, None] * N + columns[None, :], total)


def test_words_that_are_named_eight_times_are_loaded_once() -> None:
    a, b = halves(29, 64, 256), np.zeros((32, 64), np.int32)
    args = (a, b, np.zeros((64, 64), np.float32), 256)
    meta = dict(M=64, N=64, D=64, bulk_access="never", num_stages=4)
    module = at_t2(repeated, args, meta)
    schedule = schedule_of(find_kernel(module))
    assert schedule is not None and "tiles load#0 load#1 slots 4" in str(schedule)
    slot_bytes = 64 * 64 * 2 + 64 // 8 * 64 * 4
    assert accounts(module)[0].endswith(f"to 4 slots of {slot_bytes} bytes")


@tilewright.jit
def wrapped(
    a, b, c, K, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """c = a @ b, of words whose rows are quotients of what wraps around: masked, or times 32."""
    rows, columns, depth = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    total = tl.zeros((M, N), tl.float32)
    for k in range(0, K, D):
        x = tl.load(a + rows[:, None] * K + k + depth[None, :])
        row = (tl.program_id(0) * 1073741824 + k + depth) // 8
        row = row & 7 if MASKED else row
        words = tl.load(b + row[:, None] * N + columns[None, :])
        y = (words >> (depth % 8 * 4)[:, None]) & 15
        total = tl.dot(x, y.to(tl.float16), total)
    place = tl.program_id(0) * M * N + rows[:, None] * N + columns[None, :]
    tl.store(c + place, total)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("stages", [1, 3])
def test_quotients_of_what_wraps_around_are_no_repeats(stages: int, masked: bool) -> None:
    rng = np.random.default_rng(33)
    a = rng.integers(-2, 3, (16, 64)).astype(np.float16)
    b = rng.integers(0, 1 << 31, (16, 32)).astype(np.int32)
    found, expected = (np.zeros((4, 16, 32), np.float32) for _ in range(2))
    tile = {"M": 16, "N": 32, "D": 32, "MASKED": masked}
    wrapped.interpret[(4,)](a, b, expected, 64, **tile)
    wrapped.simulate[(4,)](a, b, found, 64, **tile, num_stages=stages)
    np.testing.assert_array_equal(found, expected)


@tilewright.jit
def named_at_length(a, b, c, K, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """c = a @ b, of words whose places take more steps than Python's stack has frames."""
    rows, columns, depth = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    total = tl.zeros((M, N), tl.float32)
    for k in range(0, K, D):
        x = tl.load(a + rows[:, None] * K + k + depth[None, :])
        place = (k // 8 + depth // 8)[:, None] * N + columns[None, :]
        for step in tl.static_range(700):
            place = place + (depth // 8 * (step % 3))[:, None]
        y = tl.load(b + place).to(tl.float16)
        total = tl.dot(x, y * 0.5, total)
    tl.store(c + rows[:, None] * N + columns[None, :], total)


def test_places_of_many_steps_are_followed() -> None:
    a, b = halves(31, 16, 64), np.zeros((8192, 32), np.int32)
    args = (a, b, np.zeros((16, 32), np.float32), 64)
    meta = dict(M=16, N=32, D=32, bulk_access="never", num_stages=2)
    schedule = schedule_of(find_kernel(at_t2(named_at_length, args, meta)))
    assert schedule is not None and "tiles load#0 load#1 slots 2" in str(schedule)


@tilewright.jit
def halved(a, b, c, K, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    rows, columns, depth = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    total = tl.zeros((M, N), tl.float32)
    for k in range(0, K, D):
        x = tl.load(a + rows[:, None] * K + k + depth[None, :])
        y = tl.load(b + (k + depth)[:, None] * N + columns[None, :], volatile=True)
        total = tl.dot(x, (y * 0.5).to(tl.float16), total)
    tl.store(c + rows[:, None] * N + columns[None, :], total)


def test_a_volatile_load_stays_and_keeps_no_other_back() -> None:
    args = (halves(34, 64, 256), halves(35, 256, 64), np.zeros((64, 64), np.float32), 256)
    module = at_t2(halved, args, dict(M=64, N=64, D=64, bulk_access="never", num_stages=4))
    schedule = schedule_of(find_kernel(module))
    assert schedule is not None and "tiles load#0 slots 4" in str(schedule)
    assert accounts(module)[0].startswith("loads run 2 iterations ahead")


@tilewright.jit
def twice(a, b, c, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, TRIPS: tl.constexpr):
    rows, columns, depth = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    total = tl.zeros((M, N), tl.float32)
    for k in range(TRIPS):
        x = tl.load(a + rows[:, None] * (TRIPS * D) + k * D + depth[None, :])
        y = tl.load(b + (k * D + depth)[:, None] * N + columns[None, :])
        total = tl.dot(x, y, total)
    tl.store(c + rows[:, None] * N + columns[None, :], total)


@pytest.mark.parametrize(("trips", "slots"), [(1, 0), (2, 2), (3, 3), (9, 4)])
def test_no_more_slots_than_iterations(trips: int, slots: int) -> None:
    args = (halves(30, 64, 32 * trips), halves(31, 32 * trips, 64), np.zeros((64, 64), np.float32))
    meta = dict(M=64, N=64, D=32, TRIPS=trips, bulk_access="never", num_stages=4)
    schedule = schedule_of(find_kernel(at_t2(twice, args, meta)))
    assert (schedule is not None) is bool(slots)
    assert schedule is None or f"slots {slots}" in str(schedule)


@pytest.mark.parametrize("stages", [2, 4, 5, 9, 16])
@pytest.mark.parametrize(("depth", "step"), [(64, 64), (128, 128), (64, 256)])
def test_what_a_loop_moves_has_room_beside_its_slots(depth: int, step: int, stages: int) -> None:
    k, v, gate = halves(32, 512, depth), halves(33, 512, depth), np.zeros(8, np.float32)
    args = (k, v, np.zeros((4, depth, depth), np.float16), gate, 512)
    meta = dict(D=depth, STEP=step, num_warps=8, bulk_access="never", num_stages=stages)
    module = at_t2(states, args, meta)
    assert accounts(module)[0].startswith("loads run")
    assert 0 < shared_bytes(find_kernel(module)) <= SM_90A.max_shared_bytes


def test_what_does_not_fit_stays() -> None:
    """With four slots the scales fit beside the rows of a, the floats of b do not."""
    a, b = halves(28, 128, 256), np.zeros((256, 256), np.float32)
    args = (a, b, np.zeros(256, np.float32), np.zeros((128, 256), np.float32), 256)
    meta = dict(M=128, N=256, D=64, num_warps=8, bulk_access="never", num_stages=4)
    schedule = schedule_of(find_kernel(at_t2(unpacked, args, meta)))
    assert schedule is not None
    assert "tiles load#0 load#2 slots 4" in str(schedule)
