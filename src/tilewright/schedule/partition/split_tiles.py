"""Cuts the tiles of a role for replicas that share its body (T0r to T0r).

    math: %a, %b = get %ab; %d = dot %a, %b, %acc : 128x256
    ⇒ math x2 (%r): %a, %b = get %ab; %d = dot (slice %a, %r), %b, %acc : 64x256

Replica r computes part r of what the role computed; `cuts.py` says which tiles are cut. What a
channel brings is whole for all replicas, and each takes its slice. Stores write their part; what
is written whole, or is no tile, the first replica writes. Where a product takes all of a tile
that is cut, replicas show each other their parts (`gathered_tiles.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from xdsl.dialects.builtin import DenseArrayBase, DenseIntOrFPElementsAttr, IntegerAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from tilewright.ir.attributes import integers_of
from tilewright.ir.op import build
from tilewright.ir.regions import ControlFlowOp, is_control_flow
from tilewright.ir.types import element_of, i1, i32, i64, shape_of, tile_of
from tilewright.ops.channels import MeetOp, SliceOp
from tilewright.ops.control_flow import IfOp, YieldOp
from tilewright.ops.creation.ir import ConstantOp, MakeRangeOp, SplatOp
from tilewright.ops.debug.ir import HintOp, is_assumption
from tilewright.ops.descriptors.ir import DescriptorReduceOp, DescriptorStoreOp
from tilewright.ops.elementwise.comparisons import CmpIOp
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.schedule.partition.conditions import writes_block
from tilewright.schedule.partition.cuts import SOURCES, Cuts, is_root, maker_of
from tilewright.schedule.partition.gathered_tiles import GatheredTiles
from tilewright.schedule.partition.refusal import Refused
from tilewright.schedule.partition.transfer import WHOLE, Dim

Smaller = tuple[SSAValue, Mapping[str, Attribute]]
"""A descriptor of smaller blocks of a tensor, and what an access by it has as attributes."""
Shrink = Callable[[SSAValue, Attribute], "Smaller | None"]
"""Finds one for blocks like a tile; None where there is none."""
# By definition: the number of `eq` among INTEGER_PREDICATES.
_EQUAL = 0


def split_tiles(
    body: Block, parts: int, split: str, shrink: Shrink
) -> tuple[Block, Sequence[Operation]]:
    """The body of a role for `parts` replicas, which share tiles by rows (`m`) or columns (`n`).

    With it come the channels between replicas. The body given stays as it is. *Raises*: Refused.
    """
    split_ = _Split(Cuts(body, parts, split), parts, shrink)
    return split_.run(body), split_.gathered.channels


class _Split:
    """Copies a body, each op in the versions that are needed of it."""

    def __init__(self, cuts: Cuts, parts: int, shrink: Shrink) -> None:
        self._cuts = cuts
        self._parts = parts
        self._shrink = shrink
        self.gathered = GatheredTiles()
        self._ungathered: dict[SSAValue, SSAValue] = {}
        self._made: dict[tuple[SSAValue, Dim], SSAValue] = {}
        self._block = Block()
        self._replica: SSAValue = Block(arg_types=[i32]).args[0]

    def run(self, body: Block) -> Block:
        """The copy."""
        new = Block(arg_types=[i32])
        self._replica = new.args[0]
        self._made[body.args[0], WHOLE] = self._replica
        self._copy_block(body, new)
        new.add_op(build(YieldOp, location=_end(body).location))
        return new

    def _part(self, type_: Attribute, dim: Dim) -> Attribute:
        """The type of a part of a tile."""
        if dim is None:
            return type_
        shape = list(shape_of(type_))
        shape[dim] //= self._parts
        return tile_of(element_of(type_), tuple(shape))

    def _get(self, value: SSAValue, dim: Dim) -> SSAValue:
        """A version of a value."""
        if dim is not None and shape_of(value.type)[dim] == 1:
            dim = WHOLE
        if value in self._ungathered and (value, dim) not in self._made:
            self._gather(value)
        return self._made.get((value, dim), value)

    def _emit(
        self,
        like: Operation,
        cls: type[Operation],
        operands: list[SSAValue],
        types: list[Attribute],
        properties: dict[str, Attribute] | None = None,
    ) -> Operation:
        """Add an op at the place of another one."""
        op = build(cls, operands, types, properties, location=like.location)
        self._block.add_op(op)
        return op

    def _copy_block(self, old: Block, new: Block) -> None:
        outer, self._block = self._block, new
        for op in old.ops:
            if op.has_trait(IsTerminator):
                break
            if is_control_flow(op):
                assert isinstance(op, ControlFlowOp)
                self._copy_control(op)
            elif is_root(op):
                self._copy_root(op)
            elif isinstance(op, MeetOp):
                new.add_op(self._clone(op, [], WHOLE))
            else:
                self._copy_versions(op)
        self._block = outer

    # --- loops and branches ---

    def _copy_control(self, op: ControlFlowOp) -> None:
        for value in tuple(self._ungathered):
            self._gather(value)  # in front of it, as what stands behind it may take the tile too
        results = [result for result in op.results if result in self._cuts.versions]
        operands = self._given(op, op)
        regions = [self._copy_region(op, r) if r.blocks else Region() for r in op.regions]
        types = [self._part(result.type, self._cuts.version(result)) for result in results]
        new = build(type(op), operands, types, dict(op.properties), regions, op.location)
        new.attributes = dict(op.attributes)
        self._block.add_op(new)
        for old, made in zip(results, new.results, strict=True):
            self._remember(old, self._cuts.version(old), made)

    def _copy_region(self, op: ControlFlowOp, region: Region) -> Region:
        received = {receiver for edge in op.edges() for receiver in edge.receivers}
        versions = self._cuts.versions
        arguments = [a for a in region.block.args if a in versions or a not in received]
        dims = [self._cuts.version(argument) for argument in arguments]
        types = [self._part(a.type, dim) for a, dim in zip(arguments, dims, strict=True)]
        block = Block(arg_types=types)
        for old, dim, made in zip(arguments, dims, block.args, strict=True):
            self._remember(old, dim, made)
        self._copy_block(region.block, block)
        end = _end(region.block)
        given = self._given(op, end)
        block.add_op(build(type(end), given, (), dict(end.properties), (), end.location))
        return Region(block)

    def _given(self, op: ControlFlowOp, giver: Operation) -> list[SSAValue]:
        own = [edge for edge in op.edges() if edge.giver is giver]
        first = min((edge.first for edge in own), default=len(giver.operands))
        kept = [self._get(value, WHOLE) for value in giver.operands[:first]]
        for index, value in enumerate(giver.operands[first:]):
            receivers = [edge.receivers[index] for edge in own if edge.receivers]
            needed = [r for r in receivers if r in self._cuts.versions]
            if needed:
                kept.append(self._get(value, self._cuts.version(needed[0])))
        return kept

    # --- ops that are there for what they do ---

    def _copy_root(self, op: Operation) -> None:
        dim = self._cuts.cut_of(op)
        if is_assumption(op):
            self._block.add_op(self._clone(op, [self._get(v, WHOLE) for v in op.operands], WHOLE))
        elif dim is None:
            self._copy_for_first(op)
        elif writes_block(op):
            self._store_part(op, dim)
        else:
            operands = [self._get(value, dim) for value in op.operands]
            self._block.add_op(self._clone(op, operands, WHOLE))

    def _copy_for_first(self, op: Operation) -> None:
        """Let the first replica do what all would do alike."""
        if op.results:
            raise Refused(op, f"{op.name} gives a result, and is not done by parts")
        zero = self._constant(op, 0)
        equal: dict[str, Attribute] = {"predicate": IntegerAttr(_EQUAL, i64)}
        first = self._emit(op, CmpIOp, [self._replica, zero], [i1], equal)
        inner = Block()
        inner.add_op(self._clone(op, [self._get(v, WHOLE) for v in op.operands], WHOLE))
        inner.add_op(build(YieldOp, location=op.location))
        branch = build(IfOp, first.results, (), None, [Region(inner), Region()], op.location)
        self._block.add_op(branch)

    def _store_part(self, op: Operation, dim: int) -> None:
        assert isinstance(op, DescriptorStoreOp | DescriptorReduceOp)
        src = self._get(op.src, dim)
        smaller = self._shrink(self._get(op.desc, WHOLE), src.type)
        if smaller is None:
            raise Refused(op, "the descriptor of a store has no smaller blocks")
        desc, attributes = smaller
        indices = [self._get(index, WHOLE) for index in op.indices]
        shape = shape_of(src.type)
        first = self._first_of(op, shape[dim])
        place = len(indices) - len(shape) + dim  # a block may have single dims in front
        moved = self._emit(op, ELEMENTWISE["arith.addi"], [indices[place], first], [i32])
        indices[place] = moved.results[0]
        new = self._emit(op, type(op), [desc, src, *indices], [], dict(op.properties))
        new.attributes = {**op.attributes, **attributes}

    # --- ops whose results are needed ---

    def _copy_versions(self, op: Operation) -> None:
        needed = {dim for r in op.results for dim in self._cuts.versions.get(r, ())}
        if WHOLE in needed:
            self._copy_version(op, WHOLE)
        for dim in sorted(dim for dim in needed if dim is not None):
            self._copy_version(op, dim)

    def _copy_version(self, op: Operation, dim: Dim) -> None:
        if dim is None or not isinstance(op, SOURCES):
            dims = self._cuts.operand_dims(op, dim)
            operands = [self._get(v, d) for v, d in zip(op.operands, dims, strict=True)]
            new = self._clone(op, operands, dim)
            self._block.add_op(new)
            for old, made in zip(op.results, new.results, strict=True):
                self._remember(old, dim, made)
            return
        for result in op.results:
            if dim in self._cuts.versions.get(result, ()):
                self._remember(result, dim, self._part_of_source(op, result, dim))

    def _part_of_source(self, op: Operation, result: SSAValue, dim: int) -> SSAValue:
        type_ = self._part(result.type, dim)
        make = _PARTS.get(type(op))
        if make is not None:
            return make(self, op, type_)
        return self._slice(op, self._get(result, WHOLE), dim)

    def _slice(self, like: Operation, whole: SSAValue, dim: int) -> SSAValue:
        """The replica's part of a tile that is there as a whole."""
        properties: dict[str, Attribute] = {"dim": IntegerAttr(dim, i32)}
        operands = [whole, self._replica]
        return self._emit(
            like, SliceOp, operands, [self._part(whole.type, dim)], properties
        ).results[0]

    def part_of_constant(self, op: Operation, type_: Attribute) -> SSAValue:
        """A part of a tile of one number."""
        assert isinstance(op, ConstantOp) and isinstance(type_, TensorType)
        dense = DenseIntOrFPElementsAttr.from_list(type_, [op.splat_value()])
        return self._emit(op, ConstantOp, [], [type_], {"value": dense}).results[0]

    def part_of_range(self, op: Operation, type_: Attribute) -> SSAValue:
        """A part of a range: the first part, moved."""
        assert isinstance(op, MakeRangeOp)
        (size,) = shape_of(type_)
        start = op.start.value.data
        bounds: dict[str, Attribute] = {
            "start": IntegerAttr(start, i32),
            "end": IntegerAttr(start + size, i32),
        }
        steps = self._emit(op, MakeRangeOp, [], [type_], bounds).results[0]
        first = self._emit(op, SplatOp, [self._first_of(op, size)], [type_]).results[0]
        return self._emit(op, ELEMENTWISE["arith.addi"], [first, steps], [type_]).results[0]

    def _first_of(self, op: Operation, size: int) -> SSAValue:
        """The first index of the replica's part, in parts of `size`."""
        operands = [self._replica, self._constant(op, size)]
        return self._emit(op, ELEMENTWISE["arith.muli"], operands, [i32]).results[0]

    def _constant(self, op: Operation, value: int) -> SSAValue:
        properties: dict[str, Attribute] = {"value": IntegerAttr(value, i32)}
        return self._emit(op, ConstantOp, [], [i32], properties).results[0]

    def _clone(self, op: Operation, operands: list[SSAValue], dim: Dim) -> Operation:
        """An op with other operands, its results cut along a dim."""
        types = [self._part(result.type, dim) for result in op.results]
        regions = [region.clone() for region in op.regions]
        new = build(type(op), operands, types, dict(op.properties), regions, op.location)
        new.attributes = dict(op.attributes)
        if type(op) in _WEAKENED and dim is not None:
            _weaken(new, dim)
        return new

    def _remember(self, old: SSAValue, dim: Dim, made: SSAValue) -> None:
        self._made[old, dim] = made
        made.name_hint = old.name_hint
        if dim == self._cuts.dims.get(old) and old in self._cuts.gathered:
            self._ungathered[old] = made

    def _gather(self, value: SSAValue) -> None:
        """Let replicas show each other their parts of a tile, here."""
        part, dim, like = self._ungathered.pop(value), self._cuts.dims[value], maker_of(value)
        whole = self.gathered.gather(self._block, like, part, self._replica, value.type, dim)
        self._made[value, WHOLE] = whole
        for other in self._cuts.parts_of_gathered[value]:
            self._made[value, other] = self._slice(like, whole, other)


# Tiles out of nothing: a part of them needs no whole one.
_PARTS: Mapping[type[Operation], Callable[[_Split, Operation, Attribute], SSAValue]] = (
    MappingProxyType({ConstantOp: _Split.part_of_constant, MakeRangeOp: _Split.part_of_range})
)
_WEAKENED = (HintOp,)


def _weaken(hint: Operation, dim: int) -> None:
    """Take back what a hint promises of where a whole tile begins: a part begins elsewhere."""
    promised = list(integers_of(hint.properties.get("divisibility")))
    if dim < len(promised):
        promised[dim] = 1
        hint.properties["divisibility"] = DenseArrayBase.from_list(i32, promised)


def _end(block: Block) -> Operation:
    end = block.last_op
    assert end is not None
    return end
