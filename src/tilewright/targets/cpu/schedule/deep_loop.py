"""A loop whose steps are several of another loop's: tiles along k as many times as long.

See `widen_k_loops.py`, which says where that is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue

from tilewright.ir.edits import erase
from tilewright.ir.op import PointwiseOp, ViewOp, build
from tilewright.ir.types import element_of, i32, i64, shape_of, tile_of
from tilewright.ops.builder import constant_attribute
from tilewright.ops.control_flow import ForOp, YieldOp
from tilewright.ops.creation.ir import ConstantOp, MakeRangeOp
from tilewright.ops.elementwise.ir import ELEMENTWISE, ExtSIOp, TruncIOp
from tilewright.ops.matmul.ir import ProductOp
from tilewright.support.rules import RuleTable
from tilewright.support.worklist import needed_first
from tilewright.targets.cpu.schedule.shifts import Shifts, source_dim

Along = tuple[SSAValue, int]
"""A tile and one of its dimensions."""

GROWN: RuleTable[Callable[..., dict[str, Attribute]]] = RuleTable("what makes longer tiles")
"""The properties of an op that makes a tile of nothing, for a longer one."""


class DeepLoop:
    """Builds the deep loop and lets the old one go on from where it ends.

    `is_long`: the deep loop's last step takes the rest, and the old loop goes.
    """

    def __init__(self, loop: ForOp, shifts: Shifts, factor: int, is_long: bool) -> None:
        self.loop = loop
        self.shifts = shifts
        self.factor = factor
        self.is_long = is_long
        self.wide: dict[tuple[SSAValue, int], SSAValue] = {}
        self.copies: dict[SSAValue, SSAValue] = {}
        counter, *carried = (argument.type for argument in loop.body.block.args)
        self.body = Block(arg_types=[i64 if is_long else counter, *carried])
        self.copies.update(zip(loop.body.block.args, self.body.args, strict=True))
        if is_long and counter != i64:
            narrow = build(TruncIOp, self.body.args[:1], (counter,), location=loop.location)
            self.body.add_op(narrow)
            self.copies[loop.body.block.args[0]] = narrow.results[0]

    def is_known(self, value: SSAValue, dim: int) -> bool:
        """Whether every op that has to be widened is one that can be."""
        seen: set[Along] = set()
        return all(
            _is_widened(found.owner) or GROWN.find(type(found.owner)) is not None
            for found, _ in _marked(needed_first((value, dim), _sources, seen.__contains__), seen)
        )

    def rewrite(self, product: ProductOp) -> None:
        """Insert the deep loop, and move the start of the old one or put it in its place."""
        loop, body = self.loop, self.body
        start, end, step = self._long_bounds() if self.is_long else self._bounds()
        operands = (self.widen(product.a, 1), self.widen(product.b, 0), self.copies[product.c])
        kind = product.result.type
        dot = build(
            type(product), operands, (kind,), dict(product.properties), (), product.location
        )
        body.add_op(dot)
        terminator = loop.body.block.last_op
        assert terminator is not None
        yielded = [
            dot.results[0] if value is product.result else self._repeat(argument, value)
            for argument, value in zip(loop.body.block.args[1:], terminator.operands, strict=True)
        ]
        body.add_op(build(YieldOp, yielded, location=terminator.location))
        initial = (start, end, step, *loop.operands[3:])
        types = [result.type for result in loop.results]
        deep = build(ForOp, initial, types, dict(loop.properties), (Region(body),), loop.location)
        deep.attributes = dict(loop.attributes)
        assert loop.parent is not None
        loop.parent.insert_op_before(deep, loop)
        if not self.is_long:
            loop.operands = [end, *loop.operands[1:3], *deep.results]
            return
        for old, new in zip(loop.results, deep.results, strict=True):
            old.replace_all_uses_with(new)
        erase(loop)

    def widen(self, value: SSAValue, dim: int) -> SSAValue:
        """A tile `factor` times as long along a dimension, continued."""
        for needed in needed_first((value, dim), _sources, self.wide.__contains__):
            self.wide[needed] = self._widened(*needed)
        return self.wide[value, dim]

    def _widened(self, value: SSAValue, dim: int) -> SSAValue:
        assert isinstance(value, OpResult)
        op, shape = value.op, list(shape_of(value.type))
        shape[dim] *= self.factor
        inner = source_dim(op, dim)
        operands = [
            self.copy(operand)
            if inner is None or not _is_long(operand, inner)
            else self.widen(operand, inner)
            for operand in op.operands
        ]
        type_ = tile_of(element_of(value.type), tuple(shape))
        new = build(type(op), operands, (type_,), _properties(op, type_), (), op.location)
        self._insert(new, op)
        return new.results[0]

    def copy(self, value: SSAValue) -> SSAValue:
        """A value in the deep loop's body as long as it was."""
        for needed in needed_first(value, _operands, self._is_copied):
            assert isinstance(needed, OpResult)
            op = needed.op
            operands = [self.copies.get(operand, operand) for operand in op.operands]
            types = [result.type for result in op.results]
            new = build(type(op), operands, types, dict(op.properties), (), op.location)
            self._insert(new, op)
            self.copies.update(zip(op.results, new.results, strict=True))
        return self.copies.get(value, value)

    def _is_copied(self, value: SSAValue) -> bool:
        return value in self.copies or not self.shifts.is_inside(value)

    def _insert(self, new: Operation, old: Operation) -> None:
        if old.parent is self.loop.body.block:
            self.body.add_op(new)
            return
        block = old.parent
        assert block is not None
        block.insert_op_after(new, old)

    def _long_bounds(self) -> tuple[SSAValue, SSAValue, SSAValue]:
        """The old loop's bounds and the deep loop's step, in 64 bits, which its last does not
        exceed."""
        low, high = (self._before(ExtSIOp, (v,), i64) for v in self.loop.operands[:2])
        return low, high, self._constant(i64, self._step() * self.factor)

    def _step(self) -> int:
        step = self.loop.operands[2].owner
        assert isinstance(step, ConstantOp)
        return int(step.splat_value())

    def _bounds(self) -> tuple[SSAValue, SSAValue, SSAValue]:
        """Where the deep loop starts, where it ends, after whole groups of iterations, its step.

        In 64 bits, so that no difference of bounds overflows.
        """
        kind = self.loop.operands[0].type
        low, high = (self._before(ExtSIOp, (v,), i64) for v in self.loop.operands[:2])
        stride = self._constant(i64, self._step() * self.factor)
        span = self._before(_arith("subi"), (high, low), i64)
        whole = self._before(_arith("divsi"), (span, stride), i64)
        covered = self._before(_arith("muli"), (whole, stride), i64)
        end = self._before(_arith("addi"), (low, covered), i64)
        return (
            self.loop.operands[0],
            self._before(TruncIOp, (end,), kind),
            self._constant(kind, self._step() * self.factor),
        )

    def _repeat(self, argument: SSAValue, value: SSAValue) -> SSAValue:
        """A carried scalar after `factor` iterations: its step that many times."""
        start, kind = self.copies[argument], value.type
        step = self._after(_arith("subi"), (self.copy(value), start), kind)
        times = self._constant(kind, self.factor)
        return self._after(
            _arith("addi"), (start, self._after(_arith("muli"), (step, times), kind)), kind
        )

    def _constant(self, kind: Attribute, value: int) -> SSAValue:
        properties = {"value": constant_attribute(value, kind)}
        place = self.loop.location
        return self._place_before(build(ConstantOp, (), (kind,), properties, location=place))

    def _before(
        self, cls: type[Operation], operands: tuple[SSAValue, ...], kind: Attribute
    ) -> SSAValue:
        """An op before the loop; a cast to the type that a value has is the value."""
        if len(operands) == 1 and operands[0].type == kind:
            return operands[0]
        return self._place_before(build(cls, operands, (kind,), location=self.loop.location))

    def _place_before(self, op: Operation) -> SSAValue:
        assert self.loop.parent is not None
        self.loop.parent.insert_op_before(op, self.loop)
        return op.results[0]

    def _after(
        self, cls: type[Operation], operands: tuple[SSAValue, ...], kind: Attribute
    ) -> SSAValue:
        """An op at the end of the deep loop's body."""
        op = build(cls, operands, (kind,), location=self.loop.location)
        self.body.add_op(op)
        return op.results[0]


def _arith(name: str) -> type[Operation]:
    return ELEMENTWISE[f"arith.{name}"]


def _is_widened(op: Operation | Block) -> bool:
    """Whether the op on longer operands is the op's longer result."""
    return isinstance(op, PointwiseOp | ViewOp)


def _operands(value: SSAValue) -> Sequence[SSAValue]:
    return value.op.operands if isinstance(value, OpResult) else ()


def _sources(along: Along) -> list[Along]:
    """The operands that have to grow for a value to grow along a dimension."""
    value, dim = along
    op = value.op if isinstance(value, OpResult) else None
    if op is None or not _is_widened(op):
        return []
    inner = source_dim(op, dim)
    if inner is None:
        return []
    return [(operand, inner) for operand in op.operands if _is_long(operand, inner)]


def _marked(nodes: Iterable[Along], seen: set[Along]) -> Iterator[Along]:
    """The nodes of a walk, each noted as seen."""
    for node in nodes:
        seen.add(node)
        yield node


def _is_long(value: SSAValue, dim: int) -> bool:
    """Whether a dimension of an operand grows with the tile: not that of a broadcast."""
    shape = shape_of(value.type)
    return bool(shape) and shape[dim] > 1


def _properties(op: Operation, type_: Attribute) -> dict[str, Attribute]:
    """The properties of an op whose result becomes a longer tile."""
    rule = GROWN.find(type(op))
    return {**op.properties, **({} if rule is None else rule(op, type_))}


@GROWN.register(ConstantOp)
def _longer_constant(op: ConstantOp, type_: Attribute) -> dict[str, Attribute]:
    assert isinstance(type_, TensorType)
    return {"value": DenseIntOrFPElementsAttr.from_list(type_, [op.splat_value()])}


@GROWN.register(MakeRangeOp)
def _longer_range(op: MakeRangeOp, type_: Attribute) -> dict[str, Attribute]:
    return {"end": IntegerAttr(op.start.value.data + shape_of(type_)[0], i32)}
