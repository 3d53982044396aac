"""Boxes of blocks, and what a launch computes of its arguments to describe a tensor."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.corpus.partitioned import gemm
from tilewright.interp.shared_memory import element_offsets
from tilewright.runtime.launch_numbers import evaluate, slots_of
from tilewright.schedule.shared_memory import tile_alignment
from tilewright.support.errors import ArgumentNotSupported
from tilewright.targets.nvidia.tensor_map import TensorMapRecipe, TensorShape
from tilewright.targets.nvidia.tma.boxes import BoxPlan, plan_boxes

ROWS = ("slot", 1, 32)
WIDTH = ("slot", 2, 32)


@st.composite
def blocks(draw: st.DrawFn) -> tuple[tuple[int, ...], int]:
    """Shapes of powers of two whose last dim has at least 16 bytes, and an element size."""
    size = draw(st.sampled_from([1, 2, 4, 8]))
    last = draw(st.integers(0, 7)) + (16 // size).bit_length() - 1
    leading = draw(st.lists(st.integers(0, 6), max_size=4))
    shape = (*(1 << bits for bits in leading), 1 << last)
    return shape, size


@given(blocks())
def test_boxes_cover_a_block_where_its_layout_has_them(block: tuple[tuple[int, ...], int]) -> None:
    shape, size = block
    plan = plan_boxes(shape, size)
    if isinstance(plan, str):
        return
    copies = plan.copies()
    assert len(copies) * prod(plan.box) == prod(shape)
    assert all(1 <= extent <= 256 for extent in plan.box)
    assert plan.box[-1] * size % 16 == 0
    offsets = element_offsets(plan.layout()) * size
    for offset, at in copies:
        place = int(offsets[at])
        # The engine takes the swizzle from the address, the layout from the offset.
        assert place == swizzled(offset, plan.swizzle_bytes)
        assert offset % 128 == 0
        end = tuple(a + extent - 1 for a, extent in zip(at, plan.box, strict=True))
        assert int(offsets[end]) == swizzled(offset + prod(plan.box) * size - size, plan)


def swizzled(offset: int, plan: BoxPlan | int) -> int:
    """A byte offset with its 16-byte chunk moved by the bits from 128 on."""
    width = plan if isinstance(plan, int) else plan.swizzle_bytes
    return offset ^ (((offset >> 7) & (width // 16 - 1)) << 4) if width else offset


@given(blocks())
def test_a_tile_begins_where_the_pattern_of_its_swizzle_does(
    block: tuple[tuple[int, ...], int],
) -> None:
    plan = plan_boxes(*block)
    if isinstance(plan, str) or not plan.swizzle_bytes:
        return
    rows_of_pattern = min(prod(plan.shape[:-1]) * plan.swizzle_bytes, 8 * plan.swizzle_bytes)
    assert tile_alignment(plan.layout(), plan.element_bytes) % min(1024, rows_of_pattern) == 0


@pytest.mark.parametrize(
    ("shape", "size", "reason"),
    [
        ((512, 512), 4, "much for shared memory"),
        ((64, 1024, 1), 2, "rows of 2 bytes"),
        ((1, 1, 1, 1, 1, 16), 4, "6 dimensions"),
        ((2, 16384), 2, "takes 128 copies"),
    ],
)
def test_blocks_that_the_engine_does_not_move_say_why(
    shape: tuple[int, ...], size: int, reason: str
) -> None:
    assert reason in str(plan_boxes(shape, size))


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (("constant", 7), 7),
        (("slot", 0, 32), -1),
        (("unsigned", 32, ("slot", 0, 32)), (1 << 32) - 1),
        (("mul", 32, ("constant", 1 << 20), ("constant", 1 << 12)), 0),
        (("mul", 64, ("constant", 1 << 20), ("constant", 1 << 12)), 1 << 32),
        (("add", 64, ("slot", 1, 64), ("mul", 64, ("slot", 2, 32), ("constant", 4))), 4160),
        (("div", 32, ("constant", -7), ("constant", 2)), -3),
        (("rem", 32, ("constant", -7), ("constant", 2)), -1),
        (("min", 32, ("slot", 2, 32), ("constant", 3)), 3),
        (["max", 32, ["slot", 2, 32], ["constant", 3]], 16),
    ],
)
def test_expressions_count_as_the_kernel_does(expression: tuple[object, ...], value: int) -> None:
    assert evaluate(expression, [(1 << 32) - 1, 4096, 16]) == value  # type: ignore[arg-type]  # nested


def test_the_arguments_of_an_expression_are_found_in_order() -> None:
    expression = ("add", 64, ("slot", 3, 64), ("mul", 64, ("slot", 1, 32), ("slot", 3, 32)))
    assert slots_of(expression) == [3, 1]


def recipe() -> TensorMapRecipe:
    """A matrix of halves: base, rows and width are the arguments 0 to 2."""
    return TensorMapRecipe("f16", ("slot", 0, 64), (ROWS, WIDTH), (WIDTH,), (64, 64), 128)


def test_a_recipe_survives_its_metadata() -> None:
    again = TensorMapRecipe.from_metadata(recipe().to_metadata())
    assert again == recipe() and again.slots() == (0, 1, 2)
    assert again.describe([4096, 10, 24]) == TensorShape(4096, (10, 24), (48,))


@pytest.mark.parametrize(
    ("slots", "message"),
    [
        ([4104, 8, 64], r"`x` starts at 0x1008, no multiple of 16 bytes"),
        ([4096, 8, 65], r"`x` has stride 0 of 130 bytes, no multiple of 16"),
        ([4096, 8, -64], r"`x` has stride 0 of -128 bytes; 0 to 2\^40 are possible"),
        ([4096, 0, 64], r"`x` has extent 0 along dimension 0"),
    ],
)
def test_what_the_engine_does_not_take_is_named(slots: list[int], message: str) -> None:
    with pytest.raises(ArgumentNotSupported, match=message) as caught:
        recipe().check(recipe().describe(slots), ["x", "rows", "width"], "kernel")
    assert "kernel():" in str(caught.value) and "help:" in str(caught.value)


def test_a_simulated_launch_names_the_argument_and_the_kernel_too() -> None:
    a, b = np.zeros((64, 0), np.float16), np.zeros((0, 64), np.float16)
    out, sizes = np.zeros((64, 64), np.float16), {"M": 64, "N": 64, "K": 64}
    with pytest.raises(ArgumentNotSupported) as caught:
        gemm.simulate[(1,)](a, b, out, 64, 64, 0, **sizes)
    assert caught.value.summary.startswith("gemm(): the tensor descriptor of `a` has extent 0")
    assert "descriptors='pointers', which takes any" in caught.value.hint
