"""Replaces structured values (block pointers, descriptors) by their scalars, everywhere.

A structure is a base pointer, extents, strides and, for a block pointer, offsets. The walk
keeps a map from each structured SSA value to its scalars, rebuilds the loops and branches that
carry structures so that they carry the scalars, and calls a rule for every op that makes or
uses a structure. What a loop carries unchanged, `forward_invariants.py` takes out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from tilewright.ir.edits import erase
from tilewright.ir.locations import span_of
from tilewright.ir.regions import OUTSIDE, ControlFlowOp, Edge, blocks_of, rebuilt
from tilewright.ir.types import (
    DescriptorType,
    PointerType,
    element_of,
    i32,
    i64,
    pointer_to,
    shape_of,
)
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import MalformedText


@dataclass(frozen=True)
class Structure:
    """The scalars of a block pointer or descriptor; `padding` as in PADDINGS."""

    base: SSAValue
    shape: tuple[SSAValue, ...]
    strides: tuple[SSAValue, ...]
    offsets: tuple[SSAValue, ...]
    block: Attribute
    padding: int = 0

    def scalars(self) -> tuple[SSAValue, ...]:
        """All scalars in the order in which they are carried."""
        return (self.base, *self.shape, *self.strides, *self.offsets)

    def with_scalars(self, scalars: Sequence[SSAValue]) -> Structure:
        """The same kind of structure over other scalars."""
        rank = len(self.shape)
        parts = tuple(scalars)
        return Structure(
            parts[0],
            parts[1 : 1 + rank],
            parts[1 + rank : 1 + 2 * rank],
            parts[1 + 2 * rank :],
            self.block,
            self.padding,
        )


def block_type(type_: Attribute) -> Attribute | None:
    """The tile type behind a block pointer or descriptor type; None for other types."""
    if isinstance(type_, DescriptorType):
        return type_.block
    if isinstance(type_, PointerType) and shape_of(type_.pointee):
        return type_.pointee
    return None


def carried_types(type_: Attribute) -> list[Attribute]:
    """The types of a structure's scalars."""
    block = block_type(type_)
    assert block is not None
    rank = len(shape_of(block))
    base = pointer_to(element_of(block))
    if isinstance(type_, DescriptorType):
        return [base, *[i32] * rank, *[i64] * rank]
    return [base, *[i64] * rank, *[i64] * rank, *[i32] * rank]


# A rule replaces an op and returns True, or returns False for an op that stays.
Rule = Callable[["Expansion", Operation], bool]


@dataclass
class Expansion:
    """One walk over a function; `rules` handle the ops that make and use structures."""

    rules: dict[type[Operation], Rule]
    found: dict[SSAValue, Structure] = field(default_factory=dict)
    dead: list[Operation] = field(default_factory=list)

    def run(self, block: Block) -> None:
        """Rewrite a block and everything in it."""
        for op in tuple(block.ops):
            rule = self.rules.get(type(op))
            if rule is not None:
                if rule(self, op):
                    self.dead.append(op)
            elif isinstance(op, ControlFlowOp):
                self._expand(op)
            else:
                for region in op.regions:
                    for inner in region.blocks:
                        self.run(inner)

    def finish(self) -> None:
        """Erase the ops that were replaced, users before definitions."""
        for op in reversed(self.dead):
            erase(op)

    def _flat(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        result: list[SSAValue] = []
        for value in values:
            known = self.found.get(value)
            result += [value] if known is None else known.scalars()
        return result

    def _expand_arguments(self, edge: Edge) -> None:
        """Give a region scalar arguments for structured ones, which are as what is handed on."""
        for argument, value in zip(edge.receivers, edge.values, strict=True):
            if block_type(argument.type) is None:
                continue
            assert isinstance(argument, BlockArgument)
            block, position = argument.block, argument.index
            types = carried_types(argument.type)
            new = [block.insert_arg(t, position + n) for n, t in enumerate(types)]
            self.found[argument] = self.found[value].with_scalars(new)

    def _require_one_padding(self, op: Operation, edges: Sequence[Edge]) -> None:
        """Refuse ways to one place on which a structure has different paddings.

        All else of a structure is its scalars, which are carried, or its type. Only text can say
        such a thing: in the language the padding is part of the type.
        """
        paddings: dict[SSAValue, int] = {}
        for edge in edges:
            for receiver, value in zip(edge.receivers, edge.values, strict=True):
                given = self.found.get(value)
                if given is None or paddings.setdefault(receiver, given.padding) == given.padding:
                    continue
                raise MalformedText(
                    f"{op.name}: a descriptor is padded in one way or another, as control comes",
                    hint="give it one `padding` on every way",
                    span=span_of(op)[0],
                )

    def _drop_arguments(self, block: Block) -> None:
        for argument in tuple(block.args):
            if block_type(argument.type) is not None:
                block.erase_arg(argument, safe_erase=False)

    def _replace(
        self, op: Operation, operands: Sequence[SSAValue], origins: Sequence[SSAValue]
    ) -> None:
        """Rebuild a control-flow op with expanded operands; `origins[i]` is like result i."""
        types: list[Attribute] = []
        for result in op.results:
            structured = block_type(result.type) is not None
            types += carried_types(result.type) if structured else [result.type]
        new = rebuilt(op, operands, types)
        position = 0
        for result, origin in zip(op.results, origins, strict=True):
            if block_type(result.type) is None:
                result.replace_all_uses_with(new.results[position])
                position += 1
                continue
            count = len(carried_types(result.type))
            scalars = new.results[position : position + count]
            self.found[result] = self.found[origin].with_scalars(scalars)
            position += count
        self.dead.append(op)

    def _expand(self, op: ControlFlowOp) -> None:
        """Let a loop or branch hand on scalars for structures, inside first."""
        edges = op.edges()
        for index, region in enumerate(op.regions):
            for block in region.blocks:
                self._expand_arguments(next(edge for edge in edges if edge.target == index))
                self.run(block)
        self._require_one_padding(op, edges)
        origins = next(tuple(edge.values) for edge in edges if edge.target is OUTSIDE)
        givers = dict.fromkeys(edge.giver for edge in edges if edge.giver is not op)
        for giver in givers:
            giver.operands = self._flat(giver.operands)
        operands = self._flat(op.operands)
        for block in blocks_of(op):
            self._drop_arguments(block)
        self._replace(op, operands, origins)
