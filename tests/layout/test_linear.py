"""Layouts: what they map where, their algebra, and what tile ops make of them."""

from __future__ import annotations

import itertools
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.layout.random_layouts import SHAPES, random_layout
from tilewright.layout.build import (
    blocked,
    coalesced,
    mma_operand,
    shared_linear,
    shared_swizzled,
    wgmma_accumulator,
)
from tilewright.layout.linear import LinearLayout
from tilewright.layout.simulate import elements_of
from tilewright.support.errors import LayoutError, UnsupportedLayout


@st.composite
def layouts(draw: st.DrawFn, shapes: tuple[tuple[int, ...], ...] = SHAPES) -> LinearLayout:
    shape, seed = draw(st.sampled_from(shapes)), draw(st.integers(0, 2**32))
    return random_layout(Random(seed), shape, draw(st.sampled_from((2, 5))), 2)


# --- the map ----------------------------------------------------------------------------------


@given(layouts(), st.data())
def test_coordinates_list_what_apply_computes(layout: LinearLayout, data: st.DataObject) -> None:
    places = layout.coordinates()
    assert places.shape == (
        *(layout.num_registers, layout.num_lanes, layout.num_warps),
        layout.rank,
    )
    r, l, w = (data.draw(st.integers(0, size - 1)) for size in places.shape[:3])
    assert layout.apply(register=r, lane=l, warp=w) == tuple(places[r, l, w])
    assert layout.register_offsets()[r] == tuple(places[r, 0, 0])


@given(layouts())
def test_every_element_is_held(layout: LinearLayout) -> None:
    assert layout.is_surjective
    assert set(elements_of(layout).ravel()) == set(range(int(np.prod(layout.shape))))


@given(layouts())
def test_text_is_read_back(layout: LinearLayout) -> None:
    again = LinearLayout.parse(layout.text())
    assert again == layout
    assert hash(again) == hash(layout)


@pytest.mark.parametrize(
    "line",
    ("", "register(0:1)", "register(0:1) atom(2y2)", "register(0:1:) atom(1x2)", "lane 0 atom(2)"),
)
def test_text_that_is_no_layout_is_refused(line: str) -> None:
    with pytest.raises(LayoutError, match="not the text of a layout"):
        LinearLayout.parse(line)


def test_a_basis_outside_the_atom_is_refused() -> None:
    with pytest.raises(LayoutError, match="outside"):
        LinearLayout((("register", ((4,),)),), (4,))
    with pytest.raises(LayoutError, match="powers of two"):
        LinearLayout((("register", ()),), (3,))


def test_a_fastest_repeat_of_a_power_of_two_is_written_as_bits() -> None:
    repeated = LinearLayout((("register", ((0, 1),)),), (1, 2), (6, 4))
    assert repeated.text() == "register(0:1 0:2 0:4 1:0) atom(2x8) repeats(3x1)"
    assert repeated.shape == (6, 8)


def test_a_repeat_below_another_keeps_the_order_of_registers() -> None:
    slow_rows = LinearLayout((("register", ()),), (1, 1), (4, 3))
    slow_columns = LinearLayout((("register", ()),), (1, 1), (4, 3), (1, 0))
    assert slow_rows.register_offsets()[:4] == ((0, 0), (0, 1), (0, 2), (1, 0))
    assert slow_columns.register_offsets()[:5] == ((0, 0), (1, 0), (2, 0), (3, 0), (0, 1))
    assert slow_columns.atom == (4, 1)


@given(layouts())
def test_places_without_free_bits_hold_every_element_once(layout: LinearLayout) -> None:
    elements = elements_of(layout)
    axes = (("register", 0), ("lane", 1), ("warp", 2))
    for in_dim, axis in axes:
        kept = [v for v in range(elements.shape[axis]) if not v & layout.free_bits(in_dim)]
        if in_dim == "register":
            # Free bits are bits of the atom, the low part of a register index.
            low = (1 << len(layout.basis_images(in_dim))) - 1
            kept = [v for v in range(elements.shape[0]) if not v & low & layout.free_bits(in_dim)]
        elements = np.take(elements, kept, axis)
    assert sorted(elements.ravel()) == list(range(int(np.prod(layout.shape))))
    assert layout.is_injective == (elements.size == elements_of(layout).size)


# --- algebra ----------------------------------------------------------------------------------

POWERS = tuple(shape for shape in SHAPES if all(e & (e - 1) == 0 for e in shape))


@given(layouts(POWERS))
def test_the_pseudo_inverse_finds_a_place_of_every_element(layout: LinearLayout) -> None:
    inverse = layout.pseudo_invert()
    for at in itertools.product(*(range(extent) for extent in layout.shape)):
        place = inverse.apply(**{f"dim{d}": c for d, c in enumerate(at)})
        assert layout.apply(**dict(zip(layout.in_dims, place, strict=True))) == at


@given(layouts(POWERS))
def test_a_layout_after_its_pseudo_inverse_is_the_identity(layout: LinearLayout) -> None:
    inverse = layout.pseudo_invert()
    identity = inverse.compose(layout)
    assert all(
        identity.apply(**{f"dim{d}": 1})[d] == 1 for d in range(layout.rank) if layout.shape[d] > 1
    )
    assert identity.compose(inverse) == inverse


@given(layouts(POWERS))
def test_the_inverse_of_a_layout_without_copies_is_exact(layout: LinearLayout) -> None:
    if not layout.is_injective:
        with pytest.raises(UnsupportedLayout, match="no inverse"):
            layout.invert()
        return
    there_and_back = layout.compose(layout.invert())
    for in_dim, value in (("register", 1), ("lane", 3), ("warp", 1)):
        assume(value < layout.size(in_dim))
        expected = tuple(value * (name == in_dim) for name in layout.in_dims)
        assert there_and_back.apply(**{in_dim: value}) == expected


def test_shared_layouts_invert_and_compose() -> None:
    swizzled = shared_swizzled((64, 64), 2, 128, (1, 0))
    plain = shared_linear((64, 64), (1, 0))
    moved = plain.compose(swizzled.invert())
    assert moved.in_dims == ("offset",)
    assert moved.compose(swizzled) == plain


def test_composition_is_associative() -> None:
    a = coalesced((64, 64), (1, 0), 8, 4)
    b = shared_swizzled((64, 64), 2, 128, (1, 0)).invert()
    c = shared_linear((64, 64), (0, 1))
    assert a.compose(b).compose(c) == a.compose(b.compose(c))


def test_layouts_of_other_sizes_or_with_repeats_do_not_compose() -> None:
    a, b = coalesced((64, 64), (1, 0), 8, 4), shared_linear((64, 32), (1, 0))
    with pytest.raises(UnsupportedLayout):
        a.compose(b.invert())
    with pytest.raises(UnsupportedLayout):
        coalesced((192, 64), (1, 0), 8, 4).pseudo_invert()


@given(layouts(POWERS))
def test_kernel_holds_the_first_element_and_image_has_the_rank(layout: LinearLayout) -> None:
    for values in layout.kernel():
        at = layout.apply(**dict(zip(layout.in_dims, values, strict=True)))
        assert at == (0,) * layout.rank
    assert 2 ** len(layout.image()) == int(np.prod(layout.shape))


# --- tile ops ---------------------------------------------------------------------------------


@given(layouts(), st.data())
def test_permute_permutes_coordinates_and_is_undone(
    layout: LinearLayout, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(layout.rank)))
    moved = layout.permute(order)
    assert (moved.coordinates() == layout.coordinates()[..., order]).all()
    assert moved.permute([order.index(d) for d in range(layout.rank)]) == layout


@given(layouts(), st.data())
def test_expand_then_slice_is_the_identity(layout: LinearLayout, data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, layout.rank))
    wide = layout.expand(axis)
    assert wide.shape == (*layout.shape[:axis], 1, *layout.shape[axis:])
    assert wide.slice(axis) == layout
    assert wide.reshape(layout.shape) == layout
    assert layout.reshape(wide.shape) == wide


@given(layouts(), st.data())
def test_reduce_says_to_which_register_each_register_goes(
    layout: LinearLayout, data: st.DataObject
) -> None:
    axis = data.draw(st.integers(0, layout.rank - 1))
    small, registers = layout.reduce(axis)
    kept = np.delete(layout.coordinates(), axis, axis=-1)
    assert (small.coordinates()[list(registers)] == kept).all()
    assert set(registers) == set(range(small.num_registers))
    assert small.remove_register_copies() == (small, tuple(range(small.num_registers)))


@given(layouts(), st.data())
def test_a_shrunk_layout_holds_what_is_broadcast(layout: LinearLayout, data: st.DataObject) -> None:
    is_one = [data.draw(st.booleans()) for _ in layout.shape]
    shape = tuple(1 if one else e for one, e in zip(is_one, layout.shape, strict=True))
    small = layout.shrink(shape)
    expected = layout.coordinates() * [e != 1 for e in shape]
    places = {tuple(at) for at in expected.reshape(-1, layout.rank)}
    assert {tuple(at) for at in small.coordinates().reshape(-1, layout.rank)} == places
    assert small.shape == shape


@given(layouts(), st.integers(2, 12))
def test_broadcast_holds_the_new_dim_in_registers_and_shrinks_back(
    layout: LinearLayout, extent: int
) -> None:
    wide = layout.expand(0).broadcast((extent, *layout.shape))
    assert wide.shape == (extent, *layout.shape)
    assert wide.num_registers == extent * layout.num_registers
    assert wide.shrink((1, *layout.shape)).bases[1:] == layout.expand(0).bases[1:]


def test_broadcast_of_an_extent_that_is_not_one_is_refused() -> None:
    layout = coalesced((64, 64), (1, 0), 8, 4)
    with pytest.raises(LayoutError, match="broadcast"):
        layout.broadcast((128, 64))
    with pytest.raises(LayoutError, match="broadcast"):
        layout.shrink((32, 64))


@given(layouts(POWERS), st.data())
def test_reshapes_of_powers_of_two_keep_the_flat_order_and_are_undone(
    layout: LinearLayout, data: st.DataObject
) -> None:
    bits = [2] * (int(np.prod(layout.shape)).bit_length() - 1)
    shape = [1]
    for bit in bits:
        if data.draw(st.booleans()):
            shape.append(1)
        shape[-1] *= bit
    moved = layout.reshape(shape)
    assert (elements_of(moved) == elements_of(layout)).all()
    assert moved.reshape(layout.shape) == layout
    assert (elements_of(layout.flatten()) == elements_of(layout)).all()


@given(layouts(), st.data())
def test_a_reshape_keeps_the_flat_order_or_is_refused(
    layout: LinearLayout, data: st.DataObject
) -> None:
    total, shape = int(np.prod(layout.shape)), list[int]()
    while total > 1:
        factor = data.draw(st.sampled_from([d for d in range(2, total + 1) if total % d == 0]))
        shape.append(factor)
        total //= factor
    try:
        moved = layout.reshape(shape)
    except UnsupportedLayout:
        assert layout.repeat_order  # without repeats every reshape is a layout
        return
    assert moved.shape == tuple(shape)
    assert (elements_of(moved) == elements_of(layout)).all()


def test_repeats_are_cut_and_joined_by_reshapes() -> None:
    layout = coalesced((192, 128), (1, 0), 8, 4)
    for shape in ((3, 64, 128), (96, 2, 128), (3, 8192), (24576,), (6, 32, 128), (192, 4, 32)):
        assert (elements_of(layout.reshape(shape)) == elements_of(layout)).all()
    with pytest.raises(UnsupportedLayout, match="without moving elements"):
        layout.reshape((64, 3, 128))
    with pytest.raises(LayoutError, match="number of elements"):
        layout.reshape((64, 128))


def test_halves_of_a_last_dim_are_split_and_joined() -> None:
    pairs = wgmma_accumulator((64, 96), (4, 1), 96).reshape((64, 48, 2))
    half = pairs.split()
    assert half.join() == pairs
    places = pairs.coordinates().reshape(-1, 2, *pairs.coordinates().shape[1:])
    for k in range(2):
        assert (places[:, k, ..., 2] == k).all()
        assert (places[:, k, ..., :2] == half.coordinates()).all()


@given(layouts())
def test_join_puts_tiles_side_by_side(layout: LinearLayout) -> None:
    both = layout.join()
    places = both.coordinates()
    assert (places[0::2, ..., :-1] == layout.coordinates()).all()
    assert (places[1::2, ..., :-1] == layout.coordinates()).all()
    assert (places[0::2, ..., -1] == 0).all() and (places[1::2, ..., -1] == 1).all()
    assert both.split() == layout


def test_halves_in_other_lanes_are_not_split() -> None:
    across = coalesced((64, 2), (0, 1), 1, 1)
    lanes = LinearLayout.parse("register() lane(0:1 1:0 2:0 4:0 8:0) warp() atom(16x2)")
    assert across.split().shape == (64,)
    with pytest.raises(UnsupportedLayout, match="lanes"):
        lanes.split()
    with pytest.raises(LayoutError, match="extent 2"):
        coalesced((64, 4), (0, 1), 1, 1).split()


@given(layouts())
def test_register_copies_are_removed_and_nothing_else(layout: LinearLayout) -> None:
    small, registers = layout.remove_register_copies()
    assert (small.coordinates()[list(registers)] == layout.coordinates()).all()
    assert len(set(small.register_offsets())) == small.num_registers
    assert layout.unique_registers() == registers


def test_axes_that_are_not_there_are_refused() -> None:
    layout = mma_operand((64, 64), 0, 16, (4, 1))
    for wrong in (
        lambda: layout.slice(2),
        lambda: layout.expand(-1),
        lambda: layout.permute((0, 0)),
    ):
        with pytest.raises(LayoutError):
            wrong()


def test_lanes_that_find_no_elements_left_are_free() -> None:
    layout = blocked((4, 4), (1, 1), (4, 8), (1, 1), (1, 0))
    assert layout.free_bits("lane") == 0b00100
    assert layout.free_bits("register") == layout.free_bits("warp") == 0


def test_a_tile_of_rank_0_is_one_element_in_every_lane() -> None:
    scalar = coalesced((8,), (0,), 1, 2).slice(0)
    assert scalar.shape == ()
    assert scalar.coordinates().shape == (1, 32, 2, 0)
    assert LinearLayout.parse(scalar.text()) == scalar
