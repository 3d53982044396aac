"""The steps of a block, and what grouping its ops into steps asks of it."""

from __future__ import annotations

from dataclasses import field
from math import prod

from xdsl.ir import Block, Operation, SSAValue

from tilewright.ir.effects import is_plain_read, overtakes_reads
from tilewright.ir.regions import is_control_flow
from tilewright.ops.atomics.ir import AtomicOp
from tilewright.ops.debug.ir import AssertOp, PrintOp
from tilewright.ops.memory.ir import StoreOp
from tilewright.ops.reduction.ir import ReduceOp, ScanOp
from tilewright.support.dataclass import dataclass
from tilewright.targets.cpu.forms import ELEMENTS
from tilewright.targets.cpu.schedule.bufferization import Bufferization, PackForm
from tilewright.targets.cpu.schedule.inline import is_inline, is_tile, owner
from tilewright.targets.cpu.schedule.roots import Root, RootKind, Sources, reach, space_of

_ROOTS: dict[type[Operation], RootKind] = {
    StoreOp: RootKind.STORE,
    ReduceOp: RootKind.REDUCE,
    ScanOp: RootKind.SCAN,
    **dict.fromkeys(AtomicOp.__subclasses__(), RootKind.ATOMIC),
    **dict.fromkeys((PrintOp, AssertOp), RootKind.PRINT),
}


@dataclass(eq=False)
class Step:
    """One unit of emission: a fused nest, a packing, or one op."""

    position: int
    roots: list[Root] = field(default_factory=list)
    op: Operation | None = None
    pack: PackForm | None = None
    reached: dict[SSAValue, bool] = field(default_factory=dict)


def kind_of_root(op: type[Operation]) -> RootKind | None:
    """What ops of a class are as roots of a nest; None where they are none."""
    if ELEMENTS.find(op) is not None:
        return _ROOTS.get(op, RootKind.ELEMENTS)
    return _ROOTS.get(op)


def visited_one_by_one(op: Operation) -> tuple[SSAValue, ...]:
    """The operands whose elements a root for an op takes in order, each by itself."""
    operands = tuple(op.operands)
    if not operands or not is_tile(operands[0]):
        return ()
    kind = kind_of_root(type(op))
    if kind is RootKind.ELEMENTS:
        return operands[:1]
    if kind is not RootKind.SCAN:
        return ()
    assert isinstance(op, ScanOp)
    space = space_of(operands[0])
    return operands if space[op.axis.value.data] == prod(space) else ()


def captured_tiles(op: Operation) -> tuple[SSAValue, ...]:
    """The tiles from outside that an op with regions uses inside."""
    inside = set(op.walk())
    found: dict[SSAValue, None] = {}
    for inner in op.walk():
        if inner is op:
            continue
        for operand in inner.operands:
            definition = operand.owner
            anchor = definition.parent_op() if isinstance(definition, Block) else definition
            if is_tile(operand) and anchor not in inside:
                found[operand] = None
    return tuple(found)


class BlockContents:
    """What a block holds, and which of its tiles lie in memory: the same in every grouping."""

    def __init__(self, bufferization: Bufferization, block: Block) -> None:
        self.bufferization = bufferization
        self.block = block
        self.ops = list(block.ops)
        self.positions = {op: index for index, op in enumerate(self.ops)}
        self.barriers = [op for op in self.ops if overtakes_reads(op)]
        # Where the block reads each value from memory.
        self.loaded: dict[SSAValue, int] = {
            v: at for at, op in enumerate(self.ops) if is_plain_read(op) for v in op.results
        }
        self.captured = {op: captured_tiles(op) for op in self.ops if is_control_flow(op)}
        self.inlined = {op: [v for v in op.results if is_inline(v)] for op in self.ops}
        self.sources: Sources = {}

    def reach(
        self, values: tuple[SSAValue, ...], computed: SSAValue | None = None
    ) -> dict[SSAValue, bool]:
        """The values that are evaluated with some; True where at their own indices alone."""
        return reach(values, self.bufferization.stored, computed, self.sources)

    def places_of(self, store: Root) -> dict[SSAValue, bool]:
        """What the addresses and the mask of a store are made of."""
        return self.reach((store.values[0], *store.values[2:]))

    def makes(self, value: SSAValue) -> bool:
        """Whether this block makes a value: one that another makes has its nest there, or none."""
        made = owner(value)
        return made is not None and made.parent is self.block
