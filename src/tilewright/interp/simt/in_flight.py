"""Registers that an asynchronous product is still writing."""

from __future__ import annotations

import numpy as np

from tilewright.interp.simt.faults import Fault, UnfinishedOperation
from tilewright.ir.op import Array
from tilewright.support.dataclass import dataclass

WARP_GROUP = 128


@dataclass
class ProductGroups:
    """The products that each warp group has started, by the group that they were committed in."""

    warp_groups: int
    committed: Array
    completed: Array

    @staticmethod
    def fresh(threads: int) -> ProductGroups:
        """No products yet."""
        count = -(-threads // WARP_GROUP)
        return ProductGroups(count, np.zeros(count, np.int64), np.zeros(count, np.int64))


class InFlight:
    """A register and the group, per warp group, whose wait makes it readable.

    `block` and `row` say which accumulator of which product it is, so that a chain of products
    needs no copies.
    """

    def __init__(self, block: Array, row: int, group: Array, groups: ProductGroups) -> None:
        self.block = block
        self.row = row
        self.group = group
        self.groups = groups

    @property
    def array(self) -> Array:
        """The value that the register will have."""
        return self.block[self.row]

    def is_complete(self) -> bool:
        """Whether every warp group may read the register."""
        return bool((self.group <= self.groups.completed).all())

    def resolve(self, mask: Array | None) -> Array:
        """The value, for an instruction that the threads of `mask` execute."""
        late = self.group > self.groups.completed
        if late.any():
            executing = np.ones(late.shape, np.bool_)
            if mask is not None:
                executing = _groups_of(mask, len(late))
            if (late & executing).any():
                raise Fault(
                    UnfinishedOperation,
                    "a register of a product is used before wgmma.wait_group waited for it",
                )
        return self.array


def _groups_of(mask: Array, count: int) -> Array:
    """The warp groups with threads in a mask."""
    padded = np.zeros(count * WARP_GROUP, np.bool_)
    padded[: len(mask)] = mask
    return np.asarray(padded.reshape(count, WARP_GROUP).any(1))


def merge_in_flight(mask: Array, new: Array | InFlight, old: Array | InFlight) -> InFlight:
    """`new` in the threads of `mask`, `old` in the others, where one of them is in flight.

    The type is that of what is in flight: a product knows what its accumulators are.
    """
    known = new if isinstance(new, InFlight) else old
    assert isinstance(known, InFlight)
    nothing = np.zeros_like(known.group)
    new_group = new.group if isinstance(new, InFlight) else nothing
    old_group = old.group if isinstance(old, InFlight) else nothing
    group = np.where(_groups_of(mask, len(nothing)), new_group, old_group)
    new_array = new.array if isinstance(new, InFlight) else new
    old_array = old.array if isinstance(old, InFlight) else old
    dtype = known.array.dtype
    new_array, old_array = new_array.view(dtype), old_array.view(dtype)
    return InFlight(np.where(mask, new_array, old_array)[None], 0, group, known.groups)
