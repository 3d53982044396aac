"""Inline assembly calls as steps of the program around them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

import numpy as np

from tilewright.interp.simt import types as t
from tilewright.interp.simt.in_flight import InFlight
from tilewright.interp.simt.kinds import as_kind
from tilewright.interp.simt.machine import Machine
from tilewright.interp.simt.ptx import (
    arithmetic as arithmetic,
)
from tilewright.interp.simt.ptx import (
    collective as collective,
)
from tilewright.interp.simt.ptx import (
    copies as copies,
)
from tilewright.interp.simt.ptx import (
    mbarriers as mbarriers,
)
from tilewright.interp.simt.ptx import (
    memory as memory,
)
from tilewright.interp.simt.ptx import (
    products as products,
)
from tilewright.interp.simt.ptx.parse import PtxInstruction, PtxLabel, Register, parse_ptx
from tilewright.interp.simt.ptx.registers import Read, Registers
from tilewright.interp.simt.ptx.rules import Compute, PtxCall, find_ptx_rule
from tilewright.interp.simt.runner import Edge, Segment, Step
from tilewright.interp.simt.syntax import InlineAssembly, Instruction, Operand, Site
from tilewright.interp.simt.values import Value, merge
from tilewright.support.errors import UnsupportedError

_TIE = re.compile(r"^\d+$")


class Surroundings(Protocol):
    """What a block needs of the function that it stands in."""

    machine: Machine
    segments: list[Segment]

    def use(self, operand: Operand) -> int:
        """The slot of an operand."""
        ...

    def keep(self, slot: int) -> None:
        """Mark a slot as read elsewhere."""
        ...

    def slot(self, name: str) -> int:
        """The slot of a value."""
        ...

    def new_slot(self) -> int:
        """A slot without a name."""
        ...

    def begin(self, label: str, site: Site) -> Segment:
        """Start a segment."""
        ...

    def suspend(self, site: Site, action: Callable[[], None], kind: str) -> None:
        """End the segment with something that threads may wait in."""
        ...


def translate_assembly(fn: Surroundings, op: Instruction) -> None:
    """Add the steps of an inline assembly call to a function."""
    assert isinstance(op.callee, InlineAssembly)
    _Block(fn, op, op.callee).translate()


class _Block:
    """One call: its registers, and its labels as segments."""

    def __init__(self, fn: Surroundings, op: Instruction, assembly: InlineAssembly) -> None:
        self.fn = fn
        self.op = op
        self.machine = fn.machine
        self.parsed = parse_ptx(assembly.template)
        self.has_labels = self.parsed.has_labels()
        self.outputs: list[int] = []
        names = self._operand_slots(assembly.constraints)
        for name in self.parsed.registers:
            names[name] = fn.new_slot()
        self.registers = Registers(fn.machine, names, self.parsed.registers)
        self.starts: dict[str, int] = {}
        self.branches: list[tuple[Edge, str]] = []

    def _operand_slots(self, constraints: str) -> dict[str, int]:
        """The slots of `$0`, `$1`…: outputs first; tied inputs give outputs their first value."""
        slots: dict[str, int] = {}
        inputs = iter(self.op.operands)
        for constraint in (c for c in constraints.split(",") if c and c[0] != "~"):
            if constraint.startswith("="):
                self.outputs.append(self.fn.new_slot())
                slots[f"${len(slots)}"] = self.outputs[-1]
                continue
            source = self.fn.use(next(inputs))
            if self.has_labels:
                self.fn.keep(source)
            if _TIE.match(constraint):
                self._append(self.outputs[int(constraint)], self._copy(source))
                slots[f"${len(slots)}"] = self.outputs[int(constraint)]
            else:
                slots[f"${len(slots)}"] = source
        return slots

    def _copy(self, source: int) -> Callable[[], Value | None]:
        values = self.machine.values
        return lambda: values[source]

    def _append(self, slot: int, compute: Callable[[], Value | None]) -> None:
        self.fn.segments[-1].steps.append(
            Step(slot, compute, self.op.site, is_local=not self.has_labels)
        )

    def translate(self) -> None:
        """Add every instruction, then the call's result."""
        for item in self.parsed.items:
            if isinstance(item, PtxLabel):
                self._place(item.name)
            elif item.opcode[0] == "bra":
                self._branch(item)
            else:
                self._instruction(item)
        for edge, label in self.branches:
            edge.target = self.starts[label]
        if self.op.result:
            segment = self.fn.segments[-1]
            segment.steps.append(Step(self.fn.slot(self.op.result), self._result(), self.op.site))

    # --- control flow -----------------------------------------------------------------------

    def _next_segment(self) -> int:
        index = len(self.fn.segments)
        self.fn.begin(self.fn.segments[-1].label, self.op.site)
        return index

    def _place(self, label: str) -> None:
        before = self.fn.segments[-1]
        index = self._next_segment()
        if not before.edges:
            before.edges = [Edge(index)]
        self.starts[label] = index

    def _branch(self, item: PtxInstruction) -> None:
        target = item.operands[0]
        assert isinstance(target, Register)
        segment = self.fn.segments[-1]
        taken = Edge(-1)
        self.branches.append((taken, target.name))
        index = self._next_segment()
        segment.edges = [taken]
        if item.predicate:
            segment.condition = self.registers.slot(Register(item.predicate))
            segment.edges = [taken, Edge(index)]
            if item.is_negated:
                segment.edges.reverse()

    # --- instructions -----------------------------------------------------------------------

    def _instruction(self, item: PtxInstruction) -> None:
        rule = find_ptx_rule(item.opcode)
        call = PtxCall(self.machine, self.registers, item, self.op.site)
        if rule is None:
            raise call.unknown()
        compute = rule(call)
        self.fn.segments[-1].counts[".".join(item.opcode)] += 1
        if call.is_suspension:
            if item.predicate:
                raise UnsupportedError(f"a predicated barrier is not simulated: '{item.text}'")
            self.fn.suspend(self.op.site, lambda: _ignore(compute()), item.opcode[0])
            return
        self._append(0, self._assigning(item, compute, call.destinations))

    def _assigning(
        self, item: PtxInstruction, compute: Compute, destinations: list[int]
    ) -> Callable[[], None]:
        """Compute and give the destinations their values, under the predicate if there is one."""
        machine, values, merges = self.machine, self.machine.values, self.has_labels
        predicate: Read | None = None
        if item.predicate:
            predicate = self.registers.reader(Register(item.predicate), "pred")
        is_negated = item.is_negated

        def run() -> None:
            if predicate is None:
                results = compute()
                mask = machine.mask if merges else None
            else:
                holds = ~predicate() if is_negated else predicate()
                mask = holds if machine.mask is None else holds & machine.mask
                if not mask.any():
                    return
                saved, machine.mask = machine.mask, None if mask.all() else mask
                try:
                    results = compute()
                finally:
                    machine.mask = saved
            for slot, result in zip(destinations, results or (), strict=True):
                values[slot] = result if mask is None else _merged(mask, result, values[slot])

        return run

    def _result(self) -> Callable[[], Value | None]:
        """The call's value from its output registers, read as the types that LLVM names."""
        values, outputs = self.machine.values, self.outputs
        type_ = self.op.type
        if isinstance(type_, t.StructType):
            pairs = list(zip(outputs, type_.fields, strict=True))
            return lambda: tuple(_typed(values[slot], field) for slot, field in pairs)
        return lambda: _typed(values[outputs[0]], type_)


def _merged(mask: np.ndarray, new: Value, old: Value | None) -> Value:
    """Merge what may be read as different types of one width.

    A byte that is loaded is extended to the register that takes it, by the sign of its type.
    """
    if isinstance(old, np.ndarray) and isinstance(new, np.ndarray) and old.dtype != new.dtype:
        if old.dtype.itemsize > new.dtype.itemsize and {old.dtype.kind, new.dtype.kind} <= {*"iu"}:
            new = new.astype(old.dtype)
        if old.dtype.itemsize != new.dtype.itemsize or old.dtype == np.bool_:
            return new
        old = old.view(new.dtype)
    return merge(mask, new, old)


def _typed(value: Value | None, type_: t.LlvmType) -> Value:
    """A register's bits as a value of an LLVM type."""
    assert value is not None, "an output of inline assembly is never written"
    if isinstance(value, InFlight):
        if not value.is_complete():
            return value
        value = value.array
    assert isinstance(value, np.ndarray)
    dtype = t.dtype_of(type_)
    if isinstance(type_, t.VectorType):
        elements = as_kind(value, f"u{t.width_bits(type_)}")
        return np.ascontiguousarray(elements)[:, None].view(dtype).T
    if value.dtype == dtype:
        return value
    if dtype == np.bool_:
        return value != 0
    if value.dtype.itemsize != dtype.itemsize:
        value = value.view(f"u{value.dtype.itemsize}").astype(f"u{dtype.itemsize}")
    return value.view(dtype)


def _ignore(value: object) -> None:
    del value
