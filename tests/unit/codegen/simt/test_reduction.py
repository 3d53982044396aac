"""Reductions on a simulated GPU agree with the reference interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.codegen.simt.launching import check, ptx_text, random_array, simulated
from tilewright.layout.axis import spread_along
from tilewright.layout.build import coalesced

WARPS = (1, 4, 8)


@tilewright.jit
def sums(x, y, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    program = tl.program_id(0)
    rows = tl.arange(0, M)[:, None]
    columns = tl.arange(0, N)[None, :]
    length: tl.constexpr = N if AXIS == 0 else M
    total = tl.sum(tl.load(x + program * M * N + rows * N + columns), AXIS)
    tl.store(y + program * length + tl.arange(0, length), total)


@pytest.mark.parametrize("num_warps", WARPS)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(32, 64), (1, 512), (256, 2), (16, 16)])
def test_sum_of_integers_along_an_axis(shape: tuple[int, int], axis: int, num_warps: int) -> None:
    m, n = shape
    x = random_array((3 * m, n), "int32")
    y = np.zeros(3 * (n if axis == 0 else m), np.int32)
    check(sums, (3,), x, y, M=m, N=n, AXIS=axis, num_warps=num_warps)


@pytest.mark.parametrize(
    ("dtype", "rtol"), [("int64", 0), ("int16", 0), ("float32", 1e-5), ("float64", 1e-12)]
)
def test_sum_of_every_width(dtype: str, rtol: float) -> None:
    x = random_array((32, 128), dtype)
    out = {"int16": "int32"}.get(dtype, dtype)
    y = np.zeros(128, out)
    check(sums, (1,), x, y, rtol=rtol, atol=rtol * 100, M=32, N=128, AXIS=0, num_warps=4)


def test_sum_of_halves_rounds_as_the_interpreter_does_up_to_the_order() -> None:
    x = random_array((16, 64), "float16", span=1)
    y = np.zeros(16, np.float16)
    check(sums, (1,), x, y, rtol=2e-2, atol=2e-2, M=16, N=64, AXIS=1, num_warps=4)


@tilewright.jit
def extrema(x, y, N: tl.constexpr):
    row = tl.load(x + tl.program_id(0) * N + tl.arange(0, N))
    tl.store(y + tl.program_id(0) * 4, tl.max(row, 0))
    tl.store(y + tl.program_id(0) * 4 + 1, tl.min(row, 0))
    tl.store(y + tl.program_id(0) * 4 + 2, tl.argmax(row, 0))
    tl.store(y + tl.program_id(0) * 4 + 3, tl.argmin(row, 0))


@pytest.mark.parametrize("num_warps", WARPS)
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint32", "int16", "float16", "int64"])
def test_extrema_and_their_places(dtype: str, num_warps: int) -> None:
    x = random_array((2, 1024), dtype, span=50)
    y = np.zeros((2, 4), dtype)
    check(extrema, (2,), x, y, N=1024, num_warps=num_warps)


@tilewright.jit
def bits(x, y, N: tl.constexpr):
    row = tl.load(x + tl.arange(0, N))
    tl.store(y, tl.xor_sum(row, 0))
    tl.store(y + 1, tl.reduce(row, 0, _both))
    tl.store(y + 2, tl.reduce_or(row, 0))
    tl.store(y + 3, tl.reduce(row > 0, 0, _both).to(tl.int32))


@tilewright.jit
def _both(a, b):
    return a & b


@pytest.mark.parametrize("num_warps", WARPS)
def test_bitwise_folds(num_warps: int) -> None:
    x = random_array((256,), "int32") | 4
    check(bits, (1,), x, np.zeros(4, np.int32), N=256, num_warps=num_warps)


@tilewright.jit
def welford(x, mean, spread, N: tl.constexpr):
    row = tl.load(x + tl.arange(0, N))
    ones = tl.full((N,), 1.0, tl.float32)
    m, s, _ = tl.reduce((row, tl.zeros_like(row), ones), 0, _merge)
    tl.store(mean, m)
    tl.store(spread, s / N)


@tilewright.jit
def _merge(mean_a, sum_a, count_a, mean_b, sum_b, count_b):
    delta = mean_b - mean_a
    count = count_a + count_b
    share = count_b / count
    return (
        mean_a + delta * share,
        sum_a + sum_b + delta * delta * count_a * share,
        count,
    )


@pytest.mark.parametrize("num_warps", WARPS)
def test_several_operands_fold_together(num_warps: int) -> None:
    x = random_array((512,), "float32")
    zeros = (np.zeros(1, np.float32), np.zeros(1, np.float32))
    check(welford, (1,), x, *zeros, rtol=1e-4, atol=1e-4, N=512, num_warps=num_warps)


@tilewright.jit
def affine_maps(x, y, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    places = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    shift = tl.load(x + places)
    scale, shift = tl.reduce((shift % 3 + 1, shift), AXIS, _then)
    length: tl.constexpr = N if AXIS == 0 else M
    tl.store(y + tl.arange(0, length), scale ^ shift)


@tilewright.jit
def _then(scale_a, shift_a, scale_b, shift_b):
    return scale_a * scale_b, shift_a * scale_b + shift_b


@pytest.mark.parametrize("num_warps", WARPS)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(2, 1024), (32, 64), (1024, 2), (1, 4096)])
def test_order_is_kept_for_a_function_that_does_not_commute(
    shape: tuple[int, int], axis: int, num_warps: int
) -> None:
    m, n = shape
    y = np.zeros(n if axis == 0 else m, np.int32)
    x = random_array(shape, "int32")
    check(affine_maps, (1,), x, y, M=m, N=n, AXIS=axis, num_warps=num_warps)


@tilewright.jit
def folded_and_turned(x, y, AXIS: tl.constexpr):
    """Reshaped and permuted tiles: lanes and warps alternate along the axis."""
    shift = tl.load(x + tl.arange(0, 2048))
    tile = tl.permute(tl.reshape(shift, (8, 16, 16)), (1, 0, 2))
    tile = tl.reshape(tile, (16, 128))
    scale, shift = tl.reduce((tile % 3 + 1, tile), AXIS, _then)
    length: tl.constexpr = 128 if AXIS == 0 else 16
    tl.store(y + tl.arange(0, length), scale ^ shift)
    whole, shift = tl.reduce((tile % 3 + 1, tile), None, _then)
    tl.store(y + length, whole ^ shift)


@pytest.mark.parametrize("num_warps", WARPS)
@pytest.mark.parametrize("axis", [0, 1])
def test_order_is_kept_in_layouts_of_moved_tiles(axis: int, num_warps: int) -> None:
    y = np.zeros(129 if axis == 0 else 17, np.int32)
    check(
        folded_and_turned, (1,), random_array((2048,), "int32"), y, AXIS=axis, num_warps=num_warps
    )


@tilewright.jit
def three_dims(x, y, AXIS: tl.constexpr):
    a = tl.arange(0, 8)[:, None, None]
    b = tl.arange(0, 4)[None, :, None]
    c = tl.arange(0, 16)[None, None, :]
    total = tl.sum(tl.load(x + a * 64 + b * 16 + c), AXIS, keep_dims=True)
    a = a * 0 if AXIS == 0 else a
    b = b * 0 if AXIS == 1 else b
    c = c * 0 if AXIS == 2 else c
    tl.store(y + a * 64 + b * 16 + c, total + tl.zeros((8, 4, 16), tl.int32))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_any_axis_of_three(axis: int) -> None:
    x = random_array((8, 4, 16), "int32")
    y = np.zeros((8, 4, 16), np.int32)
    found, _ = simulated(three_dims, (1,), (x, y), AXIS=axis, num_warps=4)
    index = [slice(None)] * 3
    index[axis] = slice(0, 1)
    ours = found[1]
    assert isinstance(ours, np.ndarray)
    np.testing.assert_array_equal(ours[tuple(index)], x.sum(axis, keepdims=True))


@tilewright.jit
def repeated(x, y, count, N: tl.constexpr):
    total = 0
    for step in range(count):
        row = tl.load(x + step * N + tl.arange(0, N))
        total += tl.sum(row - total, 0)
    tl.store(y, total)


def test_scratch_is_not_overwritten_before_it_is_read_in_a_loop() -> None:
    x = random_array((5, 256), "int32")
    check(repeated, (1,), x, np.zeros(1, np.int32), 5, N=256, num_warps=8)


def test_integers_of_a_warp_fold_in_one_instruction() -> None:
    x, y = np.zeros(1024, np.int32), np.zeros(4, np.int32)
    text = ptx_text(extrema, (x, y), N=1024, num_warps=1)
    assert "redux.sync.max.s32" in text
    assert "redux.sync.min.s32" in text


def test_one_barrier_does_for_warps() -> None:
    x, y = np.zeros((1, 4096), np.float32), np.zeros(1, np.float32)
    _, report = simulated(sums, (1,), (x, y), M=1, N=4096, AXIS=1, num_warps=8)
    assert report.barriers <= 2


def _halves(values: list[np.float32]) -> np.float32:
    """The first half and the second half, each folded in the same way."""
    if len(values) == 1:
        return values[0]
    middle = (len(values) + 1) // 2
    return _halves(values[:middle]) + _halves(values[middle:])


def _documented_sum(row: np.ndarray, num_warps: int) -> np.float32:
    """The sum of a row by the tree that the rule documents."""
    layout = coalesced((1, row.size), (1, 0), 4, num_warps)
    spread = spread_along(layout, 1)
    results: list[np.float32] = []
    for warp in range(num_warps):
        lanes = []
        for lane in range(32):
            base = layout.apply(lane=lane, warp=warp)[1]
            group = [row[base + spread.positions[register]] for register in spread.groups[0]]
            lanes.append(_halves(group))
        for bit in spread.lanes:
            lanes = [lanes[lane] + lanes[lane ^ 1 << bit.index] for lane in range(32)]
        results.append(lanes[0])
    return _halves(results)


@pytest.mark.parametrize("num_warps", WARPS)
def test_the_tree_of_a_sum_is_the_documented_one(num_warps: int) -> None:
    x = random_array((1, 2048), "float32")
    arguments = (x, np.zeros(1, np.float32))
    found, _ = simulated(sums, (1,), arguments, M=1, N=2048, AXIS=1, num_warps=num_warps)
    ours = found[1]
    assert isinstance(ours, np.ndarray)
    assert ours[0] == _documented_sum(x[0], num_warps)
