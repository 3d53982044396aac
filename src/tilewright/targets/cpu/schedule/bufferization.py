"""Which tiles are materialised, and which of them share one buffer.

Values with the same `key` live in the same buffer: the result of a loop, its carried tile and
(where nothing else needs the old contents) the yielded value and the initial one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field

from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue, Use

from tilewright.analysis.affine.tiles import AffineTiles
from tilewright.analysis.ranges import Ranges
from tilewright.ir.op import AccumulatingOp
from tilewright.ir.regions import edges_given, is_control_flow
from tilewright.ir.types import shape_of
from tilewright.ops.matmul.ir import DotOp
from tilewright.ops.shape.ir import CatOp, JoinOp
from tilewright.support.dataclass import dataclass
from tilewright.support.rules import RuleTable
from tilewright.targets.cpu.schedule.carried import NOTHING, Carried, carried_by
from tilewright.targets.cpu.schedule.inline import Costs, is_inline, is_tile, owner


@dataclass(frozen=True, eq=False)
class PackForm:
    """An operand of a matrix product brought into the microkernel's form.

    `role` "a" or "b"; `transposed`: `value` holds the operand's transpose; `from_memory`: it
    is packed straight from a load's memory; `element` is the type the microkernel reads;
    `unit`: in the layout of that unit, as the IR calls it.
    """

    value: SSAValue
    role: str
    transposed: bool
    from_memory: bool
    element: Attribute
    unit: str = ""

    @property
    def form(self) -> tuple[object, ...]:
        """What two forms of one value share if they are the same."""
        return self.role, self.transposed, self.from_memory, self.element, self.unit


@dataclass(frozen=True)
class Copy:
    """A tile to be written into the home of `target`, or into a strided part of it."""

    value: SSAValue
    target: SSAValue
    offset: int = 0
    strides: tuple[int, ...] | None = None


COPIES: RuleTable[Callable[[Operation], Iterator[Copy]]] = RuleTable("cpu copies")
"""The copies that stand before a step: what it starts from, or works on in place.

Those of control flow are what its edges hand on.
"""


@dataclass
class Bufferization:
    """The decisions about materialised tiles of one kernel.

    `packed_operands`: those of products, by index, that are packed straight from memory.
    `crossed`: tiles that a nest of stores reads in another order than they are loaded.
    `unpacked`: operands that a product reads as rows in memory; `unpacked_transposes`: the B of few
    rows, read as the rows of its transpose.
    `turned`: tiles that lie in the arena column by column.
    `guarded`: for a store of one number, the loaded rows that are read again after it.
    """

    structure: AffineTiles
    costs: Costs
    stored: set[SSAValue] = field(default_factory=set)
    operands: dict[DotOp, tuple[PackForm, PackForm]] = field(default_factory=dict)
    packed_operands: set[tuple[Operation, int]] = field(default_factory=set)
    packs_after: dict[SSAValue, list[PackForm]] = field(default_factory=dict)
    packs_before: dict[Operation, list[PackForm]] = field(default_factory=dict)
    elements: dict[SSAValue, Attribute] = field(default_factory=dict)
    unpacked: set[PackForm] = field(default_factory=set)
    unpacked_transposes: set[PackForm] = field(default_factory=set)
    pitches: dict[SSAValue, int] = field(default_factory=dict)
    turned: set[SSAValue] = field(default_factory=set)
    in_place: dict[SSAValue, SSAValue] = field(default_factory=dict)
    crossed: set[SSAValue] = field(default_factory=set)
    guarded: dict[Operation, dict[SSAValue, None]] = field(default_factory=dict)
    ranges: Ranges = field(default_factory=Ranges)
    _flow: dict[Operation, Carried] = field(default_factory=dict)

    def evaluated_operands(self, op: Operation) -> list[SSAValue]:
        """The operands that an op evaluates itself: what is packed from memory for it is not."""
        return [v for i, v in enumerate(op.operands) if (op, i) not in self.packed_operands]

    def is_in_place(self, form: PackForm) -> bool:
        """Whether a product reads an operand, or its transpose, as rows in memory."""
        return form in self.unpacked or form in self.unpacked_transposes

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
        if isinstance(op, AccumulatingOp):
            return next_in_chain(op) or self._taken(value) or self._addend(op)
        return self._carried(op).beside.get(value)

    def _carried(self, op: Operation | None) -> Carried:
        if op is None or not op.regions:
            return NOTHING
        found = self._flow.get(op)
        if found is None:
            found = self._flow[op] = carried_by(op)
        return found

    def _argument_shares(self, value: BlockArgument) -> SSAValue | None:
        parent = value.block.parent_op()
        assert parent is not None
        carried = self._carried(parent)
        result = carried.results.get(value)
        if result is None:
            return carried.unchanged.get(value)
        initial = carried.initial[value]
        found = self.in_place.get(result) or self._taken(result)
        return found or (initial if self._is_disposable(initial, parent) else None)

    def _taken(self, value: SSAValue) -> SSAValue | None:
        """The result of a branch as which `value`, made in it, is handed on and nothing else.

        What was made before the branch may not take the result's place: the other branch hands
        on another value.
        """
        use, op = single_use(value), owner(value)
        if use is None or op is None or op.parent is not use.operation.parent:
            return None
        carried = self._carried(use.operation.parent_op())
        return carried.taken.get((use.operation, use.index))

    def _addend(self, op: AccumulatingOp) -> SSAValue | None:
        addend = addend_of(op)
        if isinstance(owner(addend), AccumulatingOp) or not self._is_disposable(addend, op):
            return None
        return addend

    def _is_disposable(self, value: SSAValue, user: Operation) -> bool:
        op = owner(value)
        if op is None or op.parent is not user.parent or not value.has_one_use():
            return False
        return isinstance(op, AccumulatingOp) or is_control_flow(op)

    def works_in_place(self, op: Operation, value: SSAValue) -> bool:
        """Whether a result lies where an operand lay, if nothing else needs that."""
        carried = self._carried(op)
        return isinstance(op, AccumulatingOp) or carried.beside.get(value) in carried.results

    def carried_tiles(self, block: Block) -> Iterator[tuple[SSAValue, SSAValue]]:
        """The tiles that a block hands to itself, each with the argument that receives it."""
        end = block.last_op
        for edge in () if end is None else edges_given(end):
            if edge.source == edge.target:
                for argument, value in zip(edge.receivers, edge.values, strict=True):
                    if is_tile(argument):
                        yield argument, value

    def copies_into(self, op: Operation) -> list[Copy]:
        """The copies that must be done before `op`, a step of its own."""
        rule = COPIES.find(type(op))
        copies = self._handed_on(op) if rule is None else rule(op)
        return [copy for copy in copies if not self._is_there(copy)]

    def _handed_on(self, op: Operation) -> Iterator[Copy]:
        """The tiles that control flow hands on here, once for each buffer they go to."""
        seen: set[tuple[SSAValue, SSAValue]] = set()
        for edge in edges_given(op):
            for value, target in zip(edge.values, edge.receivers, strict=True):
                if is_tile(value) and (value, self.key(target)) not in seen:
                    seen.add((value, self.key(target)))
                    yield Copy(value, target)

    def _is_there(self, copy: Copy) -> bool:
        if copy.strides is not None or not self.is_stored(copy.value):
            return False
        return self.key(copy.value) is self.key(copy.target)


def single_use(value: SSAValue) -> Use | None:
    """The one use of `value`; None when it has none or several."""
    return next(iter(value.uses)) if value.has_one_use() else None


def addend_of(op: AccumulatingOp) -> SSAValue:
    """What an op adds to."""
    return op.operands[op.accumulator_index()]


def next_in_chain(op: AccumulatingOp) -> SSAValue | None:
    """The result of the op in the same block that alone accumulates onto this one."""
    use = single_use(op.results[0])
    following = None if use is None else use.operation
    if use is None or following is None or following.parent is not op.parent:
        return None
    if not isinstance(following, AccumulatingOp) or use.index != following.accumulator_index():
        return None
    return following.results[0]


def chain_head(value: SSAValue) -> SSAValue:
    """The first result of the chain that accumulates into `value`; `value` if there is none."""
    op = owner(value)
    while isinstance(op, AccumulatingOp):
        before = owner(addend_of(op))
        if not isinstance(before, AccumulatingOp) or next_in_chain(before) is not op.results[0]:
            break
        op, value = before, before.results[0]
    return value


@COPIES.register(DotOp)
def _into_product(op: DotOp) -> Iterator[Copy]:
    if not is_zero(op.c):
        yield Copy(op.c, op.result)


@COPIES.register(JoinOp)
def _interleaved(op: JoinOp) -> Iterator[Copy]:
    doubled = tuple(2 * stride for stride in _row_major(shape_of(op.lhs.type)))
    yield Copy(op.lhs, op.result, 0, doubled)
    yield Copy(op.rhs, op.result, 1, doubled)


@COPIES.register(CatOp)
def _one_after_the_other(op: CatOp) -> Iterator[Copy]:
    shape = shape_of(op.lhs.type)
    strides = _row_major(shape)
    yield Copy(op.lhs, op.result, 0, strides)
    yield Copy(op.rhs, op.result, strides[0] * shape[0], strides)


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a tile whose rows lie one after the other."""
    strides = [1] * len(shape)
    for dim in reversed(range(len(shape) - 1)):
        strides[dim] = strides[dim + 1] * shape[dim + 1]
    return tuple(strides)


# The ops that make zeros of a zero: `other=0` of floats is an integer that is converted.
_KEEPS_ZERO = frozenset(
    (
        *("tt.splat", "tt.broadcast", "tt.expand_dims", "tt.fp_to_fp"),
        *("arith.sitofp", "arith.uitofp", "arith.extf", "arith.truncf"),
        *("arith.extsi", "arith.extui", "arith.trunci"),
    )
)


def is_zero(value: SSAValue) -> bool:
    """Whether a tile is the constant zero."""
    op = owner(value)
    splat_value = getattr(op, "splat_value", None)
    return splat_value is not None and splat_value() == 0


def fills_zeros(load: Operation) -> bool:
    """Whether what a load's mask hides reads as zero."""
    other: object = getattr(load, "other", None)
    return not isinstance(other, SSAValue) or _is_zero_everywhere(other)


def _is_zero_everywhere(value: SSAValue) -> bool:
    op = owner(value)
    while op is not None and op.name in _KEEPS_ZERO:
        value = op.operands[0]
        op = owner(value)
    return is_zero(value)
