"""The ops whose layouts are decided by what they do, and not by their neighbours.

A rule gives the layouts of an op's tile operands and results. Memory accesses take the layout
that coalesces; a matrix product takes its instruction's; a reduction stays where its source is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Protocol

from xdsl.ir import Operation, SSAValue

from tilewright.ir.annotations import decided
from tilewright.ir.plans import AccessAttr
from tilewright.ir.types import element_of, shape_of, width_bits
from tilewright.layout.axis import spread_along
from tilewright.layout.build import coalesced
from tilewright.layout.linear import LinearLayout
from tilewright.ops.atomics.ir import AtomicOp
from tilewright.ops.channels import GetOp, PutOp, PutPartOp, SliceOp
from tilewright.ops.creation.ir import UnsplatOp
from tilewright.ops.debug.ir import AssertOp, PrintOp
from tilewright.ops.descriptors.ir import (
    DescriptorLoadOp,
    DescriptorReduceOp,
    DescriptorStoreOp,
)
from tilewright.ops.indexing.ir import GatherOp
from tilewright.ops.inline.ir import InlineAsmOp
from tilewright.ops.memory.ir import LoadOp, StoreOp
from tilewright.ops.reduction.ir import ReduceOp, ScanOp
from tilewright.ops.roles import role_around
from tilewright.ops.shape.ir import CatOp, FlipOp, SplitOp
from tilewright.schedule.layout.transfer import CACHED, is_tile, reduced
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import UnsupportedLayout
from tilewright.support.rules import RuleTable

# A warp's access to memory runs at full speed from this many adjacent bytes on: two sectors.
# Chosen, not measured: either layout is right, the other one converts first.
_GOOD_RUN_BYTES = 64
# What one instruction of a warp writes of a row at least, so that no sector is written in parts.
_SECTOR_BYTES = 32


@dataclass(frozen=True)
class Anchored:
    """The layouts of an op's operands and results; None for what is no tile."""

    operands: tuple[LinearLayout | None, ...]
    results: tuple[LinearLayout | None, ...]


class Neighbours(Protocol):
    """What a rule may ask while layouts are being decided."""

    def own(self, value: SSAValue) -> LinearLayout | None:
        """The layout a value has already; None where it can be computed in any."""
        ...

    def default(self, shape: tuple[int, ...]) -> LinearLayout:
        """The layout of a tile that nothing else decides."""
        ...

    def accessed(self, op: Operation) -> LinearLayout:
        """The layout that coalesces the access of `op` to the pointers of operand 0."""
        ...

    def streamed(self, shape: tuple[int, ...], element_bytes: int) -> LinearLayout:
        """The layout that reads rows of a shared tile in the widest accesses."""
        ...


AnchorRule = Callable[[Neighbours, Operation], Anchored]
ANCHORS: RuleTable[AnchorRule] = RuleTable("layout anchors")


def own_or_default(near: Neighbours, value: SSAValue) -> LinearLayout:
    """The layout that a value has, or the default one of its shape."""
    return near.own(value) or near.default(shape_of(value.type))


def _same(op: Operation, layout: LinearLayout | None) -> Anchored:
    """One layout for every tile of an op."""
    return Anchored(_of(op.operands, layout), _of(op.results, layout))


def _of(values: Sequence[SSAValue], layout: LinearLayout | None) -> tuple[LinearLayout | None, ...]:
    return tuple(layout if is_tile(value) else None for value in values)


@ANCHORS.register(LoadOp)
def _load(near: Neighbours, op: LoadOp) -> Anchored:
    return _same(op, near.accessed(op) if is_tile(op.ptr) else None)


@ANCHORS.register(StoreOp)
def _store(near: Neighbours, op: StoreOp) -> Anchored:
    if not is_tile(op.value):
        return _same(op, None)
    coalescing, own = near.accessed(op), near.own(op.value)
    if own is None or not _is_good_for(op, own, coalescing):
        return _same(op, coalescing)
    return _same(op, own)


def _is_good_for(op: StoreOp, own: LinearLayout, coalescing: LinearLayout) -> bool:
    """Whether storing from `own` is no worse than moving the elements to `coalescing` first.

    Roles move what would else be written in many more lines only: the memory that it takes to move
    a tile is that of their slots. (128 x 128 of float32 leave rings of 32 KiB 3 slots for 7.)

    *Source*: H100, 2026-11-28, tiles of products that are stored in 16 bits, 16 bytes of a row at
    once or moved first: 17.5 and 15.3 us (attention), 54 and 45 (32 products of 544 cubed). Of 106
    kernels three were slower by 4 to 9 % (decision 22).
    """
    plan = decided(op, AccessAttr)
    if own == coalescing or own.rank == 1 or plan.is_scattered:
        return True
    dim, size = plan.order[0], max(1, width_bits(op.value.type) // 8)
    at_once = run_of_instruction(own, dim, registers_in_a_row(coalescing, dim)) * size
    is_whole = at_once >= _SECTOR_BYTES or role_around(op) is not None
    return is_whole and run_of_warp(own, dim) * size >= _GOOD_RUN_BYTES


@ANCHORS.register(DescriptorLoadOp)
def _block(near: Neighbours, op: DescriptorLoadOp) -> Anchored:
    layout = near.streamed(shape_of(op.result.type), bytes_of(op.result))
    return Anchored((None,) * len(op.operands), (layout,))


@ANCHORS.register(PutOp, PutPartOp)
def _put(near: Neighbours, op: PutOp | PutPartOp) -> Anchored:
    """What a role puts stays where it is: the channel carries no layout."""
    layouts = (own_or_default(near, value) if is_tile(value) else None for value in op.operands)
    return Anchored(tuple(layouts), ())


@ANCHORS.register(GetOp)
def _get(near: Neighbours, op: GetOp) -> Anchored:
    """What a role gets is read from shared memory, as a block that was loaded."""
    return Anchored((None,), tuple(_streamed(near, value) for value in op.values))


@ANCHORS.register(SliceOp)
def _slice(near: Neighbours, op: SliceOp) -> Anchored:
    """A part of a block is read from shared memory by itself."""
    return Anchored((own_or_default(near, op.src), None), (_streamed(near, op.result),))


def _streamed(near: Neighbours, value: SSAValue) -> LinearLayout | None:
    return near.streamed(shape_of(value.type), bytes_of(value)) if is_tile(value) else None


@ANCHORS.register(DescriptorStoreOp, DescriptorReduceOp)
def _stored_block(near: Neighbours, op: Operation) -> Anchored:
    """A block is written to shared memory from where it is."""
    return Anchored(_of(op.operands, own_or_default(near, op.operands[1])), ())


def fastest_dim(layout: LinearLayout) -> int:
    """The dim along which neighbours are nearest: in registers in a row, else in lanes."""
    first = [basis for basis in layout.basis_images("register") if any(basis)][:1]
    for basis in (*first, *layout.basis_images("lane")):
        if sum(basis) == 1:
            return basis.index(1)
    for in_dim in ("register", "lane", "warp"):
        for basis in layout.basis_images(in_dim):
            if any(basis):
                return next(dim for dim, step in enumerate(basis) if step)
    return layout.rank - 1


def run_of_warp(layout: LinearLayout, dim: int) -> int:
    """Adjacent elements along `dim` that the lanes of a warp hold, each in few registers."""
    return _continued(layout, dim, ("register", "lane"), 1)


def run_of_instruction(layout: LinearLayout, dim: int, vector: int) -> int:
    """Adjacent elements along `dim` that one access of a warp touches, `vector` a lane at most."""
    return _continued(layout, dim, ("lane",), min(vector, registers_in_a_row(layout, dim)))


def _continued(layout: LinearLayout, dim: int, in_dims: Sequence[str], run: int) -> int:
    """How far a run of adjacent elements along `dim` goes on in the input dims."""
    steps = {
        basis[dim]
        for in_dim in in_dims
        for basis in layout.basis_images(in_dim)
        if basis[dim] and sum(map(bool, basis)) == 1
    }
    while run in steps:
        run *= 2
    return run


def registers_in_a_row(layout: LinearLayout, dim: int) -> int:
    """How many registers, from the first on, step by one along `dim`."""
    run = 1
    for basis in layout.basis_images("register"):
        if basis[dim] != run or sum(map(bool, basis)) != 1:
            break
        run *= 2
    return run


@ANCHORS.register(ReduceOp)
def _reduce(near: Neighbours, op: ReduceOp) -> Anchored:
    layout = along_axis(near, op.srcs, op.axis.value.data)
    result = reduced(layout, op.axis.value.data)
    return Anchored((layout,) * len(op.srcs), _of(op.results, result))


@ANCHORS.register(ScanOp)
def _scan(near: Neighbours, op: ScanOp) -> Anchored:
    return _same(op, along_axis(near, op.srcs, op.axis.value.data))


def along_axis(near: Neighbours, values: Sequence[SSAValue], axis: int) -> LinearLayout:
    """A layout to walk along an axis in: that of a value, if each bit moves along one dim."""
    layout = _first_own(near, values)
    try:
        spread_along(layout, axis)
    except UnsupportedLayout:
        return near.default(layout.shape)
    return layout


def _first_own(near: Neighbours, values: Sequence[SSAValue]) -> LinearLayout:
    for value in values:
        own = near.own(value)
        if own is not None:
            return own
    return near.default(shape_of(values[0].type))


@ANCHORS.register(GatherOp)
def _gather(near: Neighbours, op: GatherOp) -> Anchored:
    indices = own_or_default(near, op.indices)
    return Anchored((own_or_default(near, op.src), indices), (indices,))


@ANCHORS.register(UnsplatOp)
def _unsplat(near: Neighbours, op: UnsplatOp) -> Anchored:
    return Anchored((own_or_default(near, op.src),), (None,))


@ANCHORS.register(InlineAsmOp)
def _assembly(near: Neighbours, op: InlineAsmOp) -> Anchored:
    values = (*op.operands, *op.results)
    return _same(op, _first_own(near, values) if is_tile(values[0]) else None)


@ANCHORS.register(FlipOp)
def _flip(near: Neighbours, op: FlipOp) -> Anchored:
    return _same(op, own_or_default(near, op.src))


@ANCHORS.register(CatOp)
def _cat(near: Neighbours, op: CatOp) -> Anchored:
    """The two halves are more registers of the same threads."""
    half = _first_own(near, op.operands)
    try:
        result = half.repeat(2)
    except UnsupportedLayout:
        half = near.default(half.shape)
        result = half.repeat(2)
    return Anchored((half, half), (result,))


@ANCHORS.register(SplitOp)
def _split(near: Neighbours, op: SplitOp) -> Anchored:
    own = near.own(op.src)
    if own is not None:
        try:
            half = own.split()
            return Anchored((own,), _of(op.results, half if half.rank else None))
        except UnsupportedLayout:
            pass
    half_shape = shape_of(op.src.type)[:-1]
    half = near.default(half_shape)
    return Anchored((half.join(),), _of(op.results, half if half_shape else None))


@ANCHORS.register(*AtomicOp.__subclasses__())
def _atomic(near: Neighbours, op: Operation) -> Anchored:
    return _same(op, near.accessed(op) if is_tile(op.operands[0]) else None)


def _shown(near: Neighbours, op: Operation) -> tuple[LinearLayout | None, ...]:
    return tuple(own_or_default(near, v) if is_tile(v) else None for v in op.operands)


@ANCHORS.register(PrintOp)
def _print(near: Neighbours, op: Operation) -> Anchored:
    return Anchored(_shown(near, op), ())


@ANCHORS.register(AssertOp)
def _assert(near: Neighbours, op: Operation) -> Anchored:
    return _same(op, _shown(near, op)[0])


@lru_cache(maxsize=CACHED)
def default_layout(shape: tuple[int, ...], num_warps: int, lanes: int) -> LinearLayout:
    """The layout of a tile that nothing decides: rows across lanes, up to four in a row each."""
    order = tuple(reversed(range(len(shape))))
    per_thread = max(1, min(4, prod(shape) // (lanes * num_warps)))
    return coalesced(shape, order, 1 << (per_thread.bit_length() - 1), num_warps, lanes)


def bytes_of(value: SSAValue) -> int:
    """The bytes of one element of a value."""
    return max(1, width_bits(element_of(value.type)) // 8)
