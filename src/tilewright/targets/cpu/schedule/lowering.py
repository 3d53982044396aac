"""The state of lowering one kernel: its C2 scalars, its buffers, its report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from math import prod

from xdsl.dialects.builtin import IntegerAttr, LocationAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from tilewright.ir.op import build
from tilewright.ir.types import element_of, pointer_to, shape_of
from tilewright.machine.model import MachineModel
from tilewright.ops.control_flow import ForOp
from tilewright.ops.matmul.ir import DotOp
from tilewright.ops.memory.ir import StoreOp
from tilewright.support.dataclass import dataclass, replace
from tilewright.targets.cpu.ops import AllocOp
from tilewright.targets.cpu.report import ReportBuilder
from tilewright.targets.cpu.schedule.bufferization import Bufferization, PackForm
from tilewright.targets.cpu.schedule.roots import Root, reshaped_from
from tilewright.targets.cpu.schedule.storage import Buffer


@dataclass(frozen=True)
class Limits:
    """The rows and columns of a product that are seen, and the k that are summed: i64, from 1."""

    rows: SSAValue
    columns: SSAValue
    depth: SSAValue

    def of(self, form: PackForm) -> tuple[SSAValue, SSAValue]:
        """How much of an operand's tile is read, along its rows and its columns."""
        rows, columns = (self.rows, self.depth) if form.role == "a" else (self.depth, self.columns)
        return (columns, rows) if form.transposed else (rows, columns)


@dataclass(frozen=True, eq=False)
class DirectStore:
    """A sum over the steps of `loops`, one after the other, that only `store` uses.

    `fill` would make the zeros which the first product is added to.
    """

    store: StoreOp
    loops: tuple[ForOp, ...]
    products: tuple[DotOp, ...]
    fill: Root


@dataclass(frozen=True)
class Guard:
    """Where a loaded row is read after a store that may hit it: in `buffer` if `is_copied` (i1)."""

    is_copied: SSAValue
    buffer: Buffer


@dataclass
class Lowering:
    """Where every T0 value of one kernel is found at C2.

    `is_bound_by_memory`: it computes nothing of tiles that takes long, and multiplies none.
    `read_arguments`: those that a kernel loads through, once somebody has asked.
    """

    machine: MachineModel
    bufferization: Bufferization
    entry: Block
    report: ReportBuilder
    location: LocationAttr | None = None
    may_be_alone: bool = False
    is_bound_by_memory: bool = False
    scalars: dict[SSAValue, SSAValue] = field(default_factory=dict)
    buffers: dict[SSAValue, Buffer] = field(default_factory=dict)
    packed: dict[PackForm, Buffer] = field(default_factory=dict)
    unpacked: dict[PackForm, tuple[SSAValue, SSAValue]] = field(default_factory=dict)
    sources: dict[PackForm, tuple[SSAValue, SSAValue]] = field(default_factory=dict)
    in_memory: dict[PackForm, SSAValue] = field(default_factory=dict)
    kept: set[PackForm] = field(default_factory=set)
    limits: dict[Operation, Limits | None] = field(default_factory=dict)
    direct: dict[Operation, DirectStore] = field(default_factory=dict)
    guards: dict[SSAValue, Guard] = field(default_factory=dict)
    flags: dict[DirectStore, Buffer] = field(default_factory=dict)
    read_arguments: dict[Operation, frozenset[SSAValue | None]] = field(default_factory=dict)
    _last_allocation: Operation | None = None

    def scalar(self, value: SSAValue) -> SSAValue:
        """The C2 value of a T0 scalar."""
        return self.scalars[value]

    def define(self, values: Mapping[SSAValue, SSAValue]) -> None:
        """Record the C2 values of scalars."""
        self.scalars.update(values)

    def buffer(self, value: SSAValue) -> Buffer:
        """The buffer of a materialised tile; allocated on first mention."""
        source = reshaped_from(value)
        if source is not None and value not in self.bufferization.stored:
            return self.buffer(source).reshaped(shape_of(value.type))
        key = self.bufferization.key(value)
        found = self.buffers.get(key)
        if found is None:
            element = self.bufferization.elements.get(key) or element_of(key.type)
            shape, pitch = shape_of(key.type), self.bufferization.pitches.get(key)
            count = 0 if pitch is None else shape[0] * pitch
            found = self.allocate(shape, element, _label(key), count)
            last = 0 if key in self.bufferization.turned else None
            found = self.buffers[key] = replace(found, pitch=pitch, last=last)
        return found

    def allocate(
        self,
        shape: tuple[int, ...],
        element: Attribute,
        label: str,
        num_elems: int = 0,
        is_kept: bool = False,
    ) -> Buffer:
        """A new buffer; allocations stand at the kernel's entry."""
        properties: dict[str, Attribute] = {
            "num_elems": IntegerAttr(max(num_elems, prod(shape)), i64),
            "label": StringAttr(label),
        }
        if is_kept:
            properties["kept"] = UnitAttr()
        op = build(AllocOp, (), (pointer_to(element),), properties, location=self.location)
        first = self.entry.first_op
        if self._last_allocation is not None:
            self.entry.insert_op_after(op, self._last_allocation)
        elif first is not None:
            self.entry.insert_op_before(op, first)
        else:
            self.entry.add_op(op)
        self._last_allocation = op
        return Buffer(op.results[0], shape, element)


def _label(value: SSAValue) -> str:
    if value.name_hint:
        return value.name_hint
    return value.op.name if isinstance(value, OpResult) else "carried"
