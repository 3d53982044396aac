"""Puts the slot of a ring in the place of what a role gets: one wait, views of it, one release."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, i32
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilewright.ir.attributes import integer_array
from tilewright.ir.edits import erase, insert_before, replace_by
from tilewright.ir.encoding import SharedType, layout_of, shared_part, shared_tile
from tilewright.ir.op import build
from tilewright.ir.regions import ancestor_in
from tilewright.ir.types import shape_of
from tilewright.ops.channels import GetOp, SliceOp
from tilewright.ops.rings import RingOp, RingReleaseOp, RingWaitOp, slot_types
from tilewright.ops.roles import TurnPassOp, TurnWaitOp
from tilewright.ops.shape.ir import BroadcastOp, ExpandDimsOp, PermutingOp
from tilewright.ops.staging import (
    ConvertLayoutOp,
    LaidOutDotOp,
    LocalAllocOp,
    LocalLoadOp,
    MemdescSliceOp,
    MemdescTransOp,
)
from tilewright.targets.nvidia.ops import FenceAsyncSharedOp
from tilewright.targets.nvidia.partition.landed import part_landed


class Reading:
    """Puts the slot of a ring in the place of what a role gets."""

    def __init__(
        self, get: GetOp, ring: RingOp, takes_turns: bool, *, is_written_by_threads: bool = False
    ) -> None:
        self._takes_turns = takes_turns
        self._is_written_by_threads = is_written_by_threads
        self._get = get
        self._ring = ring
        assert get.parent is not None
        self._block: Block = get.parent
        self._read: dict[tuple[SSAValue, Attribute], SSAValue] = {}

    def run(self) -> None:
        """Rewrite what reads, and put the wait in front of it and the release behind."""
        get = self._get
        wait = build(RingWaitOp, [self._ring.result], slot_types(self._ring), location=get.location)
        self._block.insert_op_after(wait, get)
        for value, tile in zip(get.values, wait.results, strict=True):
            assert isinstance(tile.type, SharedType)
            self._replace(value, tile, tile.type)
        erase(get)
        wait.detach()
        self._block.insert_op_before(wait, self._first(wait))
        if self._is_written_by_threads:
            # Products read by a proxy of their own: all that was waited for is shown to it first.
            self._block.insert_op_after(build(FenceAsyncSharedOp, location=wait.location), wait)
        if self._takes_turns:
            self._take_turn(wait)
        self._release(wait)

    def _take_turn(self, wait: Operation) -> None:
        """Let replicas take turns for the first product that reads the slot.

        The product is done when its op is: who comes next multiplies while this one goes on.
        """
        products = [op for op in self._users(wait) if isinstance(op, LaidOutDotOp)]
        if not products:
            return
        turns: dict[str, Attribute] = {"turns": self._ring.ring_name}
        first = products[0]
        insert_before(first, build(TurnWaitOp, (), (), dict(turns), location=first.location))
        passing = build(TurnPassOp, (), (), dict(turns), location=first.location)
        self._block.insert_op_after(passing, first)

    def _replace(self, value: SSAValue, tile: SSAValue, landed: SharedType) -> None:
        """Let uses of a register tile take a shared one; `landed` is how its elements lie."""
        uses = tuple(value.uses)
        first = self._first_of({self._beside(use.operation) for use in uses})
        for use in uses:
            user = use.operation
            if isinstance(user, SliceOp):
                self._slice(user, tile)
            elif isinstance(user, LocalAllocOp) and user.result.type == landed:
                _take(user, tile)
            elif isinstance(user, ConvertLayoutOp):
                loaded = self._loaded(first, tile, user.result.type)
                replace_by(user, loaded)
                _read_late(loaded)
            elif isinstance(user, PermutingOp) and self._transpose(user, tile, landed):
                continue
            else:
                operands = list(user.operands)
                operands[use.index] = self._loaded(first, tile, value.type)
                user.operands = operands

    def _slice(self, op: SliceOp, tile: SSAValue) -> None:
        """See the part of a slot that a replica takes."""
        whole = tile.type
        assert isinstance(whole, SharedType)
        extents = shape_of(op.result.type)
        properties: dict[str, Attribute] = {"dim": op.dim}
        view = build(
            MemdescSliceOp,
            [tile, op.part],
            [shared_part(whole, extents)],
            properties,
            location=op.location,
        )
        insert_before(op, view)
        self._replace(op.result, view.results[0], part_landed(whole, extents))
        erase(op)

    def _transpose(self, op: PermutingOp, tile: SSAValue, landed: SharedType) -> bool:
        """See the slot transposed, where all that reads it so takes it from shared memory."""
        order = op.permutation()
        seen = shared_tile(landed.element, layout_of(landed).permute(order))
        users = [use.operation for use in op.result.uses]
        if not all(isinstance(u, LocalAllocOp) and u.result.type == seen for u in users):
            return False
        view = _transposed(op, tile, order)
        for user in users:
            replace_by(user, view)
        erase(op)
        return True

    def _loaded(self, first: Operation, tile: SSAValue, type_: Attribute) -> SSAValue:
        """The tile as a register tile of a type, read once, in front of `first`."""
        key = tile, type_
        if key not in self._read:
            load = build(LocalLoadOp, [tile], [type_], location=first.location)
            insert_before(first, load)
            self._read[key] = load.results[0]
        return self._read[key]

    def _users(self, wait: Operation) -> list[Operation]:
        """The ops of the block that read the slot, or have what reads it inside, in order."""
        found: set[Operation] = set()
        pending = list(wait.results)
        while pending:
            for use in pending.pop().uses:
                op = use.operation
                if isinstance(op, MemdescSliceOp | MemdescTransOp):
                    pending.append(op.results[0])
                found.add(self._beside(op))
        return [op for op in self._block.ops if op in found]

    def _first_of(self, ops: set[Operation]) -> Operation:
        """The op that stands first in the block; its end, where there is none."""
        end = self._block.last_op
        assert end is not None
        return next((op for op in self._block.ops if op in ops), end)

    def _beside(self, op: Operation) -> Operation:
        return ancestor_in(self._block, op)

    def _first(self, wait: Operation) -> Operation:
        """The op in front of which the wait stands."""
        return self._first_of(set(self._users(wait)))

    def _release(self, wait: Operation) -> None:
        """Give the slot back behind the last op that reads it."""
        sizes: dict[str, Attribute] = {"operandSegmentSizes": integer_array((1, 0, 0))}
        last = self._users(wait)
        release = build(RingReleaseOp, [self._ring.result], (), sizes, location=wait.location)
        self._block.insert_op_after(release, last[-1] if last else wait)


def _read_late(loaded: SSAValue) -> None:
    """Move a read, and views of what it gives, in front of the one op that takes it.

    *Why*: its registers are free until then, and a wait for a product may stand in between.
    """
    chain: list[Operation] = []
    value = loaded
    while value.has_one_use():
        assert isinstance(value.owner, Operation)
        chain.append(value.owner)
        (use,) = value.uses
        user = use.operation
        if user.parent is not value.owner.parent:
            return
        if not isinstance(user, ExpandDimsOp | BroadcastOp):
            for op in chain:
                op.detach()
                insert_before(user, op)
            return
        value = user.results[0]


def _transposed(before: Operation, tile: SSAValue, order: tuple[int, ...]) -> SSAValue:
    """A view of a shared tile with its dimensions permuted; of a part, the part of such a view."""
    type_, maker = tile.type, tile.owner
    assert isinstance(type_, SharedType)
    if type_.is_part():
        assert isinstance(maker, MemdescSliceOp)
        whole = _transposed(before, maker.src, order)
        assert isinstance(whole.type, SharedType)
        extents = tuple(type_.extents()[dim] for dim in order)
        part = shared_part(whole.type, extents)
        properties: dict[str, Attribute] = {
            "dim": IntegerAttr(order.index(maker.dim.value.data), i32)
        }
        operands = [whole, maker.part]
        view = build(MemdescSliceOp, operands, [part], properties, location=before.location)
    else:
        seen = shared_tile(type_.element, layout_of(type_).permute(order))
        properties = {"order": DenseArrayBase.from_list(i32, order)}
        view = build(MemdescTransOp, [tile], [seen], properties, location=before.location)
    insert_before(before, view)
    return view.results[0]


def _take(alloc: LocalAllocOp, tile: SSAValue) -> None:
    """Let who reads a tile of its own read a slot, or a part of one, transposed or not."""
    assert isinstance(tile.type, SharedType)
    for use in tuple(alloc.result.uses):
        seen = use.operation
        if tile.type.is_part() and isinstance(seen, MemdescTransOp):
            replace_by(seen, _transposed(seen, tile, seen.permutation()))
    replace_by(alloc, tile)
