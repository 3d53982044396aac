"""Registers of running products keep their type where warp groups come to them one by one."""

from __future__ import annotations

import numpy as np

from tilewright.interp.simt.in_flight import InFlight, ProductGroups, merge_in_flight

FIRST = np.arange(256) < 128


def running(values: np.ndarray) -> InFlight:
    """A register that a product of the second warp group is writing."""
    return InFlight(values[None], 0, np.array([0, 1]), ProductGroups.fresh(256))


def test_a_group_that_starts_a_product_leaves_the_other_groups_floats() -> None:
    old = np.full(256, 1.5, np.float32)
    new = running(np.full(256, 2.5, np.float32))
    merged = merge_in_flight(~FIRST, new, old)
    np.testing.assert_array_equal(merged.array, np.where(FIRST, 1.5, 2.5).astype(np.float32))
    assert merged.array.dtype == np.float32


def test_what_is_merged_into_a_running_register_takes_its_type() -> None:
    """A register that was written as bits is the float that the product has."""
    bits = np.full(256, 1.5, np.float32).view(np.uint32)
    for mask, new, old in (
        (FIRST, bits, running(np.full(256, 2.5, np.float32))),
        (~FIRST, running(np.full(256, 2.5, np.float32)), bits),
    ):
        merged = merge_in_flight(mask, new, old)
        assert merged.array.dtype == np.float32
        np.testing.assert_array_equal(merged.array, np.where(FIRST, 1.5, 2.5))
