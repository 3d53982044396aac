"""Appends C2 ops at the outermost loop level where their operands are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, LocationAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilewright.ir.op import UNKNOWN_LOCATION, build
from tilewright.ir.types import (
    FLOAT8,
    element_of,
    i1,
    i32,
    i64,
    is_float,
    shape_of,
    vector_of,
)
from tilewright.ops.control_flow import ForOp, IfOp, YieldOp
from tilewright.ops.creation.ir import ConstantOp, SplatOp
from tilewright.ops.elementwise.comparisons import INTEGER_PREDICATES
from tilewright.ops.elementwise.ir import ELEMENTWISE, ExtFOp, FpToFpOp
from tilewright.ops.memory.ir import AddPtrOp
from tilewright.targets.cpu.ops import IotaOp

MemoKey = tuple[object, ...]


class Emitter:
    """The open loop levels of one nest, with what each level has computed.

    A pure op goes to the level of its deepest operand, which is loop-invariant code motion by
    construction; an effect goes to the innermost level. `pin` keeps everything new at or below
    one level, for the branches of a runtime choice. `floor` does so for what may read beyond
    memory: a loop that takes a mask for granted may make no step, and nothing be there to read.
    """

    def __init__(self, block: Block, location: LocationAttr | None) -> None:
        self.blocks: list[Block] = [block]
        self.memos: list[dict[MemoKey, SSAValue]] = [{}]
        self.depths: dict[SSAValue, int] = {}
        self.pin = 0
        self.floor = 0
        self.true_values: set[SSAValue] = set()
        self.location: LocationAttr = location or UNKNOWN_LOCATION

    def recall(self, key: MemoKey) -> SSAValue | None:
        """The value remembered under `key` at any open level."""
        for memo in self.memos:
            found = memo.get(key)
            if found is not None:
                return found
        return None

    def remember(self, key: MemoKey, value: SSAValue) -> SSAValue:
        """Keep `value` under `key` as long as its level is open."""
        self.memos[self.depths.get(value, 0)][key] = value
        return value

    def pure(
        self,
        cls: type[Operation],
        operands: Sequence[SSAValue],
        result_type: Attribute,
        properties: Mapping[str, Attribute] | None = None,
        location: LocationAttr | None = None,
    ) -> SSAValue:
        """Append an op without effects at the level of its deepest operand."""
        depth = self.pin
        for operand in operands:
            depth = max(depth, self.depths.get(operand, 0))
        op = build(cls, operands, (result_type,), properties, (), location or self.location)
        self.blocks[depth].add_op(op)
        if depth:
            self.depths[op.results[0]] = depth
        return op.results[0]

    def read(
        self,
        cls: type[Operation],
        operands: Sequence[SSAValue],
        result_type: Attribute,
        properties: Mapping[str, Attribute],
        location: LocationAttr,
    ) -> SSAValue:
        """Append a read at the level of its deepest operand, or at the floor."""
        saved = self.pin
        self.pin = max(saved, min(self.floor, len(self.blocks) - 1))
        value = self.pure(cls, operands, result_type, properties, location)
        self.pin = saved
        return value

    def pure_many(
        self,
        cls: type[Operation],
        operands: Sequence[SSAValue],
        result_types: Sequence[Attribute],
        regions: Sequence[Region],
    ) -> tuple[SSAValue, ...]:
        """Append an op of several results or with regions at the innermost level."""
        op = build(cls, operands, result_types, None, regions, self.location)
        self.append(op)
        return tuple(op.results)

    def effect(
        self,
        cls: type[Operation],
        operands: Sequence[SSAValue],
        result_types: Sequence[Attribute] = (),
        properties: Mapping[str, Attribute] | None = None,
        location: LocationAttr | None = None,
    ) -> Operation:
        """Append an op with effects at the innermost level."""
        op = build(cls, operands, result_types, properties, (), location or self.location)
        self.append(op)
        return op

    def append(self, op: Operation) -> None:
        """Append a finished op at the innermost level."""
        depth = len(self.blocks) - 1
        self.blocks[depth].add_op(op)
        if depth:
            for result in op.results:
                self.depths[result] = depth

    def constant(self, type_: Attribute, value: int | float) -> SSAValue:
        """A scalar constant."""
        key = ("constant", type_, repr(value))
        found = self.recall(key)
        if found is not None:
            return found
        attribute: Attribute
        if is_float(type_):
            attribute = FloatAttr(float(value), type_)  # pyright: ignore[reportArgumentType, reportCallIssue]
        else:
            attribute = IntegerAttr(int(value), type_)  # pyright: ignore[reportArgumentType, reportCallIssue]
        return self.remember(key, self.pure(ConstantOp, (), type_, {"value": attribute}))

    def index(self, value: int) -> SSAValue:
        """An i32 constant."""
        return self.constant(i32, value)

    def splat(self, value: SSAValue, lanes: int) -> SSAValue:
        """`value` in every lane; a vector stays as it is."""
        if lanes == 1 or shape_of(value.type):
            return value
        key = ("splat", value, lanes)
        found = self.recall(key)
        if found is None:
            found = self.pure(SplatOp, (value,), vector_of(value.type, lanes))
            self.remember(key, found)
            if value in self.true_values:
                self.true_values.add(found)
        return found

    def iota(self, type_: Attribute, lanes: int, step: int = 1) -> SSAValue:
        """The vector 0, step, 2 step, … of integers."""
        key = ("iota", type_, lanes, step)
        found = self.recall(key)
        if found is not None:
            return found
        value = self.pure(IotaOp, (), vector_of(type_, lanes))
        if step != 1:
            value = self.integer("muli", value, self.splat(self.constant(type_, step), lanes))
        return self.remember(key, value)

    def integer(self, name: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """A binary integer op `arith.<name>`, once per pair of operands."""
        if name == "andi" and (lhs in self.true_values or rhs in self.true_values):
            return rhs if lhs in self.true_values else lhs
        key = (name, lhs, rhs)
        found = self.recall(key)
        if found is not None:
            return found
        return self.remember(key, self.pure(ELEMENTWISE[f"arith.{name}"], (lhs, rhs), lhs.type))

    def compare(self, predicate: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """An integer comparison; `predicate` is one of INTEGER_PREDICATES."""
        lanes = shape_of(lhs.type)
        result = vector_of(i1, lanes[0] if lanes else 1)
        properties = {"predicate": code(INTEGER_PREDICATES.index(predicate))}
        return self.pure(ELEMENTWISE["arith.cmpi"], (lhs, rhs), result, properties)

    def widen(self, value: SSAValue, target: Attribute = i64) -> SSAValue:
        """A signed integer extended to i64."""
        element = element_of(value.type)
        if element == target:
            return value
        lanes = shape_of(value.type)
        result = vector_of(target, lanes[0] if lanes else 1)
        return self.pure(ELEMENTWISE["arith.extsi"], (value,), result)

    def narrow(self, value: SSAValue, target: Attribute) -> SSAValue:
        """An integer, or each lane of a vector, cut to a narrower type."""
        lanes = shape_of(value.type)
        result = vector_of(target, lanes[0] if lanes else 1)
        return self.pure(ELEMENTWISE["arith.trunci"], (value,), result)

    def extend(self, value: SSAValue, element: Attribute) -> SSAValue:
        """A float in the element type of the buffer that takes it (an exact widening)."""
        narrow = element_of(value.type)
        if narrow == element:
            return value
        lanes = shape_of(value.type)
        result = vector_of(element, lanes[0] if lanes else 1)
        return self.pure(FpToFpOp if narrow in FLOAT8 else ExtFOp, (value,), result)

    def advance(self, pointer: SSAValue, offset: SSAValue | int) -> SSAValue:
        """`pointer` plus `offset` elements."""
        if isinstance(offset, int):
            if offset == 0:
                return pointer
            offset = self.index(offset)
        key = ("addptr", pointer, offset)
        found = self.recall(key)
        if found is not None:
            return found
        return self.remember(key, self.pure(AddPtrOp, (pointer, offset), pointer.type))

    def open_loop(self, carried: Sequence[Attribute] = ()) -> tuple[SSAValue, list[SSAValue]]:
        """Enter a loop body; the result is its i32 variable and its carried values."""
        return self.open_block((i32, *carried))

    def open_block(self, types: Sequence[Attribute]) -> tuple[SSAValue, list[SSAValue]]:
        """Enter a new innermost block with arguments of `types` (at least one)."""
        block = Block(arg_types=types)
        self.push(block)
        depth = len(self.blocks) - 1
        for argument in block.args:
            self.depths[argument] = depth
        return block.args[0], list(block.args[1:])

    def push(self, block: Block) -> None:
        """Make `block` the innermost level."""
        self.blocks.append(block)
        self.memos.append({})

    def pop(self) -> Block:
        """Leave the innermost level and forget what it computed."""
        self.memos.pop()
        return self.blocks.pop()

    def close_loop(
        self,
        bounds: tuple[int | SSAValue, int | SSAValue, int],
        initial: Sequence[SSAValue] = (),
        yielded: Sequence[SSAValue] = (),
    ) -> tuple[SSAValue, ...]:
        """Leave the loop body, append the loop, and return what it carried out."""
        self.effect(YieldOp, yielded)
        body = self.pop()
        limits = [self.index(b) if isinstance(b, int) else b for b in bounds]
        operands = [*limits, *initial]
        types = [value.type for value in initial]
        return self.pure_many(ForOp, operands, types, (Region(body),))

    def close_run(
        self, count: SSAValue, initial: Sequence[SSAValue], yielded: Sequence[SSAValue]
    ) -> tuple[SSAValue, ...]:
        """Leave a loop body that runs `count` times, known at run time."""
        self.effect(YieldOp, yielded)
        body = self.pop()
        operands = [self.index(0), count, self.index(1), *initial]
        return self.pure_many(ForOp, operands, [v.type for v in initial], (Region(body),))

    def choose(
        self,
        condition: SSAValue,
        branches: tuple[Block, Block],
        result_types: Sequence[Attribute] = (),
    ) -> tuple[SSAValue, ...]:
        """Append scf.if over two finished blocks."""
        regions = tuple(Region(block) for block in branches)
        return self.pure_many(IfOp, (condition,), result_types, regions)


@cache
def code(value: int) -> Attribute:
    """An i64 attribute that holds a published code or a count."""
    return IntegerAttr(value, i64)


def wrapped(value: int, bits: int) -> int:
    """The signed number of `bits` bits that equals `value` modulo their power of two."""
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
