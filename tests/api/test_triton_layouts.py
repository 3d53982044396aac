"""`triton.tools.LinearLayout` and `ragged_tma`, against definitions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.api import alias as _alias  # noqa: F401 - puts `triton` on the path

import triton  # isort: skip
import triton.language as tl  # isort: skip
from triton.tools import LinearLayout  # isort: skip
from triton.tools.ragged_tma import (  # isort: skip
    create_ragged_descriptor,
    create_ragged_descriptor_device_2d,
    create_ragged_descriptor_device_3d,
    load_ragged,
    store_ragged,
)


def random_layout(rng: np.random.Generator, bits=(3, 2), sizes=(4, 8), is_full=True):
    """A layout of random bases, one-to-one where asked for."""
    while True:
        bases = [
            (f"in{i}", [[int(rng.integers(size)) for size in sizes] for _ in range(count)])
            for i, count in enumerate(bits)
        ]
        names = [f"out{i}" for i in range(len(sizes))]
        layout = LinearLayout.from_bases(bases, names, sizes, require_surjective=False)
        if not is_full or layout.is_invertible():
            return layout


def places(layout):
    """Every place of the in-dims."""
    for at in product(*(range(size) for _, size in layout.in_dims)):
        yield dict(zip((name for name, _ in layout.in_dims), at, strict=True))


def test_constructors_in_one_dimension() -> None:
    identity = LinearLayout.identity_1d(8, "i", "o")
    strided = LinearLayout.strided_1d(4, 2, "i", "o")
    zeros = LinearLayout.zeros_1d(8, "i", "o", outDimSize=4)
    assert [identity.apply({"i": i})["o"] for i in range(8)] == list(range(8))
    assert [strided.apply({"i": i})["o"] for i in range(4)] == [0, 2, 4, 6]
    assert {zeros.apply({"i": i})["o"] for i in range(8)} == {0}
    assert identity.is_invertible()
    assert strided.is_injective()
    assert not strided.is_surjective()
    assert not zeros.is_surjective()
    assert LinearLayout.zeros_1d(8, "i", "o").is_surjective()


def test_a_layout_is_linear(rng: np.random.Generator) -> None:
    layout = random_layout(rng, is_full=False)
    for a, b in zip(places(layout), reversed(list(places(layout))), strict=True):
        both = layout.apply({name: a[name] ^ b[name] for name in a})
        one, two = layout.apply(a), layout.apply(b)
        assert both == {name: one[name] ^ two[name] for name in one}


def test_the_inverse_leads_back(rng: np.random.Generator) -> None:
    layout = random_layout(rng)
    inverse = layout.invert()
    assert all(inverse.apply(layout.apply(at)) == at for at in places(layout))
    assert layout.compose(inverse).bases == [
        ("in0", [[1, 0], [2, 0], [4, 0]]),
        ("in1", [[0, 1], [0, 2]]),
    ]


def test_a_pseudoinverse_finds_a_place_of_whatever_is_held(rng: np.random.Generator) -> None:
    layout = random_layout(rng, bits=(4, 3), sizes=(4, 2), is_full=False)
    back = layout.pseudoinvert()
    for at in places(layout):
        held = layout.apply(at)
        assert layout.apply(back.apply(held)) == held


def test_invert_and_compose_solves_for_the_other(rng: np.random.Generator) -> None:
    one, other = random_layout(rng), random_layout(rng)
    between = one.invert_and_compose(other)
    assert all(other.apply(between.apply(at)) == one.apply(at) for at in places(one))


def test_a_product_puts_the_second_above_the_first() -> None:
    both = LinearLayout.identity_1d(4, "i", "o") * LinearLayout.identity_1d(8, "i", "o")
    assert both == LinearLayout.identity_1d(32, "i", "o")
    apart = LinearLayout.identity_1d(4, "i", "o") * LinearLayout.identity_1d(2, "j", "p")
    assert apart.apply({"i": 3, "j": 1}) == {"o": 3, "p": 1}
    assert apart.out_dims == [("o", 4), ("p", 2)]
    assert (apart.num_in_dims, apart.num_out_dims) == (2, 2)


def test_the_matrix_has_a_row_for_each_bit_of_the_out_dims() -> None:
    assert LinearLayout.strided_1d(4, 2, "i", "o").get_matrix_view() == [[0, 0], [1, 0], [0, 1]]
    layout = LinearLayout.from_bases([("a", [[1, 1]]), ("b", [[0, 1], [0, 2]])], ["x", "y"])
    assert layout.get_matrix_view() == [[1, 0, 0], [1, 1, 0], [0, 0, 1]]


def test_pictures_show_who_holds_what() -> None:
    layout = LinearLayout.from_bases(
        [("register", [[0, 1]]), ("lane", [[1, 0], [0, 2]])], ["row", "column"]
    )
    assert layout.get_distributed_view() == "[ 0:0, 1:0, 0:2, 1:2 ]\n[ 0:1, 1:1, 0:3, 1:3 ]\n"
    assert "register=1, lane=2: (0, 3)\n" in layout.get_distributed_view(useHWPointOfView=True)
    assert "lane=2 -> (0, 2)" in str(layout)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: LinearLayout.identity_1d(6, "i", "o"), "6 is not a power of two"),
        (lambda: LinearLayout.from_bases([("i", [[1, 2]])], ["o"]), "has not 1 value"),
        (lambda: LinearLayout.from_bases([("i", [[1]])], ["o"], [4]), "require_surjective"),
        (lambda: LinearLayout.from_bases([("i", [[4]])], ["o"], [4], False), "outside"),
        (lambda: LinearLayout.identity_1d(4, "i", "o").apply({"j": 1}), "in-dims are"),
        (lambda: LinearLayout.identity_1d(4, "i", "o").apply({"i": 4}), "of 4 values"),
        (lambda: LinearLayout.zeros_1d(4, "i", "o").invert(), "not one-to-one"),
    ],
)
def test_a_layout_that_does_not_exist_says_why(make, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        make()


# --- slices of any length ---------------------------------------------------------------------


@triton.jit
def copy_slice(x, y, x_row, y_row, n, first, D: tl.constexpr, RANK: tl.constexpr):
    if RANK == 2:
        block = load_ragged(x, x_row, n, [first, 0], D)
        store_ragged(y, y_row, n, [first, 0], block, D)
    elif D == 0:
        block = load_ragged(x, x_row, n, [first, 0, 0], D)
        store_ragged(y, y_row, n, [first, 0, 0], block, D)
    else:
        block = load_ragged(x, x_row, n, [0, first, 0], D)
        store_ragged(y, y_row, n, [0, first, 0], block, D)


@triton.jit
def copy_rows(x, y, x_row, y_row, n, R, C, B0: tl.constexpr, B1: tl.constexpr):
    source = create_ragged_descriptor_device_2d(x, R, C, C, 1, B0, B1)
    target = create_ragged_descriptor_device_2d(y, R, C, C, 1, B0, B1)
    store_ragged(target, y_row, n, [0, 0], load_ragged(source, x_row, n, [0, 0]))


@triton.jit
def copy_columns(x, y, x_row, y_row, n, A, R, C, B: tl.constexpr):
    source = create_ragged_descriptor_device_3d(x, A, R, C, R * C, C, 1, B, B, B, 1)
    target = create_ragged_descriptor_device_3d(y, A, R, C, R * C, C, 1, B, B, B, 1)
    block = load_ragged(source, x_row, n, [0, 0, 0], 1)
    store_ragged(target, y_row, n, [0, 0, 0], block, 1)


def expected_copy(x, block, dim, x_row, y_row, n, first=0):
    """What a copy of one block of a slice leaves in zeros."""
    out = np.zeros_like(x)
    rows = min(n - first, block[dim])
    near = [slice(0, extent) for extent in block]
    source, target = list(near), list(near)
    source[dim] = slice(x_row + first, x_row + first + rows)
    target[dim] = slice(y_row + first, y_row + first + rows)
    out[tuple(target)] = x[tuple(source)]
    return out


@pytest.mark.parametrize("is_checked", [False, True])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8])
@pytest.mark.parametrize(
    ("shape", "block", "dim"),
    [
        ((65, 80), (32, 128), 0),
        ((24, 16, 32), (16, 16, 32), 0),
        ((24, 17, 32), (32, 16, 32), 1),
    ],
)
def test_blocks_end_with_their_slice(
    rng: np.random.Generator, shape, block, dim, dtype, is_checked: bool
) -> None:
    x = rng.integers(-100, 100, shape).astype(dtype)
    source = create_ragged_descriptor(x, block, dim)
    for n, first, x_row in ((9, 0, 3), (1, 0, 0), (12, 5, shape[dim] - 12), (shape[dim], 0, 0)):
        y = np.zeros_like(x)
        y_row = (shape[dim] - n) // 2
        target = create_ragged_descriptor(y, block, dim)
        copy_slice[(1,)](
            source, target, x_row, y_row, n, first, dim, len(shape), checked=is_checked
        )
        np.testing.assert_array_equal(y, expected_copy(x, block, dim, x_row, y_row, n, first))


def test_descriptors_made_in_the_kernel_end_with_their_slice(rng: np.random.Generator) -> None:
    x = rng.standard_normal((20, 16)).astype(np.float32)
    y = np.zeros_like(x)
    copy_rows[(1,)](x, y, 2, 7, 6, 20, 16, 16, 16)
    np.testing.assert_array_equal(y, expected_copy(x, (16, 16), 0, 2, 7, 6))
    x = rng.standard_normal((4, 20, 16)).astype(np.float32)
    y = np.zeros_like(x)
    copy_columns[(1,)](x, y, 2, 7, 6, 4, 20, 16, 16)
    np.testing.assert_array_equal(y, expected_copy(x, (16, 16, 16), 1, 2, 7, 6))
