"""How a tile is sorted: a bitonic network over the bits of a position, wherever each bit is.

Merging always begins with a comparison of mirrored positions, so that every later comparison
leaves the lesser element at the lesser position; no direction has to be known.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from xdsl.ir import Attribute

from tilewright.ir.annotations import decided
from tilewright.ir.encoding import layout_of
from tilewright.ir.plans import ExchangeAttr, ExchangePlan
from tilewright.ir.types import element_of, shape_of, storage_bytes
from tilewright.layout.axis import AxisSpread, spread_along
from tilewright.layout.linear import LinearLayout
from tilewright.ops.indexing.ir import SortOp
from tilewright.schedule.exchanges import CHECKS, CHOICES, too_few_bytes
from tilewright.schedule.layout.anchors import ANCHORS, Anchored, Neighbours, along_axis
from tilewright.schedule.rearrangements import tile_places
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import UnsupportedError
from tilewright.support.powers_of_two import is_power_of_two

# By definition: half of the 32-bit word in which a short key travels.
_INDEX_BITS = 16
# Comparisons of one thread, of 32-bit words; written out, each takes about 5 lines of PTX.
# Chosen, not measured: beyond it the loop over shared memory is taken, which sorts the same.
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
    is_in_memory: bool

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
    def written_out(self) -> int:
        """The comparisons of 32-bit words that one thread makes, if none is in a loop."""
        words = sum(self.keys.word_bits) // 32
        return words * self.num_registers * len(self.steps)

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


UNROLLED, LOOP = "unrolled", "loop"
"""Comparisons that are written out, and a loop of them over shared memory."""


def plan_sort(op: SortOp) -> SortPlan:
    """Where the elements of a planned sort are, and its comparisons."""
    plan = decided(op, ExchangeAttr)
    return _made(op, plan.method, plan.position_bits)


def _made(op: SortOp, method: str, position_bits: int) -> SortPlan:
    layout = layout_of(op.src.type)
    axis = layout.rank - 1
    extent = layout.shape[axis]
    if not is_power_of_two(extent):
        raise UnsupportedError(f"a sort of {extent} elements; a power of two is needed")
    element = element_of(op.src.type)
    keys = SortKeys(8 * storage_bytes(element), position_bits)
    steps: list[SortStep] = []
    for top in range(extent.bit_length() - 1):
        steps.append(SortStep((2 << top) - 1, 1 << top))
        steps += [SortStep(1 << bit, 1 << bit) for bit in reversed(range(top))]
    return SortPlan(layout, spread_along(layout, axis), element, keys, tuple(steps), method == LOOP)


@CHOICES.register(SortOp)
def _choices(op: SortOp) -> Iterator[ExchangePlan]:
    bits = _position_bits(op)
    is_long = _made(op, UNROLLED, bits[0]).written_out > _MAX_WRITTEN_OUT
    methods = (LOOP, UNROLLED) if is_long else (UNROLLED, LOOP)
    for positions in bits:
        for method in methods:
            size = _made(op, method, positions).scratch_bytes
            yield ExchangePlan(method, size, position_bits=positions)


def _position_bits(op: SortOp) -> tuple[int, ...]:
    """The widths in which a position can travel with its element: 0 where nobody asks for it."""
    if not _has_positions(op):
        return (0,)
    bits, extent = 8 * storage_bytes(op.src.type), shape_of(op.src.type)[-1]
    return (_INDEX_BITS, 32) if bits <= 16 and extent <= _MAX_PACKED else (32,)


def _has_positions(op: SortOp) -> bool:
    return any(True for _ in op.indices.uses)


@CHECKS.register(SortOp)
def _check(op: SortOp, plan: ExchangePlan) -> str:
    """A word tells all positions apart, and shared memory holds all elements that go there."""
    if plan.method not in (UNROLLED, LOOP):
        return f"there is no `{plan.method}`, but {UNROLLED} and {LOOP}"
    shape = shape_of(op.src.type)
    if _has_positions(op) and plan.position_bits not in (16, 32):
        return f"the indices are asked for, and travel in 16 or 32 bits, not {plan.position_bits}"
    # One of the bits is the sign of a zero.
    if _has_positions(op) and shape[-1] > 1 << (plan.position_bits - 1):
        return f"{plan.position_bits} bits do not tell {shape[-1]} positions apart"
    spread = spread_along(layout_of(op.src.type), len(shape) - 1)
    if plan.method == UNROLLED and not spread.warps:
        return ""
    bits = 8 * storage_bytes(op.src.type) + plan.position_bits
    return too_few_bytes(plan, prod(shape) * (bits // 8))


@ANCHORS.register(SortOp)
def _sort_layouts(near: Neighbours, op: SortOp) -> Anchored:
    layout = along_axis(near, op.operands, len(shape_of(op.src.type)) - 1)
    return Anchored((layout,), (layout, layout))
