"""Pointers that a kernel reads from memory, in the interpreter and in the simulator."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.grouped_programs import Group, by_descriptors, by_pointers
from tilewright.compiler.reachable import reachable_arrays
from tilewright.interp.simt.faults import GlobalRace
from tilewright.support.errors import DataRace, OutOfBoundsAccess

SHAPES = ((64, 64, 64), (130, 72, 40), (17, 64, 0), (64, 136, 96))
TILES = {"P": 3, "M": 64, "N": 64, "K": 32}


@pytest.mark.parametrize("emulator", ["interpret", "simulate"])
@pytest.mark.parametrize("kernel", [by_pointers, by_descriptors])
def test_a_group_of_products_equals_numpy(kernel, emulator, rng) -> None:
    group = Group(rng, SHAPES)
    launch = getattr(kernel, emulator)[(3,)]
    launch(*group.arguments(), **TILES, reachable=group.arrays())
    group.check()


@pytest.mark.parametrize("emulator", ["interpret", "simulate"])
def test_arrays_that_callers_hold_are_found(emulator, rng) -> None:
    group = Group(rng, SHAPES[:2])
    held = {"a": group.a, "b": group.b, "c": tuple(group.c)}
    getattr(by_pointers, emulator)[(3,)](*group.arguments(), **TILES)
    group.check()
    assert len(held) == 3


@tilewright.jit
def shift(addresses, BY: tl.constexpr, SIZE: tl.constexpr):
    at = tl.load(addresses).to(tl.pointer_type(tl.float32)) + tl.arange(0, SIZE)
    tl.store(at + BY, tl.load(at) + 1)


@pytest.mark.parametrize("emulator", ["interpret", "simulate"])
def test_an_address_in_no_array_is_an_error_at_its_line(emulator) -> None:
    x = np.zeros(64, np.float32)
    launch = getattr(shift, emulator)[(1,)]
    with pytest.raises(OutOfBoundsAccess, match="no argument") as caught:
        launch(np.array([x.ctypes.data]), 0, SIZE=64, reachable=[])
    assert "tl.load(at)" in str(caught.value) and "`reachable`" in str(caught.value)
    assert not x.any()


@pytest.mark.parametrize("emulator", ["interpret", "simulate"])
def test_an_array_that_is_reached_has_its_bounds(emulator) -> None:
    x = np.zeros(64, np.float32)
    launch = getattr(shift, emulator)[(1,)]
    with pytest.raises(OutOfBoundsAccess) as caught:
        launch(np.array([x.ctypes.data]), 1, SIZE=64, reachable=[x])
    assert "tl.store(at + BY" in str(caught.value) and "reachable[0]" in str(caught.value)


@tilewright.jit
def meet(addresses, SIZE: tl.constexpr):
    at = tl.load(addresses).to(tl.pointer_type(tl.int32)) + tl.arange(0, SIZE) // 2
    tl.store(at, tl.arange(0, SIZE))


def test_threads_that_meet_in_what_is_reached_are_a_race() -> None:
    x = np.zeros(128, np.int32)
    with pytest.raises(GlobalRace):
        meet.simulate[(1,)](np.array([x.ctypes.data]), SIZE=256, reachable=[x])


def test_programs_that_meet_in_what_is_reached_are_a_race() -> None:
    x = np.zeros(65, np.float32)
    with pytest.raises(DataRace):
        shift.interpret[(2,)](np.array([x.ctypes.data]), 1, SIZE=64, reachable=[x])


def test_what_shares_bytes_with_an_argument_has_the_argument_s_bounds() -> None:
    whole = np.zeros(64, np.float32)
    part = whole[:8]
    names = [name for name, _ in reachable_arrays([part], None)]
    assert "whole" not in names and "part" not in names
    other = [np.zeros(4), {"deep": np.zeros(3)}]
    names = [name for name, _ in reachable_arrays([part], None)]
    assert "other[0]" in names and "other[1]['deep']" in names and len(other) == 2
