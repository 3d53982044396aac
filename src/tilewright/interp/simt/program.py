"""From parsed functions to segments that a runner executes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from tilewright.interp.simt.constants import Constants
from tilewright.interp.simt.machine import Machine
from tilewright.interp.simt.runner import Edge, Runner, Segment, Step
from tilewright.interp.simt.syntax import (
    Block,
    Function,
    Instruction,
    Local,
    Module,
    Operand,
    Site,
)
from tilewright.interp.simt.values import Value
from tilewright.ir.op import Array
from tilewright.support.errors import UnsupportedError

Compute = Callable[[], "Value | None"]
_ELSEWHERE = -1


class Program:
    """The functions of a module, translated for one machine when they are first needed."""

    def __init__(self, module: Module, machine: Machine, step_limit: int) -> None:
        self.module = module
        self.machine = machine
        self.step_limit = step_limit
        self.constants = Constants(module, machine)
        self.functions: dict[str, Translated] = {}

    def function(self, name: str) -> Translated:
        """A function of the module, translated."""
        found = self.functions.get(name)
        if found is None:
            function = self.module.functions.get(name)
            if function is None:
                raise UnsupportedError(f"the simulator does not know the function '{name}'")
            found = self.functions[name] = Translated(self, function)
        return found

    def count_instructions(self) -> Counter[str]:
        """The instructions that warps executed, by kind."""
        total: Counter[str] = Counter()
        for function in self.functions.values():
            for segment in function.segments:
                for kind, count in segment.counts.items():
                    total[kind] += count * segment.executions
        return total


class Translated:
    """One function as segments; each of its values has a slot in the machine."""

    def __init__(self, program: Program, function: Function) -> None:
        self.program = program
        self.machine = program.machine
        self.function = function
        self.segments: list[Segment] = []
        self.slots: dict[str, int] = {}
        self.starts: dict[str, int] = {}
        self._ends: dict[str, int] = {}
        self._blocks = {block.label: block for block in function.blocks}
        self._users: dict[int, set[int]] = {}
        self.parameters = [self.slot(parameter.name) for parameter in function.parameters]
        self.returned = self.new_slot()
        for block in function.blocks:
            self._translate_block(block)
        self._connect()
        self._mark_locals()
        self.runner: Runner | None = None

    # --- slots ------------------------------------------------------------------------------

    def new_slot(self) -> int:
        """A slot without a name."""
        self.machine.values.append(None)
        return len(self.machine.values) - 1

    def slot(self, name: str) -> int:
        """The slot of `%name`."""
        found = self.slots.get(name)
        if found is None:
            found = self.slots[name] = self.new_slot()
        return found

    def use(self, operand: Operand) -> int:
        """The slot of an operand that the current segment reads."""
        if not isinstance(operand, Local):
            return self.program.constants.slot(operand)
        slot = self.slot(operand.name)
        self._users.setdefault(slot, set()).add(len(self.segments) - 1)
        return slot

    def keep(self, slot: int) -> None:
        """Mark a slot as read at places that are no segment."""
        self._users.setdefault(slot, set()).add(_ELSEWHERE)

    def _mark_locals(self) -> None:
        """Values that only their own segment reads need no merging with other threads'."""
        for index, segment in enumerate(self.segments):
            for step in segment.steps:
                step.is_local = self._users.get(step.slot, set()) <= {index}

    # --- segments ---------------------------------------------------------------------------

    def begin(self, label: str, site: Site) -> Segment:
        """Start a segment behind the others."""
        self.segments.append(Segment(label, site))
        return self.segments[-1]

    def _translate_block(self, block: Block) -> None:
        self.starts[block.label] = len(self.segments)
        self.begin(block.label, block.instructions[0].site)
        for instruction in block.instructions:
            if instruction.opcode != "phi":
                self.translate(instruction)
        self._ends[block.label] = len(self.segments) - 1

    def translate(self, instruction: Instruction) -> None:
        """Add one instruction to the current segment."""
        found = _RULES.get(instruction.opcode)
        if found is None:
            raise UnsupportedError(f"the simulator does not know '{instruction.opcode}'")
        compute = found(self, instruction)
        if compute is not None:
            self.add(instruction, compute)

    def add(self, instruction: Instruction, compute: Compute) -> None:
        """Append what computes an instruction's value."""
        slot = self.slot(instruction.result) if instruction.result else 0
        segment = self.segments[-1]
        segment.steps.append(Step(slot, compute, instruction.site, not instruction.result))
        callee = instruction.callee
        segment.counts[callee if callee and isinstance(callee, str) else instruction.opcode] += 1

    def suspend(self, site: Site, action: Callable[[], None], kind: str) -> None:
        """End the segment with something that threads may wait in."""
        segment = self.segments[-1]
        segment.suspend = action
        segment.site = site
        segment.counts[kind] += 1
        segment.edges = [Edge(len(self.segments))]
        self.begin(segment.label, site)

    def _connect(self) -> None:
        """Turn labels into segments, and phis into values that edges carry."""
        for block in self.function.blocks:
            last = block.instructions[-1]
            index = self._ends[block.label]
            end = self.segments[index]
            end.edges = [self._edge(block.label, label) for label in last.labels]
            if last.opcode == "switch" or len(last.labels) > 1:
                end.condition = self.use(last.operands[0])
                self._users.setdefault(end.condition, set()).add(index)
                end.cases = last.indices

    def _edge(self, source: str, target: str) -> Edge:
        edge = Edge(self.starts[target])
        for phi in self._blocks[target].instructions:
            if phi.opcode != "phi":
                break
            operand = phi.operands[phi.labels.index(source)]
            slot = self.slot(phi.result)
            # Phis are written at the end of other segments, so they are never local.
            self.keep(slot)
            source_slot = self.use(operand)
            self.keep(source_slot)
            edge.slots.append(slot)
            edge.sources.append(source_slot)
        return edge

    # --- execution --------------------------------------------------------------------------

    def call(self, arguments: list[Value]) -> Value | None:
        """Run the function in the active threads."""
        values = self.machine.values
        for slot, argument in zip(self.parameters, arguments, strict=True):
            values[slot] = argument
        if self.runner is None:
            limit = self.program.step_limit
            self.runner = Runner(self.machine, self.segments, limit, is_kernel=False)
        self.runner.run(self.machine.mask)
        return values[self.returned]


Rule = Callable[[Translated, Instruction], "Compute | None"]
_AnyRule = TypeVar("_AnyRule", bound=Rule)
_RULES: dict[str, Rule] = {}


def rule(*opcodes: str) -> Callable[[_AnyRule], _AnyRule]:
    """Decorate a function as the rule of LLVM instructions."""

    def register(function: _AnyRule) -> _AnyRule:
        for opcode in opcodes:
            assert opcode not in _RULES, f"second rule for {opcode}"
            _RULES[opcode] = function
        return function

    return register


def array_of(value: Value | None) -> Array:
    """A value that is no aggregate."""
    assert isinstance(value, np.ndarray)
    return value
