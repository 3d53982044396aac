"""What a rule of the per-thread emission may use: a tile is the registers of its layout.

A thread holds `layout.num_registers` elements of a tile, one LLVM value each, in the layout's
order. A shared tile is its byte offset in the program's shared memory, one i32.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import field

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilewright.analysis.ranges import Ranges
from tilewright.codegen.context import EmitContext, Rule
from tilewright.codegen.llvm_types import llvm_type
from tilewright.codegen.simt.allotment import Allotment, allot
from tilewright.codegen.simt.index import ThreadIndex
from tilewright.codegen.simt.partition import Partition
from tilewright.codegen.simt.scope import Scope, no_scope
from tilewright.codegen.simt.services import ThreadServices
from tilewright.ir.encoding import SharedType, TokenType, layout_of
from tilewright.ir.locations import span_of
from tilewright.ir.op import ElementwiseOp
from tilewright.ops.roles import RolesOp
from tilewright.schedule.annotations import equal_runs
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError, NotPowerOfTwo
from tilewright.support.rules import RuleTable


@dataclass
class SimtContext(EmitContext):
    """One thread's function being emitted; scalars are `values`, tiles are `tiles`.

    Rules run within `open_scope`, which says whose thread it is.
    """

    target: ThreadServices  # type: ignore[assignment]  # narrows the field of EmitContext
    tiles: dict[SSAValue, tuple[str, ...]] = field(default_factory=dict)
    default_rules: RuleTable[Rule] | None = None
    # Integers and pointers that are another one and a constant (bytes for a pointer) more.
    affine: dict[str, tuple[str, int]] = field(default_factory=dict)
    ranges: Ranges = field(default_factory=Ranges)
    _allotments: dict[RolesOp, Allotment] = field(default_factory=dict, init=False)
    _scope: Scope | None = field(default=None, init=False)

    @property
    def scope(self) -> Scope:
        """The threads that run what is being emitted."""
        if self._scope is None:
            raise no_scope()
        return self._scope

    @property
    def index(self) -> ThreadIndex:
        """Where the thread stands in its scope."""
        return self.scope.index

    @contextmanager
    def open_scope(self, partition: Partition) -> Generator[Scope]:
        """What is emitted here is run by the threads of a partition, and by no others."""
        outer = self._scope
        with self.fn.own_prologue():
            self._scope = Scope(self.fn, self.target, partition)
            try:
                yield self._scope
            finally:
                self._scope = outer

    def allotment(self, roles: RolesOp) -> Allotment:
        """Which warps and barriers each role has, found once."""
        if roles not in self._allotments:
            self._allotments[roles] = allot(roles)
        return self._allotments[roles]

    def registers(self, operand: SSAValue) -> tuple[str, ...]:
        """The registers of a tile; of a scalar its one value."""
        if not isinstance(operand.type, TensorType):
            return (self.value(operand),)
        names = self.tiles.get(operand)
        if names is None:
            raise InternalError(f"a tile of type {operand.type} was not emitted before its use")
        return names

    def define_tile(self, value: SSAValue, names: Sequence[str]) -> None:
        """Name the registers of a tile, or a scalar by the one name."""
        if not isinstance(value.type, TensorType):
            (self.values[value],) = names
            return
        expected = layout_of(value.type).num_registers
        if len(names) != expected:
            raise InternalError(f"{len(names)} registers for a tile of {expected}")
        self.tiles[value] = tuple(names)

    def parts(self, operand: SSAValue) -> list[str]:
        """The registers of a tile, the offset of a shared tile, or the scalar."""
        if isinstance(operand.type, TokenType):
            return []
        return list(self.registers(operand))

    def part_types(self, type_: Attribute) -> list[str]:
        """The LLVM types of the parts of a value of `type_`."""
        if isinstance(type_, TensorType):
            return [llvm_type(type_.element_type)] * layout_of(type_).num_registers
        if isinstance(type_, SharedType):
            return ["i32"]
        return [] if isinstance(type_, TokenType) else [llvm_type(type_)]

    def define_parts(self, value: SSAValue, names: Sequence[str]) -> None:
        """Name the parts of a value."""
        if not isinstance(value.type, TokenType):
            self.define_tile(value, names)

    def emit_op(self, op: Operation) -> None:
        """Emit one op: by its per-thread rule, or register by register where it is elementwise."""
        self.mark_line(op)
        rule = self.rules.find(type(op))
        if rule is None:
            self.emit_default(op)
            return
        try:
            rule(self, op)
        except NotPowerOfTwo as error:
            if error.span is None:
                error.span, error.chain = span_of(op)
            raise

    def emit_default(self, op: Operation) -> None:
        """Emit an op by its rule on scalars, register by register where it is elementwise."""
        assert self.default_rules is not None
        default = self.default_rules.find(type(op))
        if default is None:
            raise InternalError(f"no lowering rule for {op.name} ({self.rules.name})")
        if isinstance(op, ElementwiseOp):
            self.emit_elementwise(default, op)
            return
        if any(isinstance(v.type, TensorType) for v in (*op.operands, *op.results)):
            raise InternalError(f"no rule for {op.name} on tiles ({self.rules.name})")
        default(self, op)

    def emit_elementwise(self, rule: Rule, op: Operation) -> None:
        """Emit an elementwise op once for each register, by a rule on scalars."""
        if not any(isinstance(result.type, TensorType) for result in op.results):
            rule(self, op)
            return
        scalar = scalar_twin(op)
        columns: list[tuple[str, ...]] = []
        known: dict[object, tuple[str, ...]] = {}
        rows = zip(*(self.registers(v) for v in op.operands), strict=True)
        for row, run in zip(rows, _runs(op), strict=True):
            key = row if run is None else run
            if key not in known:
                self.values.update(zip(scalar.operands, row, strict=True))
                rule(self, scalar)
                known[key] = tuple(self.values[result] for result in scalar.results)
            columns.append(known[key])
        for index, result in enumerate(op.results):
            self.define_tile(result, [column[index] for column in columns])


def _runs(op: Operation) -> Sequence[object]:
    """For each register the run of equal elements that it is in, None where none is known.

    A thread's registers of one run are equal: coordinates are an exclusive or of what the
    thread and what the register adds, so whole runs map to whole runs.
    """
    layout = layout_of(op.results[0].type)
    runs = equal_runs(op)
    if not runs:
        return [None] * layout.num_registers
    limits = [min(run, extent) for run, extent in zip(runs, layout.atom, strict=True)]
    return [
        tuple(at // run for at, run in zip(offset, limits, strict=True))
        for offset in layout.register_offsets()
    ]


def scalar_twin(op: Operation) -> Operation:
    """The same op on scalars: operands are arguments of a block of its own."""
    block_types = [element_type(v.type) for v in op.operands]
    arguments = Block(arg_types=block_types).args
    return type(op).create(
        operands=arguments,
        result_types=[element_type(r.type) for r in op.results],
        properties=dict(op.properties),
        location=op.location,
    )


def element_type(type_: Attribute) -> Attribute:
    """The element type of a tile; the type itself for a scalar."""
    return type_.element_type if isinstance(type_, TensorType) else type_
