"""Pictures of layouts, and the command that draws them."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from tilewright.layout.build import coalesced, padded_shared, shared_swizzled, wgmma_accumulator
from tilewright.layout.show import contiguous_elems, describe, draw, draw_shared
from tilewright.support.errors import LayoutError
from tilewright.tools.layout import layout, layout_of


def lines(text: str) -> list[list[str]]:
    return [line.split("  ") for line in text.splitlines()]


def test_a_cell_is_a_run_of_registers_of_one_lane() -> None:
    picture = draw(coalesced((8, 32), (1, 0), 4, 2), max_rows=2, max_columns=8)
    assert picture.splitlines() == [
        "   0            4  … 32 columns",
        "0  w0 l00 r0:4  w0 l01 r0:4",
        "1  w0 l08 r0:4  w0 l09 r0:4",
        "… 8 rows",
    ]


def test_every_cell_names_the_place_of_its_element() -> None:
    tile = wgmma_accumulator((64, 16), (4, 1), 16)
    rows = lines(draw(tile, max_rows=64))
    for row, (_, *cells) in enumerate(rows[1:]):
        for column, cell in zip(range(0, 16, 2), cells, strict=True):
            warp, lane, registers = (word[1:] for word in cell.split())
            register, end = map(int, registers.split(":"))
            place = tile.apply(register=register, lane=int(lane), warp=int(warp))
            assert (place, end - register) == ((row, column), 2)


def test_the_description_counts_copies_and_vectors() -> None:
    text = describe(coalesced((16, 8), (1, 0), 8, 4))
    assert "vector:    8  registers in a row along dim 1" in text
    assert "copies:    8  of every element, by the bits lane 0b10000, warp 0b11" in text
    assert "repeated 3x1" in describe(coalesced((192, 64), (1, 0), 8, 4))


def test_vectors_stop_where_registers_do() -> None:
    tile = coalesced((128, 176), (1, 0), 8, 4)
    assert [contiguous_elems(tile, dim) for dim in (0, 1)] == [1, 8]


def test_the_banks_of_a_swizzled_column_differ() -> None:
    rows = lines(draw_shared(shared_swizzled((64, 64), 2, 128, (1, 0)), 2, max_rows=8))
    first_column = {cells[1].split()[1] for cells in rows[1:9]}
    assert len(first_column) == 8


def test_padding_shifts_the_banks_of_rows() -> None:
    rows = lines(draw_shared(padded_shared((4, 64), (1, 0), 64, 8), 2))
    assert [cells[1] for cells in rows[1:]] == ["r0 b00", "r1 b04", "r2 b08", "r3 b12"]


def test_tiles_of_rank_0_and_1_are_one_row() -> None:
    vector = coalesced((64,), (0,), 2, 1)
    assert len(draw(vector).splitlines()) == 2
    assert draw(vector.slice(0)).splitlines()[1].split() == ["0", "w0", "l00", "r0"]


def test_the_command_draws_and_converts() -> None:
    run = CliRunner().invoke
    drawn = run(layout, ["coalesced((8, 32), (1, 0), 4, 2)", "--rows", "2"])
    assert drawn.exit_code == 0
    assert "w0 l01 r0:4" in drawn.output
    moved = run(
        layout, ["coalesced((64, 64), (1, 0), 8, 4)", "--to", "coalesced((64, 64), (0, 1), 8, 4)"]
    )
    assert moved.exit_code == 0
    assert "through shared memory, 8192 bytes" in moved.output
    shared = run(layout, ["shared_swizzled((8, 64), 2, 128, order=(1, 0))"])
    assert "r1 b04" in shared.output


def test_the_command_takes_tile_ops_and_text() -> None:
    tile = layout_of("coalesced((8, 32), (1, 0), 4, 2).slice(1).expand(1)")
    assert tile.shape == (8, 1)
    assert layout_of(f"parse({tile.text()!r})") == tile


@pytest.mark.parametrize(
    "expression",
    (
        "blocked(3)",
        "open('x')",
        "coalesced",
        "coalesced((8,), (0,), 1, 3)",
        "1 +",
        "a.b(1)",
        "parse('x')",
    ),
)
def test_an_expression_that_makes_no_layout_is_refused(expression: str) -> None:
    with pytest.raises(LayoutError):
        layout_of(expression)
