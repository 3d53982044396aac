"""How a tile is sorted: a bitonic network over the bits of a position, wherever each bit is.

Merging always begins with a comparison of mirrored positions, so that every later comparison
leaves the lesser element at the lesser position; no direction has to be known.
"""

from __future__ import annotations

from xdsl.ir import Attribute

from tilewright.ir.encoding import has_layout, layout_of
from tilewright.ir.types import element_of, shape_of, storage_bytes
from tilewright.layout.axis import AxisSpread, spread_along
from tilewright.layout.digits import is_power_of_two
from tilewright.layout.linear import LinearLayout
from tilewright.ops.indexing.ir import SortOp
from tilewright.schedule.layout.anchors import ANCHORS, Anchored, Neighbours, along_axis
from tilewright.schedule.rearrangements import tile_places
from tilewright.schedule.scratch import SCRATCH
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import UnsupportedError

_INDEX_BITS = 16
# Comparisons of one thread, of 32-bit words; written out, each takes about 5 lines of PTX.
_MAX_WRITTEN_OUT = 2500
_MAX_PACKED = 1 << (_INDEX_BITS - 1)


@dataclass(frozen=True)
class SortKeys:
    """How an element travels: as unsigned integers that order like it, and where it came from.

    `key_bits` of key stand above `low_bits` of position and sign of zero, in one word if both
    fit into 64 bits, else in two. Without positions there are no low bits.
    """

    key_bits: int
    low_bits: int

    @property
    def is_one_word(self) -> bool:
        """Whether key and position share a word."""
        return self.key_bits + self.low_bits <= 64

    @property
    def word_bits(self) -> tuple[int, ...]:
        """The widths of the words, the more significant first."""
        if not self.is_one_word:
            return (self.key_bits, self.low_bits)
        return (32,) if self.key_bits + self.low_bits <= 32 else (64,)


@dataclass(frozen=True)
class SortStep:
    """Elements whose positions differ in `mask` are compared; `top` is its highest bit."""

    mask: int
    top: int


@dataclass(frozen=True)
class SortPlan:
    """Where the elements of a sort are, how they travel, and the comparisons in order."""

    layout: LinearLayout
    spread: AxisSpread
    element: Attribute
    keys: SortKeys
    steps: tuple[SortStep, ...]

    @property
    def lane_steps(self) -> int:
        """The bits of a position that are in lanes."""
        return sum(bit.step for bit in self.spread.lanes)

    @property
    def warp_steps(self) -> int:
        """The bits of a position that are in warps."""
        return sum(bit.step for bit in self.spread.warps)

    @property
    def num_registers(self) -> int:
        """The elements that a thread has, without copies."""
        return sum(map(len, self.spread.groups))

    @property
    def is_in_memory(self) -> bool:
        """Whether the comparisons are a loop over shared memory, since too many to write out."""
        words = sum(self.keys.word_bits) // 32
        return words * self.num_registers * len(self.steps) > _MAX_WRITTEN_OUT

    @property
    def scratch_bytes(self) -> int:
        """The bytes of shared memory for all elements; 0 where they stay in their warp."""
        if self.is_in_memory:
            return sum(
                tile_places(self.layout.shape, bits // 8).size_bytes for bits in self.keys.word_bits
            )
        if not self.spread.warps:
            return 0
        threads = self.layout.num_lanes * self.layout.num_warps
        return sum(self.keys.word_bits) // 8 * threads * self.num_registers


def plan_sort(op: SortOp) -> SortPlan:
    """The plan of a sort of a laid-out tile."""
    layout = layout_of(op.src.type)
    axis = layout.rank - 1
    extent = layout.shape[axis]
    if not is_power_of_two(extent):
        raise UnsupportedError(f"a sort of {extent} elements; a power of two is needed")
    element = element_of(op.src.type)
    has_positions = any(True for _ in op.indices.uses)
    keys = _keys(8 * storage_bytes(element), extent, has_positions)
    steps: list[SortStep] = []
    for top in range(extent.bit_length() - 1):
        steps.append(SortStep((2 << top) - 1, 1 << top))
        steps += [SortStep(1 << bit, 1 << bit) for bit in reversed(range(top))]
    return SortPlan(layout, spread_along(layout, axis), element, keys, tuple(steps))


def _keys(bits: int, extent: int, has_positions: bool) -> SortKeys:
    if not has_positions:
        return SortKeys(bits, 0)
    return SortKeys(bits, _INDEX_BITS if bits <= 16 and extent <= _MAX_PACKED else 32)


@ANCHORS.register(SortOp)
def _sort_layouts(near: Neighbours, op: SortOp) -> Anchored:
    layout = along_axis(near, op.operands, len(shape_of(op.src.type)) - 1)
    return Anchored((layout,), (layout, layout))


@SCRATCH.register(SortOp)
def _sort_scratch(op: SortOp) -> int:
    return plan_sort(op).scratch_bytes if has_layout(op.src.type) else 0
