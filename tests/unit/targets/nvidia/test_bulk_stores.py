"""Plain stores by the copy engine, in chunks of roles: the same bits, nothing beside them."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.targets.nvidia.persistent_kernels import run_on, scheduled_for
from tilewright.runtime.launch_numbers import fits
from tilewright.targets.nvidia.simulated import launch_words

BLOCKS: Mapping[str, int] = {"BM": 64, "BN": 64, "BK": 64}
ROLES: Mapping[str, object] = {"num_consumer_groups": 1, "num_warps": 4}
UNTOUCHED = 9


@tilewright.jit
def stored(
    a, b, c, M, N, K, c_row, c_column, skipped,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, MASK: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """A product whose tile is stored behind a mask of rows, of columns, of both or of none."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    steps = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + (rows % M)[:, None] * K + k + steps[None, :])
        y = tl.load(b + (k + steps)[:, None] * N + (columns % N)[None, :])
        acc = tl.dot(x, y, acc)
    to = c + skipped + rows[:, None] * c_row + columns[None, :] * c_column
    found = acc.to(tl.float16)
    if KIND == "read":
        found += tl.load(to)
    if KIND == "parity":
        tl.store(to, found, mask=rows[:, None] % 2 == 0)
    elif MASK == 0:
        tl.store(to, found)
    elif MASK == 1:
        tl.store(to, found, mask=rows[:, None] < M)
    elif MASK == 2:
        tl.store(to, found, mask=columns[None, :] < N)
    else:
        tl.store(to, found, mask=(rows[:, None] < M) & (columns[None, :] < N))


def launch_of(
    m: int, n: int, mask: int, padding: int = 0, skipped: int = 0, kind: str = ""
) -> tuple[tuple[object, ...], np.ndarray, np.ndarray]:
    """The arguments of a launch, the array that it writes, and what belongs there."""
    rng, k = np.random.default_rng(m + n), 128
    a = rng.integers(-3, 4, (m, k)).astype(np.float16)
    b = rng.integers(-3, 4, (k, n)).astype(np.float16)
    row = n + padding
    c = np.full((-(-m // 64) * 64 + 1) * row + 64 + skipped, UNTOUCHED, np.float16)
    expected = c.copy()
    stored.interpret[grid_of(m, n)](
        a, b, expected, m, n, k, row, 1, skipped, *BLOCKS.values(), mask, kind
    )
    return (a, b, c, m, n, k, row, 1, skipped, *BLOCKS.values(), mask, kind), c, expected


def grid_of(m: int, n: int) -> tuple[int, int, int]:
    return -(-m // 64), -(-n // 64), 1


@pytest.mark.parametrize("mask", [1, 3])
@pytest.mark.parametrize(
    ("m", "n", "padding", "skipped"),
    [(64, 64, 0, 0), (130, 192, 8, 0), (17, 128, 64, 16), (100, 64, 64, 16), (65, 256, 0, 0)],
)
def test_what_the_mask_keeps_is_stored_and_nothing_else(
    m: int, n: int, padding: int, skipped: int, mask: int
) -> None:
    args, c, expected = launch_of(m, n, mask, padding, skipped)
    ran = run_on(2, stored, grid_of(m, n), args, **ROLES)
    maps = ran.metadata["tensor_maps"]
    assert isinstance(maps, list) and len(maps) == 3, ran.remarks
    assert ran.metadata["most_programs"] == 2
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("n", [72, 136, 200])
def test_columns_that_no_block_divides_end_where_the_mask_says(n: int) -> None:
    """Loads of `b` wrap inside of a tile, and the store drops what is behind the row."""
    args, c, expected = launch_of(130, n, 3, padding=24)
    run_on(3, stored, grid_of(130, n), args, **ROLES)
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("m", [64, 128])
@pytest.mark.parametrize("mask", [0, 2])
def test_rows_without_a_mask_go_on(m: int, mask: int) -> None:
    args, c, expected = launch_of(m, 128, mask)
    run_on(1, stored, grid_of(m, 128), args, **ROLES)
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("read", "tt.load at .* may touch what it writes"), ("parity", "its mask")],
)
def test_stores_stay_plain_that_are_no_boxes_of_their_own(kind: str, reason: str) -> None:
    args, c, expected = launch_of(128, 128, 3, kind=kind)
    found, _, _ = scheduled_for(stored, args, 2, ROLES)
    maps = found.metadata["tensor_maps"]
    assert isinstance(maps, list) and len(maps) == 2
    assert found.metadata["most_programs"] == 0
    (remark,) = [text for text in found.remarks if "store stays plain" in text]
    assert re.search(reason, remark)
    run_on(2, stored, grid_of(128, 128), args, **ROLES)
    np.testing.assert_array_equal(c, expected)


def test_a_tile_that_is_stored_by_columns_stays_plain() -> None:
    args, _, _ = launch_of(64, 64, 3)
    turned = (*args[:6], 1, 64, *args[8:])
    found, _, _ = scheduled_for(stored, turned, 2, ROLES)
    assert any("its dimensions are not those of the tensor" in text for text in found.remarks)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (6, 100),  # rows that overlap
        (6, 129),  # rows that do not start at 16 bytes
        (8, 1),  # a tensor that does not
        (8, -8),  # a tensor that starts in front of its array
    ],
)
def test_launches_that_the_engine_cannot_store_for_go_elsewhere(place: int, value: int) -> None:
    args, _, _ = launch_of(130, 128, 3)
    broken = (*args[:place], value, *args[place + 1 :])
    found, _, values = scheduled_for(stored, broken, 2, ROLES)
    maps = found.metadata["tensor_maps"]
    assert isinstance(maps, list)
    assert len(maps) == 2 or not fits(found.metadata, grid_of(130, 128), launch_words(values))
