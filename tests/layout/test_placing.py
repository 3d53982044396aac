"""How threads reach shared tiles: matrices of 16-byte rows, and vectors without conflicts."""

from __future__ import annotations

import pytest

from tilewright.layout.access import Access
from tilewright.layout.build import (
    coalesced,
    mma_accumulator,
    mma_operand,
    shared_linear,
    shared_row,
    shared_swizzled,
)
from tilewright.layout.linear import LinearLayout
from tilewright.layout.placing import plan_access

LINE_BYTES, BANK_BYTES = 128, 4


def conflicts(access: Access, element_bytes: int) -> int:
    """The most wavefronts that one phase of a warp takes in any instruction: 1 is none too many."""
    width = len(access.passes[0][0]) * element_bytes
    phase = min(32, LINE_BYTES // max(BANK_BYTES, width))
    worst = 0
    for group in access.passes[0]:
        for first in range(0, 32, phase):
            by_bank: dict[int, set[int]] = {}
            for lane in range(first, first + phase):
                at = access.offsets.offset(group[0], lane, 0)
                for byte in range(at, at + max(BANK_BYTES, width), BANK_BYTES):
                    word = byte // BANK_BYTES
                    by_bank.setdefault(word % 32, set()).add(word)
            worst = max(worst, *map(len, by_bank.values()))
    return worst


@pytest.mark.parametrize("element_bytes", [1, 2, 4])
def test_operands_of_any_width_along_k_are_read_as_matrices(element_bytes: int) -> None:
    shape = (32, 128 // element_bytes)
    a = mma_operand(shape, 0, 8 * element_bytes, (2, 2))
    access = plan_access(a, shared_swizzled(shape, element_bytes, 128, (1, 0)), element_bytes)
    assert access.kind == "matrix"
    assert {len(group) * element_bytes for group in access.passes[0]} == {16}


@pytest.mark.parametrize("columns", [8, 16, 32, 64, 128])
def test_words_across_k_share_no_banks_where_chunks_are_rotated(columns: int) -> None:
    shape, line = (32, columns), min(LINE_BYTES, 4 * columns)
    b = mma_operand(shape, 1, 32, (1, 2) if columns > 8 else (1, 1))
    found = {
        rotation: conflicts(plan_access(b, shared_swizzled(shape, 4, line, (1, 0), rotation), 4), 4)
        for rotation in (0, 1)
    }
    assert found == {0: 1 if columns == 8 else 2, 1: 1}


def spread(elements: int) -> LinearLayout:
    """Each lane holds `elements` neighbours of a row, as columns of a tile are held."""
    lanes = tuple((elements << bit,) for bit in range(5))
    registers = tuple((1 << bit,) for bit in range(elements.bit_length() - 1))
    shape = (32 * elements,)
    return LinearLayout((("register", registers), ("lane", lanes), ("warp", ())), shape)


@pytest.mark.parametrize("element_bytes", [2, 4])
@pytest.mark.parametrize("elements", [4, 8, 16])
def test_vectors_at_a_distance_share_no_banks(elements: int, element_bytes: int) -> None:
    layout = spread(elements)
    found = [
        conflicts(plan_access(layout, shared, element_bytes), element_bytes)
        for shared in (
            shared_linear(layout.shape, (0,)),
            shared_row(layout.shape, element_bytes),
        )
    ]
    distance = elements * element_bytes // 16
    assert found == [max(1, distance), 1]


def test_a_row_is_written_in_vectors() -> None:
    layout = coalesced((128,), (0,), 4, 32, 1)
    access = plan_access(layout, shared_row((128,), 4), 4, matrices=False)
    assert {len(group) for group in access.passes[0]} == {4}


@pytest.mark.parametrize("columns", [48, 80, 176])
@pytest.mark.parametrize("whole_rows", [64, 128])
def test_sums_of_odd_columns_are_turned_as_matrices(columns: int, whole_rows: int) -> None:
    sums = mma_accumulator((64, columns), (4, 1))
    access = plan_access(sums, shared_swizzled((whole_rows, columns), 2, 128, (0, 1)), 2)
    assert access.kind == "transposed_matrix"
    assert len(access.passes[0]) == columns // 16 and len(access.passes[0][0]) == 8
    moved = sorted(register for group in access.passes[0] for register in group)
    assert moved == list(range(columns // 2))


def test_sums_of_odd_columns_are_written_by_panels_of_rows() -> None:
    sums = mma_accumulator((64, 80), (4, 1))
    access = plan_access(sums, shared_swizzled((64, 80), 2, 32, (1, 0)), 2)
    assert access.kind == "matrix" and len(access.passes[0]) == 5
