"""How one dim of a tile spreads over registers, lanes and warps: what folds along it walk over."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from tilewright.layout.linear import LinearLayout
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import UnsupportedLayout


@dataclass(frozen=True)
class AxisBit:
    """One bit of a lane or warp index, and how far it moves along the axis."""

    index: int
    step: int


@dataclass(frozen=True)
class AxisSpread:
    """Where the elements along one dim are.

    `result` is the layout of the other dims. Register `r` of it stands for the registers
    `groups[r]` of the tile, in the order of the axis, without copies; register `s` of the tile
    goes to `lines[s]` and stands at `positions[s]` of the axis. `lanes` and `warps` are the bits
    that move along the axis, shortest step first; bits of copies are left out.
    """

    axis: int
    result: LinearLayout
    groups: tuple[tuple[int, ...], ...]
    lines: tuple[int, ...]
    positions: tuple[int, ...]
    lanes: tuple[AxisBit, ...]
    warps: tuple[AxisBit, ...]

    @property
    def lane_mask(self) -> int:
        """The bits of a lane index that move along the axis."""
        return sum(1 << bit.index for bit in self.lanes)

    @property
    def warp_mask(self) -> int:
        """The bits of a warp index that move along the axis."""
        return sum(1 << bit.index for bit in self.warps)


@cache
def spread_along(layout: LinearLayout, axis: int) -> AxisSpread:
    """How `axis` of a tile spreads over its threads.

    *Raises*: `UnsupportedLayout` where a bit moves along the axis and another dim at once.
    """
    result, where = layout.reduce(axis)
    for in_dim in ("register", "lane", "warp"):
        for vector in layout.basis_images(in_dim):
            if not _is_plain(vector, axis):
                sizes = "x".join(map(str, layout.shape))
                raise UnsupportedLayout(
                    f"registers or threads of the tile of {sizes} differ along dim {axis} and "
                    "others at once"
                )
    positions = tuple(at[axis] for at in layout.register_offsets())
    groups: list[dict[int, int]] = [{} for _ in range(result.num_registers)]
    for register, target in enumerate(where):
        groups[target].setdefault(positions[register], register)
    return AxisSpread(
        axis,
        result,
        tuple(tuple(group[at] for at in sorted(group)) for group in groups),
        where,
        positions,
        _bits(layout, "lane", axis),
        _bits(layout, "warp", axis),
    )


def _is_plain(vector: Sequence[int], axis: int) -> bool:
    """Whether a basis moves by one bit along the axis alone, or not along it at all."""
    step = vector[axis]
    return not step or (step & (step - 1) == 0 and sum(map(bool, vector)) == 1)


def _bits(layout: LinearLayout, in_dim: str, axis: int) -> tuple[AxisBit, ...]:
    free = layout.free_bits(in_dim)
    bits = [
        AxisBit(index, vector[axis])
        for index, vector in enumerate(layout.basis_images(in_dim))
        if vector[axis] and not free >> index & 1
    ]
    return tuple(sorted(bits, key=lambda bit: bit.step))
