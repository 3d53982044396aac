"""Which tiles are materialised, and which of them share one buffer.

Values with the same `key` live in the same buffer: the result of a loop, its carried tile and
(where nothing else needs the old contents) the yielded value and the initial one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field

from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue, Use

from tilewright.analysis.affine.tiles import AffineTiles
from tilewright.ir.types import shape_of
from tilewright.ops.control_flow import ConditionOp, ForOp, IfOp, WhileOp, YieldOp
from tilewright.ops.matmul.ir import DotOp
from tilewright.ops.shape.ir import CatOp, JoinOp
from tilewright.support.dataclass import dataclass
from tilewright.support.rules import RuleTable
from tilewright.targets.cpu.schedule.inline import Costs, is_inline, is_tile, owner


@dataclass(frozen=True, eq=False)
class PackForm:
    """An operand of a matrix product brought into the microkernel's form.

    `role` "a" or "b"; `transposed`: `value` holds the operand's transpose; `from_memory`: it
    is packed straight from a load's memory; `element` is the type the microkernel reads.
    """

    value: SSAValue
    role: str
    transposed: bool
    from_memory: bool
    element: Attribute


@dataclass(frozen=True)
class Copy:
    """A tile to be written into the home of `target`, or into a strided part of it."""

    value: SSAValue
    target: SSAValue
    offset: int = 0
    strides: tuple[int, ...] | None = None


COPIES: RuleTable[Callable[[Operation], Iterator[Copy]]] = RuleTable("cpu copies")
"""The copies that stand before a step: what it starts from, or works on in place."""


@dataclass
class Bufferization:
    """The decisions about materialised tiles of one kernel."""

    structure: AffineTiles
    costs: Costs
    stored: set[SSAValue] = field(default_factory=set)
    operands: dict[DotOp, tuple[PackForm, PackForm]] = field(default_factory=dict)
    packs_after: dict[SSAValue, list[PackForm]] = field(default_factory=dict)
    packs_before: dict[Operation, list[PackForm]] = field(default_factory=dict)
    elements: dict[SSAValue, Attribute] = field(default_factory=dict)
    unpacked: set[PackForm] = field(default_factory=set)
    in_place: dict[SSAValue, SSAValue] = field(default_factory=dict)

    def is_stored(self, value: SSAValue) -> bool:
        """Whether a tile lives in a buffer: by its nature or because we decided so."""
        return value in self.stored or not is_inline(value)

    def key(self, value: SSAValue) -> SSAValue:
        """The value that names the buffer in which `value` lives."""
        while True:
            following = self._shared_with(value)
            if following is None:
                return value
            value = following

    def _shared_with(self, value: SSAValue) -> SSAValue | None:
        if isinstance(value, BlockArgument):
            return self._argument_shares(value)
        argument = self.in_place.get(value)
        if argument is not None:
            return argument
        op = owner(value)
        assert isinstance(value, OpResult)
        if isinstance(op, ForOp):
            return op.body.block.args[value.index + 1]
        if isinstance(op, WhileOp):
            return op.after_region.block.args[value.index]
        if isinstance(op, DotOp):
            return next_in_chain(op) or _received(value) or self._addend(op)
        return None

    def _argument_shares(self, value: BlockArgument) -> SSAValue | None:
        parent = value.block.parent_op()
        if isinstance(parent, ForOp):
            result = parent.results[value.index - 1]
            return self.in_place.get(result) or _received(result) or self._initial(value, parent)
        if isinstance(parent, WhileOp) and value.block is parent.after_region.block:
            return _forwarded(parent, value.index)
        return None

    def _initial(self, argument: BlockArgument, loop: ForOp) -> SSAValue | None:
        """The loop's initial tile, when nobody else needs its buffer."""
        initial = loop.operands[argument.index + 2]
        return initial if self._is_disposable(initial, loop) else None

    def _addend(self, op: DotOp) -> SSAValue | None:
        addend = op.operands[2]
        if isinstance(owner(addend), DotOp) or not self._is_disposable(addend, op):
            return None
        return addend

    def _is_disposable(self, value: SSAValue, user: Operation) -> bool:
        op = owner(value)
        if op is None or op.parent is not user.parent or not value.has_one_use():
            return False
        return isinstance(op, DotOp | ForOp | WhileOp | IfOp)

    def carried_tiles(self, block: Block) -> Iterator[tuple[SSAValue, SSAValue]]:
        """The carried tiles of a loop body, each with the value that the body yields for it."""
        parent = block.parent_op()
        if isinstance(parent, ForOp):
            terminator = block.last_op
            assert isinstance(terminator, YieldOp)
            for argument, value in zip(block.args[1:], terminator.operands, strict=True):
                if is_tile(argument):
                    yield argument, value

    def copies_into(self, op: Operation) -> list[Copy]:
        """The copies that must be done before `op`, a step of its own."""
        rule = COPIES.find(type(op))
        return [copy for copy in rule(op) if not self._is_there(copy)] if rule is not None else []

    def _is_there(self, copy: Copy) -> bool:
        if copy.strides is not None or not self.is_stored(copy.value):
            return False
        return self.key(copy.value) is self.key(copy.target)


def single_use(value: SSAValue) -> Use | None:
    """The one use of `value`; None when it has none or several."""
    return next(iter(value.uses)) if value.has_one_use() else None


def next_in_chain(op: DotOp) -> SSAValue | None:
    """The result of the dot in the same block that alone accumulates onto this one."""
    use = single_use(op.results[0])
    if use is None or not isinstance(use.operation, DotOp) or use.index != 2:
        return None
    return use.operation.results[0] if use.operation.parent is op.parent else None


def chain_head(value: SSAValue) -> SSAValue:
    """The first dot of the chain that accumulates into `value`; `value` if it is no dot."""
    op = owner(value)
    while isinstance(op, DotOp):
        before = owner(op.operands[2])
        if not isinstance(before, DotOp) or next_in_chain(before) is not op.results[0]:
            break
        op, value = before, before.results[0]
    return value


def _received(value: SSAValue) -> SSAValue | None:
    """The result of scf.if to which `value`, made in that branch, is only yielded.

    What was made before the branch may not take the result's place: the other branch yields
    another value.
    """
    use, op = single_use(value), owner(value)
    if use is None or op is None or not isinstance(use.operation, YieldOp):
        return None
    if op.parent is not use.operation.parent:
        return None
    parent = use.operation.parent_op()
    return parent.results[use.index] if isinstance(parent, IfOp) else None


def _forwarded(loop: WhileOp, index: int) -> SSAValue | None:
    """The before-argument that scf.condition hands on unchanged, and only there."""
    condition = loop.before_region.block.last_op
    assert isinstance(condition, ConditionOp)
    value = condition.operands[index + 1]
    times = sum(operand is value for operand in condition.operands)
    if times != 1 or not isinstance(value, BlockArgument):
        return None
    return value if value.block is loop.before_region.block else None


def _copied(sources: Iterable[SSAValue], targets: Iterable[SSAValue]) -> Iterator[Copy]:
    pairs = zip(sources, targets, strict=True)
    return (Copy(value, target) for value, target in pairs if is_tile(value))


@COPIES.register(ForOp)
def _into_for(op: ForOp) -> Iterator[Copy]:
    return _copied(op.operands[3:], op.body.block.args[1:])


@COPIES.register(WhileOp)
def _into_while(op: WhileOp) -> Iterator[Copy]:
    return _copied(op.operands, op.before_region.block.args)


@COPIES.register(DotOp)
def _into_product(op: DotOp) -> Iterator[Copy]:
    return iter(()) if is_zero(op.operands[2]) else _copied(op.operands[2:], op.results)


@COPIES.register(ConditionOp, YieldOp)
def _yielded(op: ConditionOp | YieldOp) -> Iterator[Copy]:
    parent = op.parent_op()
    if isinstance(op, ConditionOp):
        assert isinstance(parent, WhileOp)
        return _copied(op.operands[1:], parent.after_region.block.args)
    if isinstance(parent, ForOp):
        return _copied(op.operands, parent.body.block.args[1:])
    if isinstance(parent, WhileOp):
        return _copied(op.operands, parent.before_region.block.args)
    assert isinstance(parent, IfOp)
    return _copied(op.operands, parent.results)


@COPIES.register(JoinOp, CatOp)
def _parts(op: JoinOp | CatOp) -> Iterator[Copy]:
    """The two halves of a join (interleaved) or a concatenation (one after the other)."""
    shape = shape_of(op.operands[0].type)
    strides = [1] * len(shape)
    for dim in reversed(range(len(shape) - 1)):
        strides[dim] = strides[dim + 1] * shape[dim + 1]
    result = op.results[0]
    if isinstance(op, JoinOp):
        doubled = tuple(2 * stride for stride in strides)
        yield Copy(op.operands[0], result, 0, doubled)
        yield Copy(op.operands[1], result, 1, doubled)
        return
    yield Copy(op.operands[0], result, 0, tuple(strides))
    yield Copy(op.operands[1], result, strides[0] * shape[0], tuple(strides))


def is_zero(value: SSAValue) -> bool:
    """Whether a tile is the constant zero."""
    op = owner(value)
    splat_value = getattr(op, "splat_value", None)
    return splat_value is not None and splat_value() == 0
