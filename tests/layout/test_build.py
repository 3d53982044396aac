"""Constructors: the maps that the hardware and memory ask for."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tilewright.layout.build import (
    blocked,
    coalesced,
    mma_accumulator,
    mma_operand,
    padded_shared,
    shared_linear,
    shared_swizzled,
    wgmma_accumulator,
    wgmma_operand_a,
)
from tilewright.layout.linear import LinearLayout
from tilewright.layout.simulate import elements_of
from tilewright.support.errors import LayoutError, UnsupportedLayout


def is_whole(layout: LinearLayout) -> bool:
    return set(elements_of(layout).ravel()) == set(range(int(np.prod(layout.shape))))


# --- registers --------------------------------------------------------------------------------


def test_blocked_fills_registers_then_lanes_then_warps() -> None:
    layout = blocked((32, 32), (1, 4), (4, 8), (4, 1), (1, 0))
    for register, lane, warp in itertools.product(range(4), range(32), range(4)):
        row, column = lane // 8 + 4 * warp, register + 4 * (lane % 8)
        assert layout.apply(register=register, lane=lane, warp=warp) == (row, column)
    assert layout.apply(register=4) == (16, 0)
    assert layout.num_registers == 8


@pytest.mark.parametrize("shape", ((192, 128), (128, 176), (128, 80), (6, 10), (1, 48), (7, 3)))
@pytest.mark.parametrize("order", ((1, 0), (0, 1)))
def test_tiles_of_any_shape_are_held_whole(shape: tuple[int, int], order: tuple[int, int]) -> None:
    assert is_whole(coalesced(shape, order, 8, 4))
    assert is_whole(blocked(shape, (2, 4), (4, 8), (2, 2), order))


def test_coalesced_reads_neighbouring_vectors_in_neighbouring_lanes() -> None:
    layout = coalesced((64, 128), (1, 0), 8, 4)
    for register, lane in itertools.product(range(8), range(32)):
        at = 8 * lane + register
        assert layout.apply(register=register, lane=lane) == (at // 128, at % 128)
    assert layout.apply(warp=1) == (2, 0)


def test_lanes_left_over_by_a_small_tile_hold_copies() -> None:
    layout = coalesced((16,), (0,), 4, 4)
    assert layout.num_registers == 4
    assert layout.free_bits("lane") == 0b11100
    assert layout.free_bits("warp") == 0b11


@pytest.mark.parametrize(("m", "n"), ((64, 8), (64, 256), (128, 176), (192, 80), (256, 96)))
def test_the_wgmma_accumulator_is_where_the_instruction_writes_it(m: int, n: int) -> None:
    layout = wgmma_accumulator((m, n), (4, 1), n)
    per_instruction = n // 2
    assert layout.num_registers == m // 64 * per_instruction
    registers = range(0, layout.num_registers, 3)
    for register, lane, warp in itertools.product(registers, (0, 13, 31), range(4)):
        block, d = divmod(register, per_instruction)
        row = 64 * block + 16 * warp + lane // 4 + 8 * (d // 2 % 2)
        column = 8 * (d // 4) + 2 * (lane % 4) + d % 2
        assert layout.apply(register=register, lane=lane, warp=warp) == (row, column)


def test_warp_groups_stand_along_m_or_n() -> None:
    below = wgmma_accumulator((256, 128), (8, 1), 128)
    assert below.apply(warp=4) == (64, 0)
    assert below.apply(register=64) == (128, 0)
    beside = wgmma_accumulator((128, 256), (4, 2), 128)
    assert beside.apply(warp=4) == (0, 128)
    assert is_whole(below) and is_whole(beside)
    with pytest.raises(UnsupportedLayout, match="96 columns"):
        wgmma_accumulator((128, 192), (4, 2), 96)
    with pytest.raises(LayoutError, match="does not make a tile"):
        wgmma_accumulator((128, 100), (4, 1), 100)


def test_operand_a_of_16_bits_is_where_the_accumulator_is() -> None:
    assert wgmma_operand_a((128, 176), 16, (4, 1)) == wgmma_accumulator((128, 176), (4, 1), 176)


def test_operand_a_of_8_bits_holds_four_neighbours_in_a_register() -> None:
    layout = wgmma_operand_a((64, 64), 8, (4, 1))
    for byte, lane in itertools.product(range(16), range(32)):
        word, low = divmod(byte, 4)
        row = lane // 4 + 8 * (word % 2)
        assert layout.apply(register=byte, lane=lane) == (
            row,
            4 * (lane % 4) + low + 16 * (word // 2),
        )


@pytest.mark.parametrize("bits", (8, 16, 32))
def test_operands_of_mma_are_where_the_instruction_reads_them(bits: int) -> None:
    packed = 32 // bits
    a = mma_operand((16, 8 * packed), 0, bits, (1, 1))
    b = mma_operand((8 * packed, 8), 1, bits, (1, 1))
    for word, low, lane in itertools.product(range(4), range(packed), range(32)):
        k = packed * (lane % 4) + low
        at = (lane // 4 + 8 * (word % 2), k + 4 * packed * (word // 2))
        assert a.apply(register=word * packed + low, lane=lane) == at
        if word < 2:
            at = (k + 4 * packed * word, lane // 4)
            assert b.apply(register=word * packed + low, lane=lane) == at


def test_warps_that_an_operand_of_mma_does_not_tell_apart_hold_copies() -> None:
    a, b = (mma_operand((64, 64), which, 16, (2, 2)) for which in (0, 1))
    assert a.free_bits("warp") == 0b10
    assert b.free_bits("warp") == 0b01
    accumulator = mma_accumulator((64, 64), (2, 2))
    assert [accumulator.apply(warp=w) for w in range(4)] == [(0, 0), (16, 0), (0, 8), (16, 8)]


def test_fragments_that_do_not_fit_are_refused() -> None:
    for wrong in (
        lambda: mma_operand((8, 16), 0, 16, (1, 1)),
        lambda: mma_operand((16, 16), 2, 16, (1, 1)),
        lambda: mma_operand((16, 16), 0, 64, (1, 1)),
        lambda: mma_accumulator((16, 4), (1, 1)),
        lambda: wgmma_operand_a((64, 64), 16, (2, 2)),
        lambda: blocked((4, 4), (3, 1), (4, 8), (1, 1), (1, 0)),
        lambda: coalesced((4, 4), (1, 1), 1, 1),
    ):
        with pytest.raises(LayoutError):
            wrong()


# --- shared memory ----------------------------------------------------------------------------


def offsets(layout: LinearLayout) -> dict[tuple[int, ...], int]:
    return {at: offset for offset, at in enumerate(layout.register_offsets())}


@pytest.mark.parametrize("shape", ((64, 128), (192, 176), (5, 3), (1, 7)))
def test_shared_linear_is_row_or_column_major(shape: tuple[int, int]) -> None:
    rows, columns = offsets(shared_linear(shape, (1, 0))), offsets(shared_linear(shape, (0, 1)))
    for i, j in itertools.product(range(shape[0]), range(shape[1])):
        assert rows[i, j] == i * shape[1] + j
        assert columns[i, j] == i + j * shape[0]


def swizzled_offset(row: int, column: int, rows: int, element_bytes: int, swizzle: int) -> int:
    """Byte offset in panels of `swizzle` bytes, chunks XORed with address bits from 7 on."""
    panel, inside = divmod(column * element_bytes, swizzle)
    at = panel * rows * swizzle + row * swizzle + inside
    return at ^ ((at >> 7) % (swizzle // 16)) << 4


@pytest.mark.parametrize("swizzle", (16, 32, 64, 128))
@pytest.mark.parametrize("element_bytes", (1, 2, 4))
@pytest.mark.parametrize("shape", ((64, 128), (8, 256), (176, 128), (192, 384)))
def test_shared_swizzled_is_what_tma_writes(
    shape: tuple[int, int], element_bytes: int, swizzle: int
) -> None:
    rows, columns = shape
    found = offsets(shared_swizzled(shape, element_bytes, swizzle, (1, 0)))
    transposed = offsets(shared_swizzled((columns, rows), element_bytes, swizzle, (0, 1)))
    for i, j in itertools.product(range(0, rows, 3), range(0, columns, 5)):
        expected = swizzled_offset(i, j, rows, element_bytes, swizzle)
        assert found[i, j] * element_bytes == expected
        assert transposed[j, i] == found[i, j]


def test_swizzle_0_is_linear() -> None:
    assert shared_swizzled((64, 64), 2, 0, (1, 0)) == shared_linear((64, 64), (1, 0))


def test_a_swizzle_that_does_not_fit_is_refused() -> None:
    with pytest.raises(LayoutError, match="no swizzle of 256"):
        shared_swizzled((64, 64), 2, 256, (1, 0))
    with pytest.raises(UnsupportedLayout, match="panels of 32 bytes fit"):
        shared_swizzled((64, 176), 2, 128, (1, 0))
    with pytest.raises(UnsupportedLayout, match="multiple of 8"):
        shared_swizzled((12, 128), 2, 128, (1, 0))


def test_padding_comes_after_every_interval() -> None:
    padded = padded_shared((32, 64), (1, 0), 64, 8)
    assert padded.shape == (32, 64)
    assert padded.address(0) == 0
    assert padded.address(64) == 72
    assert padded.num_elems == 31 * 72 + 64
    with pytest.raises(LayoutError):
        padded_shared((32, 64), (1, 0), 48, 8)
