"""Conversions: whichever plan is chosen, every element arrives, and banks do not conflict."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

from tests.layout.random_layouts import SHAPES, random_layout
from tilewright.layout.build import (
    blocked,
    coalesced,
    mma_operand,
    wgmma_accumulator,
    wgmma_operand_a,
)
from tilewright.layout.convert import (
    Conversion,
    RegisterPermutation,
    SharedRoundTrip,
    WarpShuffle,
    plan_conversion,
)
from tilewright.layout.linear import LinearLayout
from tilewright.layout.simulate import Simulation, elements_of, simulate
from tilewright.support.errors import LayoutError


def converted(
    source: LinearLayout, target: LinearLayout, element_bytes: int, max_bytes: int | None = None
) -> tuple[Conversion, Simulation]:
    """The plan and what it did; every register of every lane must hold what the target says."""
    plan = plan_conversion(source, target, element_bytes, max_bytes=max_bytes)
    done = simulate(plan, source, target, element_bytes)
    wrong = np.argwhere(done.elements != elements_of(target))
    assert len(wrong) == 0, (source, target, element_bytes, max_bytes, wrong[:4])
    return plan, done


def convert_at_random(seed: int, count: int) -> Counter[str]:
    random, kinds = Random(seed), Counter[str]()
    for _ in range(count):
        shape, lane_bits = random.choice(SHAPES), random.choice((5, 5, 5, 3))
        warp_bits = random.randrange(4)
        source, target = (random_layout(random, shape, lane_bits, warp_bits) for _ in range(2))
        max_bytes = random.choice((None, None, None, None, 64, 256, 1024))
        plan, done = converted(source, target, random.choice((1, 2, 4, 8)), max_bytes)
        kinds[type(plan).__name__] += 1
        if isinstance(plan, SharedRoundTrip):
            kinds.update((plan.store.kind, plan.load.kind))
            kinds["in passes"] += plan.num_passes > 1
            kinds["with conflicts"] += done.has_bank_conflicts
    return kinds


def test_random_conversions_move_every_element_exactly_once() -> None:
    kinds = convert_at_random(seed=0, count=2000)
    for kind in ("RegisterPermutation", "WarpShuffle", "SharedRoundTrip", "in passes"):
        assert kinds[kind] > 50, kinds
    assert kinds["matrix"] > 20 and kinds["transposed_matrix"] > 5, kinds
    # Layouts that no constructor makes may hold the element of one vector in several lanes.
    assert kinds["with conflicts"] < 0.05 * kinds["SharedRoundTrip"], kinds


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 26))
def test_50000_random_conversions_move_every_element_exactly_once(seed: int) -> None:
    kinds = convert_at_random(seed, count=2000)
    print(dict(kinds))
    assert kinds["with conflicts"] < 0.05 * kinds["SharedRoundTrip"], kinds


# --- banks ------------------------------------------------------------------------------------

TILES = ((64, 64), (128, 128), (192, 128), (128, 176), (128, 80), (32, 256))


@pytest.mark.parametrize("shape", TILES)
@pytest.mark.parametrize("element_bytes", (1, 2, 4, 8))
def test_transposing_a_coalesced_tile_has_no_bank_conflicts(
    shape: tuple[int, int], element_bytes: int
) -> None:
    vector = 16 // element_bytes
    rows, columns = coalesced(shape, (1, 0), vector, 4), coalesced(shape, (0, 1), vector, 4)
    for source, target in ((rows, columns), (columns, rows)):
        plan, done = converted(source, target, element_bytes)
        assert isinstance(plan, SharedRoundTrip)
        assert not done.has_bank_conflicts


@pytest.mark.parametrize("element_bytes", (1, 2, 4, 8))
def test_transposing_blocks_of_four_has_no_bank_conflicts(element_bytes: int) -> None:
    for shape in TILES:
        source = blocked(shape, (1, 4), (4, 8), (4, 1), (1, 0))
        target = blocked(shape, (4, 1), (8, 4), (1, 4), (0, 1))
        assert not converted(source, target, element_bytes)[1].has_bank_conflicts


@pytest.mark.parametrize("shape", ((64, 64), (128, 256), (192, 128), (128, 176), (128, 80)))
@pytest.mark.parametrize("element_bytes", (1, 2, 4))
def test_a_wgmma_accumulator_becomes_coalesced_in_vectors_of_16_bytes(
    shape: tuple[int, int], element_bytes: int
) -> None:
    source = wgmma_accumulator(shape, (4, 1), shape[1])
    target = coalesced(shape, (1, 0), 16 // element_bytes, 4)
    plan, done = converted(source, target, element_bytes)
    assert isinstance(plan, SharedRoundTrip)
    assert plan.store.vector_elems * element_bytes >= 16
    assert plan.load.vector_elems * element_bytes == 16
    assert not done.has_bank_conflicts


@pytest.mark.parametrize("order", ((1, 0), (0, 1)))
@pytest.mark.parametrize("which", (0, 1))
@pytest.mark.parametrize("element_bytes", (1, 2, 4))
def test_blocked_tiles_become_operands_of_mma_without_conflicts(
    which: int, order: tuple[int, int], element_bytes: int
) -> None:
    for shape in ((64, 64), (128, 64), (64, 96)):
        source = coalesced(shape, order, 16 // element_bytes, 4)
        target = mma_operand(shape, which, 8 * element_bytes, (2, 2))
        assert not converted(source, target, element_bytes)[1].has_bank_conflicts


@pytest.mark.parametrize(("which", "kind"), ((0, "matrix"), (1, "transposed_matrix")))
def test_operands_of_mma_are_loaded_by_ldmatrix(which: int, kind: str) -> None:
    source = coalesced((32, 32), (1, 0), 8, 4)
    plan, done = converted(source, mma_operand((32, 32), which, 16, (2, 2)), 2)
    assert isinstance(plan, SharedRoundTrip)
    assert (plan.load.kind, plan.load.vector_elems) == (kind, 8)
    assert not done.has_bank_conflicts


def test_matrices_can_be_ruled_out() -> None:
    source = coalesced((64, 64), (1, 0), 8, 4)
    target = coalesced((64, 64), (0, 1), 8, 4)
    plan = plan_conversion(source, target, 2, matrices=False)
    assert isinstance(plan, SharedRoundTrip)
    assert (plan.store.kind, plan.load.kind) == ("vector", "vector")
    done = simulate(plan, source, target, 2)
    assert (done.elements == elements_of(target)).all()
    assert not done.has_bank_conflicts


# --- which plan -------------------------------------------------------------------------------


def test_a_layout_converts_to_itself_by_renaming_nothing() -> None:
    layout = coalesced((192, 128), (1, 0), 8, 4)
    plan = plan_conversion(layout, layout, 2)
    assert plan == RegisterPermutation(tuple(range(layout.num_registers)))
    assert plan.cost() == 0


def test_a_result_of_16_bits_is_an_operand_of_the_next_wgmma_without_moving() -> None:
    accumulator = wgmma_accumulator((128, 80), (4, 1), 80)
    operand = wgmma_operand_a((128, 80), 16, (4, 1))
    assert isinstance(plan_conversion(accumulator, operand, 2), RegisterPermutation)


def test_a_result_of_8_bits_is_an_operand_of_the_next_wgmma_after_shuffles() -> None:
    accumulator = wgmma_accumulator((64, 64), (4, 1), 64)
    operand = wgmma_operand_a((64, 64), 8, (4, 1))
    plan, _ = converted(accumulator, operand, 1)
    assert isinstance(plan, WarpShuffle)
    assert plan.packed_log2 >= 1


def test_broadcast_copies_need_no_movement() -> None:
    whole = blocked((32, 32), (1, 4), (4, 8), (4, 1), (1, 0))
    row = whole.slice(0)
    small, _ = row.remove_register_copies()
    assert isinstance(plan_conversion(row, small, 4), RegisterPermutation)
    assert isinstance(plan_conversion(small, row, 4), RegisterPermutation)


def test_lanes_that_hold_all_elements_select_without_shuffling() -> None:
    everywhere = LinearLayout.parse("register(1 2) lane(0 0 0 0 0) warp() atom(4)")
    spread = LinearLayout.parse("register() lane(1 2 0 0 0) warp() atom(4)")
    plan, _ = converted(everywhere, spread, 4)
    assert isinstance(plan, WarpShuffle)
    assert plan.num_shuffles == 0
    assert plan.num_selects > 0


def test_an_exchange_of_a_lane_bit_and_a_register_shuffles_only_the_half_that_moves() -> None:
    source = LinearLayout.parse("register(0:1) lane(1:0 2:0 4:0 8:0 16:0) warp() atom(32x2)")
    target = LinearLayout.parse("register(1:0) lane(0:1 2:0 4:0 8:0 16:0) warp() atom(32x2)")
    plan, _ = converted(source, target, 4)
    assert isinstance(plan, WarpShuffle)
    assert plan.num_shuffles == 1


def test_two_bytes_that_stay_together_share_a_shuffle() -> None:
    source = LinearLayout.parse("register(0:1) lane(1:0 2:0 4:0 8:0 16:0) warp() atom(32x2)")
    target = LinearLayout.parse("register(0:1) lane(16:0 2:0 4:0 8:0 1:0) warp() atom(32x2)")
    plan, _ = converted(source, target, 2)
    assert isinstance(plan, WarpShuffle)
    assert (plan.num_shuffles, plan.packed_log2) == (1, 1)


def test_elements_of_other_warps_go_through_shared_memory() -> None:
    source = blocked((32, 32), (1, 1), (1, 32), (4, 1), (1, 0))
    target = blocked((32, 32), (1, 1), (32, 1), (1, 4), (1, 0))
    assert isinstance(plan_conversion(source, target, 4), SharedRoundTrip)


# --- the buffer -------------------------------------------------------------------------------


def test_a_round_trip_needs_no_more_bytes_than_the_tile() -> None:
    source, target = coalesced((128, 176), (1, 0), 8, 4), coalesced((128, 176), (0, 1), 8, 4)
    plan, _ = converted(source, target, 2)
    assert isinstance(plan, SharedRoundTrip)
    assert plan.bytes == 128 * 176 * 2


def test_a_round_trip_is_cut_into_copies_of_the_atom_that_fit() -> None:
    source, target = coalesced((192, 128), (1, 0), 8, 4), coalesced((192, 128), (0, 1), 8, 4)
    plan, _ = converted(source, target, 2, 40000)
    assert isinstance(plan, SharedRoundTrip)
    assert (plan.num_passes, plan.bytes) == (2, 32768)


@pytest.mark.parametrize("max_bytes", (32768, 65536))
def test_an_atom_is_cut_where_registers_alone_choose_the_part(max_bytes: int) -> None:
    source = wgmma_accumulator((128, 256), (4, 1), 256)
    plan, _ = converted(source, coalesced((128, 256), (1, 0), 4, 4), 4, max_bytes)
    assert isinstance(plan, SharedRoundTrip)
    assert plan.bytes == max_bytes
    assert plan.num_passes == 128 * 256 * 4 // max_bytes


def test_the_order_in_shared_memory_is_a_layout_of_the_tile() -> None:
    source, target = coalesced((96, 64), (1, 0), 8, 4), coalesced((96, 64), (0, 1), 8, 4)
    plan, _ = converted(source, target, 2)
    assert isinstance(plan, SharedRoundTrip)
    offsets = {at: offset for offset, at in enumerate(plan.shared.register_offsets())}
    for register in (0, 7, 40):
        for lane, warp in ((0, 0), (13, 2), (31, 3)):
            at = offsets[source.apply(register=register, lane=lane, warp=warp)]
            if plan.store.kind == "vector":
                assert plan.store_offsets.offset(register, lane, warp) == 2 * at
            at = offsets[target.apply(register=register, lane=lane, warp=warp)]
            if plan.load.kind == "vector":
                assert plan.load_offsets.offset(register, lane, warp) == 2 * at


def test_a_layout_of_another_shape_or_of_more_warps_is_refused() -> None:
    layout = coalesced((64, 64), (1, 0), 8, 4)
    for other in (coalesced((64, 32), (1, 0), 8, 4), coalesced((64, 64), (1, 0), 8, 8)):
        with pytest.raises(LayoutError, match="does not convert"):
            plan_conversion(layout, other, 2)
    with pytest.raises(LayoutError, match="3 bytes"):
        plan_conversion(layout, layout, 3)
