"""Lets roles meet where what is loaded may be what the program has stored (T0 to T0).

    while … { for k … { load %a; load %b }; store %c }        bases that were loaded from memory
    ⇒ while … { if (%a or %b meets what was stored) { meet }; for k … { … }; store %c }

A role that loads runs ahead of the stores. Where the addresses are data no launch can tell whether
they meet; the program can. All roles keep two stretches of bytes: what was stored through the
present descriptors, and the hull of all that was stored before. In front of a load they compare,
with the same numbers, and meet where the bytes overlap: behind it everything is in memory that was
stored. A hull may overlap what no store touched; then roles meet in vain, once.

What the kernel writes is blocks through descriptors that the program makes, and what it reads are
such blocks and scalars.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, UnitAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilewright.ir.effects import global_access, is_free
from tilewright.ir.op import build
from tilewright.ir.regions import ControlFlowOp, is_control_flow
from tilewright.ir.schedule_attributes import COMMON
from tilewright.ir.types import DescriptorType, i1, i64, shape_of, storage_bytes
from tilewright.ops.carried_values import Values, carry
from tilewright.ops.channels import MeetOp
from tilewright.ops.control_flow import IfOp, YieldOp
from tilewright.ops.creation.ir import ConstantOp
from tilewright.ops.descriptors.ir import DescriptorLoadOp, DescriptorStoreOp
from tilewright.ops.elementwise.comparisons import CmpIOp
from tilewright.ops.elementwise.ir import PtrToIntOp, SelectOp
from tilewright.ops.function import FuncOp
from tilewright.ops.memory.ir import LoadOp
from tilewright.passes.tile_builder import TileBuilder
from tilewright.schedule.partition.refusal import Refused
from tilewright.targets.nvidia.tma_ops import MakeTensorMapOp

# By definition: the number of `slt` among the predicates.
_LESS = 2
# By definition: a stretch of no bytes starts behind all addresses.
_NOWHERE = ((1 << 63) - 1, 0)
Span = tuple[SSAValue, SSAValue]
"""The first byte of a stretch of memory, and the one behind it, as i64."""


def makes_maps(kernel: FuncOp) -> bool:
    """Whether a program makes descriptors itself, of addresses that no launch knows."""
    return any(isinstance(op, MakeTensorMapOp) for op in kernel.walk())


def keep_order(kernel: FuncOp) -> frozenset[Operation]:
    """Let the program meet where a load may find what it has stored; the ops that read.

    *Raises*: Refused where it could not tell, with the kernel as it was.
    """
    accesses = [(op, access) for op in kernel.walk() if (access := global_access(op)) is not None]
    stores = [op for op, access in accesses if access.writes]
    reads = [op for op, access in accesses if not access.writes]
    for op in (*stores, *reads):
        _require_known(op)
    if stores:
        _Ordering(kernel, stores, reads).run()
    for op in reads:
        op.attributes[COMMON] = UnitAttr()
    return frozenset(reads)


def _require_known(op: Operation) -> None:
    """Hold an access to what the program knows the bytes of. *Raises*: Refused."""
    if isinstance(op, DescriptorLoadOp | DescriptorStoreOp):
        if not isinstance(op.desc.owner, MakeTensorMapOp):
            raise Refused(op, "beside descriptors of the program a launch makes one")
    elif not isinstance(op, LoadOp) or shape_of(op.results[0].type):
        what = f"{op.name} beside descriptors that the program makes"
        raise Refused(op, f"{what}: nobody knows whether they meet")


class _Ordering:
    """The walk over a kernel with what was stored and read, as numbers that loops carry.

    They are three stretches: what was stored before the present descriptors were made, what was
    stored through these, and the scalars that were read, each since roles have met.
    """

    def __init__(
        self, kernel: FuncOp, stores: Sequence[Operation], reads: Sequence[Operation]
    ) -> None:
        self._kernel = kernel
        self._spans: dict[SSAValue, Span] = {}
        self._stores = set(stores)
        self._targets = {op.operands[0] for op in stores}
        self._reads: dict[Operation, list[Operation]] = {}
        for op in reads:
            self._reads.setdefault(self._place(op), []).append(op)

    def run(self) -> None:
        """Rewrite the kernel."""
        body = self._kernel.body.block
        assert body.first_op is not None
        self._block(body, self._nothing(body.first_op))

    def _place(self, op: Operation) -> Operation:
        """The op in front of which a read is compared: the widest around it that stores nothing."""
        while True:
            above = op.parent_op()
            if above is None or above is self._kernel:
                return op
            if any(inner in self._stores for inner in above.walk()):
                return op
            op = above

    def _block(self, block: Block, stored: Values) -> Values:
        for op in tuple(block.ops):
            reads = self._reads.pop(op, None)
            if reads is not None:
                stored = self._compare(op, self._joined(op, reads), stored)
            if is_control_flow(op) and self._changes(op):
                assert isinstance(op, ControlFlowOp)
                stored = carry(op, stored, self._block)
            elif isinstance(op, MakeTensorMapOp):
                self._describe(op)
                if op.result in self._targets:
                    stored = self._turn_over(op, stored)
            elif op in self._stores:
                stored = self._add(op, stored)
        return stored

    def _changes(self, op: Operation) -> bool:
        """Whether an op stores, compares or makes descriptors inside."""
        relevant = self._stores | self._reads.keys()
        return any(i in relevant or isinstance(i, MakeTensorMapOp) for i in op.walk())

    def _joined(self, first: Operation, reads: Sequence[Operation]) -> list[Operation]:
        """Reads of a straight line that can be compared together, in front of its first one."""
        joined = list(reads)
        op = first.next_op
        while op is not None and not is_control_flow(op) and op not in self._stores:
            more = self._reads.get(op, ())
            if more and all(isinstance(m, LoadOp) and _move_address(m, first) for m in more):
                joined += self._reads.pop(op)
            op = op.next_op
        return joined

    # --- the numbers ---

    def _nothing(self, before: Operation) -> Values:
        return [_number(before, bound) for bound in (*_NOWHERE, *_NOWHERE, *_NOWHERE)]

    def _describe(self, op: MakeTensorMapOp) -> None:
        """The bytes of the tensor that a descriptor is of."""
        following = op.next_op
        assert following is not None
        make = TileBuilder(following)
        start = make.emit(PtrToIntOp, (op.base,), i64)
        last = _number(following, 0)
        for extent, stride in zip(op.shape, op.strides, strict=True):
            index = make.binary("subi", make.wide(extent), _number(following, 1))
            last = make.binary("addi", last, make.binary("muli", index, make.wide(stride)))
        assert isinstance(op.result.type, DescriptorType)
        size = _number(following, storage_bytes(op.result.type.block))
        ends = make.binary("addi", last, _number(following, 1))
        end = make.binary("addi", start, make.binary("muli", ends, size))
        self._spans[op.result] = start, end

    def _turn_over(self, op: Operation, stored: Values) -> Values:
        """A descriptor of what is stored is made anew: what was stored goes to what was before."""
        following = op.next_op
        assert following is not None
        make = TileBuilder(following)
        low, high = self._hull(make, (stored[0], stored[1]), (stored[2], stored[3]))
        return [low, high, *self._nothing(following)[:2], *stored[4:]]

    def _add(self, store: Operation, stored: Values) -> Values:
        """A block is stored: roles meet in front of it where one may still read what was there."""
        span = self._spans[store.operands[0]]
        stored = self._meet(store, [(span, (stored[4], stored[5]))], stored)
        following = store.next_op
        assert following is not None
        low, high = self._hull(TileBuilder(following), (stored[2], stored[3]), span)
        return [*stored[:2], low, high, *stored[4:]]

    @staticmethod
    def _hull(make: TileBuilder, one: Span, other: Span) -> Span:
        return make.binary("minsi", one[0], other[0]), make.binary("maxsi", one[1], other[1])

    # --- where roles meet ---

    def _compare(self, at: Operation, reads: Sequence[Operation], stored: Values) -> Values:
        """Meet in front of an op where a read overlaps what was stored; what is stored then."""
        make = TileBuilder(at)
        spans = dict.fromkeys(self._span_of(read, make) for read in reads)
        hulls = ((stored[0], stored[1]), (stored[2], stored[3]))
        stored = self._meet(at, [(span, hull) for span in spans for hull in hulls], stored)
        read_span = (stored[4], stored[5])
        if any(isinstance(read, LoadOp) for read in reads):
            for span in spans:
                read_span = self._hull(make, read_span, span)
        return [*stored[:4], *read_span]

    def _meet(self, at: Operation, pairs: Sequence[tuple[Span, Span]], stored: Values) -> Values:
        """Meet in front of an op where stretches of a pair overlap; what is stored then."""
        make = TileBuilder(at)
        found: SSAValue | None = None
        for (start, end), (low, high) in pairs:
            meets = make.binary("andi", _less(make, low, end), _less(make, start, high))
            found = meets if found is None else make.binary("ori", found, meets)
        assert found is not None and at.parent is not None
        inside = Block([build(MeetOp, location=at.location), build(YieldOp, location=at.location)])
        branch = build(IfOp, [found], (), None, [Region(inside), Region()], at.location)
        at.parent.insert_op_before(branch, at)
        nothing = self._nothing(at)
        return [
            make.emit(SelectOp, (found, none, bound), i64)
            for none, bound in zip(nothing, stored, strict=True)
        ]

    def _span_of(self, read: Operation, make: TileBuilder) -> Span:
        if isinstance(read, DescriptorLoadOp):
            return self._spans[read.desc]
        assert isinstance(read, LoadOp)
        start = make.emit(PtrToIntOp, (read.ptr,), i64)
        size = storage_bytes(read.results[0].type)
        return start, make.binary("addi", start, _number(make.before, size))


def _move_address(load: LoadOp, before: Operation) -> bool:
    """Compute the address of a load in front of an op of its block, where nothing is in the way."""
    needed: list[Operation] = []
    pending = [load.ptr]
    while pending:
        op = pending.pop().owner
        if not isinstance(op, Operation) or op.parent is not before.parent or op in needed:
            continue
        if op.is_before_in_block(before):
            continue
        if op is before or not is_free(op):
            return False
        needed.append(op)
        pending += op.operands
    assert before.parent is not None
    for op in [op for op in before.parent.ops if op in needed]:
        op.detach()
        before.parent.insert_op_before(op, before)
    return True


def _less(make: TileBuilder, left: SSAValue, right: SSAValue) -> SSAValue:
    return make.emit(CmpIOp, (left, right), i1, {"predicate": IntegerAttr(_LESS, i64)})


def _number(before: Operation, value: int) -> SSAValue:
    properties: dict[str, Attribute] = {"value": IntegerAttr(value, i64)}
    return TileBuilder(before).emit(ConstantOp, (), i64, properties)
