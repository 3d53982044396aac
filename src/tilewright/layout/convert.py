"""Conversions between layouts: how every element gets to the lane that wants it.

Registers are renamed where no element changes lanes, lanes exchange registers where none changes
warps, and shared memory does the rest. The cheaper of what is possible is planned.
"""

from __future__ import annotations

from functools import lru_cache

from tilewright.layout.access import Access, OffsetMap
from tilewright.layout.atoms import atom_view
from tilewright.layout.linear import LinearLayout
from tilewright.layout.roundtrip import SharedRoundTrip, plan_round_trip
from tilewright.layout.shuffle import ShuffleRound, WarpShuffle, permutation_moves, plan_shuffle
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import LayoutError

__all__ = [
    "Access",
    "Conversion",
    "OffsetMap",
    "RegisterPermutation",
    "SharedRoundTrip",
    "ShuffleRound",
    "WarpShuffle",
    "plan_conversion",
]


@dataclass(frozen=True)
class RegisterPermutation:
    """A conversion that moves nothing: target register `r` is source register `moves[r]`."""

    moves: tuple[int, ...]

    def cost(self) -> int:
        """The cycles that a warp needs for it: registers have no order in hardware."""
        return 0


Conversion = RegisterPermutation | WarpShuffle | SharedRoundTrip


@lru_cache(maxsize=512)
def plan_conversion(
    source: LinearLayout,
    target: LinearLayout,
    element_bytes: int,
    *,
    max_bytes: int | None = None,
    matrices: bool = True,
) -> Conversion:
    """The cheapest plan that brings a tile from one layout to another.

    *Constraints*: `element_bytes` is 1, 2, 4 or 8 (what elements take in shared memory).
    `max_bytes` caps the buffer, in passes as far as both sides allow; `matrices` permits
    stmatrix and ldmatrix.
    *Raises*: `LayoutError` where the layouts are not of one shape, or of as many lanes and warps.
    """
    _check(source, target, element_bytes)
    before, after = atom_view(source), atom_view(target)
    moves = permutation_moves(before, after)
    if moves is not None:
        return RegisterPermutation(moves)
    shuffle = plan_shuffle(before, after, element_bytes)
    round_trip = plan_round_trip(before, after, element_bytes, max_bytes, matrices=matrices)
    if shuffle is not None and shuffle.cost() <= round_trip.cost():
        return shuffle
    return round_trip


def _check(source: LinearLayout, target: LinearLayout, element_bytes: int) -> None:
    threads = [(layout.num_lanes, layout.num_warps) for layout in (source, target)]
    if source.shape != target.shape or threads[0] != threads[1]:
        raise LayoutError(
            f"{source.shape} in {threads[0]} lanes and warps does not convert to "
            f"{target.shape} in {threads[1]}"
        )
    if element_bytes not in (1, 2, 4, 8):
        raise LayoutError(f"elements of {element_bytes} bytes do not convert: 1, 2, 4 or 8")
    if not (source.is_surjective and target.is_surjective):
        raise LayoutError(f"a layout of {source.shape} does not hold every element")
