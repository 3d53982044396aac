"""What a rule of the per-thread emission may use: a tile is the registers of its layout.

A thread holds `layout.num_registers` elements of a tile, one LLVM value each, in the layout's
order. A shared tile is its byte offset in the program's shared memory, one i32.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Protocol

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilewright.codegen.context import EmitContext, Rule, TargetServices
from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.codegen.llvm_types import llvm_type
from tilewright.codegen.simt.index import ThreadIndex
from tilewright.codegen.simt.partition import Partition
from tilewright.codegen.simt.scope import Scope, ScopeServices, no_scope
from tilewright.ir.encoding import SharedType, TokenType, layout_of
from tilewright.ir.op import ElementwiseOp
from tilewright.schedule.annotations import equal_runs
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError
from tilewright.support.rules import RuleTable


@dataclass(frozen=True)
class GlobalAccess:
    """How a global access is made: codes of the published attributes, and volatility."""

    cache: str = ""
    evict: str = ""
    is_volatile: bool = False


@dataclass(frozen=True)
class AtomicAccess:
    """An access of global memory in one step, and what it orders.

    `kind` is that of a `tt.atomic_rmw` (add for floats too), or cas, load, store; `number` the
    float type that an addition is of, else ''. `order` is relaxed, acquire, release or acq_rel,
    `scope` gpu, cta or sys. Where `returns` is False nobody reads the old values.
    """

    kind: str
    bits: int
    number: str
    order: str
    scope: str
    returns: bool = True

    @property
    def releases(self) -> bool:
        """Whether accesses before it are done when it is."""
        return self.order in ("release", "acq_rel")

    @property
    def acquires(self) -> bool:
        """Whether accesses after it come after it."""
        return self.order in ("acquire", "acq_rel")

    def relaxed(self) -> AtomicAccess:
        """The same access, which orders nothing."""
        return replace(self, order="relaxed", returns=self.returns or self.acquires)


@dataclass(frozen=True)
class CallSite:
    """A line of the author's, and the kernel that it is in."""

    file: str
    line: int
    kernel: str


class ThreadServices(TargetServices, ScopeServices, Protocol):
    """What the default per-thread rules ask of a target; every value is an LLVM name.

    Which threads there are, and how they wait for each other, rules ask of their scope.
    """

    @property
    def num_barriers(self) -> int:
        """How many named barriers a cta has."""
        ...

    def start_registers(self, fn: FunctionBuilder, granted: int) -> None:
        """Say with how many registers a thread starts, where roles take `granted` of them later.

        They are those of one lane of each warp, added up; 0 where it is not known.
        """
        ...

    def resize_registers(self, fn: FunctionBuilder, registers: int) -> None:
        """Take or give back registers: from here on each thread of the warp group has so many."""
        ...

    def elect(self, fn: FunctionBuilder) -> str:
        """Whether this lane is the one that its warp elects, always the same one (i1)."""
        ...

    def barrier_arrive(self, fn: FunctionBuilder, number: str, threads: int) -> None:
        """Arrive at a named barrier (i32) of so many threads, and do not wait there."""
        ...

    def convert_floats(
        self,
        fn: FunctionBuilder,
        source: Attribute,
        target: Attribute,
        values: Sequence[str],
        rounding: str,
    ) -> list[str]:
        """Convert several floats; neighbours may share an instruction."""
        ...

    @property
    def has_matrix_moves(self) -> bool:
        """Whether a warp moves 8 x 8 matrices of 16-byte rows to and from shared memory."""
        ...

    def store_matrices(
        self, fn: FunctionBuilder, offset: str, words: Sequence[str], is_transposed: bool
    ) -> None:
        """Write one word of each lane for each of 1, 2 or 4 matrices to shared memory.

        Lane `8 m + j` gives the byte offset (i32) of row `j` of matrix `m`.
        """
        ...

    def load_matrices(
        self, fn: FunctionBuilder, offset: str, count: int, is_transposed: bool
    ) -> list[str]:
        """Read `count` matrices, a word of each for each lane; offsets as for stores."""
        ...

    def copy_async(
        self, fn: FunctionBuilder, offset: str, pointer: str, num_bytes: int, mask: str | None
    ) -> None:
        """Start copying 4, 8 or 16 bytes to shared memory; zeros where `mask` (i1) is false."""
        ...

    def commit_copies(self, fn: FunctionBuilder) -> None:
        """Close the group of the copies that this thread started."""
        ...

    def wait_copies(self, fn: FunctionBuilder, pending: int) -> None:
        """Wait until at most `pending` groups of this thread's copies run."""
        ...

    def opaque(self, fn: FunctionBuilder, value: str) -> str:
        """A number of 64 bits that LLVM knows nothing of, equal to `value`."""
        ...

    def program_id(self, fn: FunctionBuilder, axis: int) -> str:
        """The coordinate of the program along an axis, i32."""
        ...

    def num_programs(self, fn: FunctionBuilder, axis: int) -> str:
        """The extent of the grid along an axis, i32."""
        ...

    def grid_extent(self, axis: int) -> str:
        """The extent of the grid that the launch asks for along an axis, i32."""
        ...

    def shuffle_xor(self, fn: FunctionBuilder, word: str, mask: int) -> str:
        """The i32 `word` of the lane whose index is this one's xor `mask`."""
        ...

    def shuffle_index(self, fn: FunctionBuilder, word: str, lane: str) -> str:
        """The i32 `word` of lane `lane` (i32) of the same warp."""
        ...

    def fold_warp(self, fn: FunctionBuilder, kind: str, word: str) -> str | None:
        """The i32 words of all lanes of the warp folded; None where there is no such instruction.

        `kind` is one of add, and, or, xor, min, max, umin, umax.
        """
        ...

    def load_global(
        self,
        fn: FunctionBuilder,
        pointer: str,
        words: int,
        word_bits: int,
        predicate: str | None,
        fallback: Sequence[str] | None,
        access: GlobalAccess,
    ) -> list[str]:
        """`words` integers of `word_bits` at `pointer`, naturally aligned as a whole.

        Where `predicate` (i1) is false nothing is read and the values are `fallback`
        (undefined without).
        """
        ...

    def store_global(
        self,
        fn: FunctionBuilder,
        pointer: str,
        words: Sequence[str],
        word_bits: int,
        predicate: str | None,
        access: GlobalAccess,
    ) -> None:
        """Write the integers `words` to `pointer` where `predicate` holds."""
        ...

    def atomic_width(self, access: AtomicAccess, adjacent: int) -> int:
        """How many of `adjacent` elements one atomic access takes."""
        ...

    def atomic(
        self,
        fn: FunctionBuilder,
        access: AtomicAccess,
        pointer: str,
        operands: Sequence[Sequence[str]],
        width: int,
        predicate: str | None,
    ) -> list[str]:
        """One atomic access of `width` adjacent elements; the old values, none where not read.

        `operands` (of a cas: what is compared, then what is stored) and old values are integers
        of the access's width; where `predicate` is false nothing is done and they are 0.
        """
        ...

    def fence(self, fn: FunctionBuilder, scope: str) -> None:
        """Order this thread's accesses before against those after, as seen from `scope`."""
        ...

    def print_line(
        self, fn: FunctionBuilder, text: str, arguments: Sequence[tuple[str, str]]
    ) -> None:
        """Print by a format of printf; `arguments` are (LLVM type, name): i32, i64, double."""
        ...

    def fail(self, fn: FunctionBuilder, message: str, site: CallSite) -> None:
        """Report that an assertion failed in this thread, and stop the kernel."""
        ...


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
        if rule is not None:
            rule(self, op)
        else:
            self.emit_default(op)

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
