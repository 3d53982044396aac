"""Parts of tiles: views of shared memory, and registers of the same threads."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tilewright.interp.shared_memory import element_offsets
from tilewright.layout.build import (
    blocked,
    shared_linear,
    shared_swizzled,
    wgmma_accumulator,
)
from tilewright.layout.parts import part_layout, part_registers, part_step
from tilewright.support.errors import UnsupportedLayout


@pytest.mark.parametrize("rows", [64, 128, 192, 256])
@pytest.mark.parametrize("columns", [64, 128, 256])
def test_parts_of_rows_lie_a_constant_apart_in_a_swizzled_tile(rows: int, columns: int) -> None:
    whole = shared_swizzled((rows, columns), 2, 128, (1, 0))
    step = part_step(whole, 0, (64, columns))
    offsets = element_offsets(whole)
    for part in range(rows // 64):
        view = offsets[part * 64 : (part + 1) * 64]
        np.testing.assert_array_equal(view, offsets[:64] + part * step)
    # A row of a panel is 64 elements, however wide the tile is.
    assert step == (64 * 64 if rows > 64 else 0)


def test_parts_of_columns_are_whole_panels() -> None:
    whole = shared_swizzled((64, 256), 2, 128, (1, 0))
    assert part_step(whole, 1, (64, 64)) == 64 * 64
    with pytest.raises(UnsupportedLayout, match=r"do not lie alike.* parts of 64x64 do"):
        part_step(whole, 1, (64, 32))


def test_fewer_rows_than_a_swizzle_has_are_no_part() -> None:
    whole = shared_swizzled((64, 64), 2, 128, (1, 0))
    assert part_step(whole, 0, (8, 64)) == 8 * 64
    with pytest.raises(UnsupportedLayout, match="do not lie alike") as caught:
        part_step(whole, 0, (4, 64))
    assert caught.value.summary == (
        "parts of 4x64 of a tile of 64x64 do not lie alike in shared memory, which has its "
        "elements in a pattern for the banks; parts of 8x64 do"
    )


def test_rows_of_a_plain_tile_are_parts() -> None:
    assert part_step(shared_linear((12, 20), (1, 0)), 0, (3, 20)) == 60


@pytest.mark.parametrize(("extent", "n"), [(256, 256), (256, 64), (192, 64), (128, 128)])
@pytest.mark.parametrize("rows", [64, 192])
def test_columns_of_an_accumulator_stay_in_their_threads(rows: int, extent: int, n: int) -> None:
    whole = wgmma_accumulator((rows, extent), (4, 1), n)
    part = wgmma_accumulator((rows, 64), (4, 1), 64)
    for number in range(extent // 64):
        first = (0, number * 64)
        registers = part_registers(whole, part, first)
        for index, (lane, warp) in product(range(part.num_registers), ((0, 0), (5, 1), (31, 3))):
            inside = part.apply(register=index, lane=lane, warp=warp)
            outside = whole.apply(register=registers[index], lane=lane, warp=warp)
            assert outside == (inside[0], inside[1] + number * 64)


def test_a_part_whose_elements_change_threads_is_refused() -> None:
    whole = blocked((64, 64), (1, 1), (1, 32), (4, 1), (1, 0))
    part = blocked((64, 32), (1, 1), (4, 8), (4, 1), (1, 0))
    with pytest.raises(UnsupportedLayout, match="spread over other threads"):
        part_registers(whole, part, (0, 32))


def test_a_part_across_lanes_is_refused() -> None:
    whole = blocked((4, 64), (1, 2), (1, 32), (4, 1), (1, 0))
    part = blocked((4, 32), (1, 2), (1, 32), (4, 1), (1, 0))
    with pytest.raises(UnsupportedLayout, match="spread over other threads"):
        part_registers(whole, part, (0, 32))


@pytest.mark.parametrize("extents", [(64, 64), (64, 32), (64, 8), (128, 16), (192, 256)])
def test_the_layout_of_a_part_keeps_its_threads(extents: tuple[int, int]) -> None:
    whole = wgmma_accumulator((384, 256), (4, 1), 256)
    part = part_layout(whole, extents)
    assert part.shape == extents
    for first in product(range(0, 384, extents[0]), range(0, 256, extents[1])):
        assert len(set(part_registers(whole, part, first))) == part.num_registers


def test_a_part_of_the_accumulator_is_one_of_fewer_columns() -> None:
    whole = wgmma_accumulator((64, 256), (4, 1), 256)
    assert part_layout(whole, (64, 64)) == wgmma_accumulator((64, 64), (4, 1), 64)


@pytest.mark.parametrize("extents", [(32, 64), (64, 4), (16, 256), (96, 64)])
def test_a_part_on_fewer_threads_has_no_layout(extents: tuple[int, int]) -> None:
    with pytest.raises(UnsupportedLayout):
        part_layout(wgmma_accumulator((64, 256), (4, 1), 256), extents)
