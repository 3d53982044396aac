"""Quotients that facts take for those of addresses: as numbers they are those of negative ones."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.compiler.build import make_request
from tilewright.compiler.stages import stage_text
from tilewright.frontend.devices import DevicePlacement
from tilewright.targets.nvidia.host import named_machine


@tilewright.jit
def quotients(out, N: tl.constexpr):
    """out = quotients of what wraps around, each a lane's neighbours."""
    i = tl.arange(0, N)
    tl.store(out + tl.program_id(0) * N + i, (tl.program_id(0) * 1073741824 + i) // 8)


def test_quotients_of_what_wraps_around_are_computed_each() -> None:
    found, expected = (np.zeros((4, 1024), np.int32) for _ in range(2))
    quotients.interpret[(4,)](expected, N=1024)
    quotients.simulate[(4,)](found, N=1024)
    np.testing.assert_array_equal(found, expected)


@tilewright.jit
def masked_by_quotients(x, out, N: tl.constexpr, FORM: tl.constexpr):
    """out = x, but 7 where a quotient or remainder of what wraps around says so."""
    i = tl.arange(0, N)
    number = tl.program_id(0) * 1073741824 + i
    inside = number // 8 % 2 == 0
    if FORM == "quotient":
        inside = number // 8 >= -268435455
    elif FORM == "remainder":
        inside = number % 16 < 8
    stored = number // 8 != -268435456
    tl.store(out + tl.program_id(0) * N + i, tl.load(x + i, mask=inside, other=7), mask=stored)


@pytest.mark.parametrize("form", ["both", "quotient", "remainder"])
def test_masks_of_what_wraps_around_are_one_for_each_element(form: str) -> None:
    x = np.arange(100, 1124, dtype=np.int32)
    found, expected = (np.zeros((4, 1024), np.int32) for _ in range(2))
    masked_by_quotients.interpret[(4,)](x, expected, N=1024, FORM=form)
    masked_by_quotients.simulate[(4,)](x, found, N=1024, FORM=form)
    np.testing.assert_array_equal(found, expected)


@tilewright.jit
def rows_of_images(x, out, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, N: tl.constexpr):
    """out = x, but for the rows of each image that are at or behind 3."""
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + i, tl.load(x + i), mask=i // WIDTH % HEIGHT < 3)


def test_masks_of_quotients_of_the_address_take_vectors() -> None:
    """What is added to the pointers is not negative, and neither are its quotients."""
    x = np.zeros(4096, np.float32)
    call = rows_of_images.specialize_call((x, x), {"HEIGHT": 4, "WIDTH": 32, "N": 1024})
    placement, machine = DevicePlacement("nvidia"), named_machine("sm_90a")
    request = make_request(call.source, call.specialization, call.options, placement, machine)
    assert "st.global.v4" in stage_text(request, "ptx")
