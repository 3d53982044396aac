"""From parsed functions to segments that a runner executes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from tilewright.interp.simt import types as t
from tilewright.interp.simt.arithmetic import binary, cast, compare
from tilewright.interp.simt.calls import Call, find_rule
from tilewright.interp.simt.constants import Constants
from tilewright.interp.simt.faults import Fault
from tilewright.interp.simt.machine import Machine
from tilewright.interp.simt.runner import Edge, Runner, Segment, Step
from tilewright.interp.simt.syntax import (
    Block,
    Constant,
    Function,
    InlineAssembly,
    Instruction,
    Local,
    Module,
    Operand,
    Site,
)
from tilewright.interp.simt.types import LlvmType
from tilewright.interp.simt.values import Value
from tilewright.ir.op import Array
from tilewright.support.errors import UndefinedValue, UnsupportedError

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
        self._ends: dict[str, Segment] = {}
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
        self._ends[block.label] = self.segments[-1]

    def translate(self, instruction: Instruction) -> None:
        """Add one instruction to the current segment."""
        rule = _RULES.get(instruction.opcode)
        if rule is None:
            raise UnsupportedError(f"the simulator does not know '{instruction.opcode}'")
        compute = rule(self, instruction)
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
            end = self._ends[block.label]
            end.edges = [self._edge(block.label, label) for label in last.labels]
            if last.opcode == "switch" or len(last.labels) > 1:
                end.condition = self.use_at(last.operands[0], end)
                end.cases = last.indices

    def use_at(self, operand: Operand, segment: Segment) -> int:
        """The slot of an operand that the end of `segment` reads."""
        slot = self.use(operand)
        self._users.setdefault(slot, set()).add(self.segments.index(segment))
        return slot

    def _edge(self, source: str, target: str) -> Edge:
        edge = Edge(self.starts[target])
        block = next(b for b in self.function.blocks if b.label == target)
        for phi in block.instructions:
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
_RULES: dict[str, Rule] = {}


def _rule(*opcodes: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        for opcode in opcodes:
            _RULES[opcode] = rule
        return rule

    return register


@_rule("add", "sub", "mul", "shl", "lshr", "ashr", "and", "or", "xor")
@_rule("fadd", "fsub", "fmul", "fdiv", "frem")
def _binary(fn: Translated, op: Instruction) -> Compute:
    operation = binary(op.opcode, op.type)
    values, a, b = fn.machine.values, fn.use(op.operands[0]), fn.use(op.operands[1])
    return lambda: operation(values[a], values[b])  # pyright: ignore[reportArgumentType]


@_rule("udiv", "sdiv", "urem", "srem")
def _divide(fn: Translated, op: Instruction) -> Compute:
    operation = binary(op.opcode, op.type)
    machine, a, b = fn.machine, fn.use(op.operands[0]), fn.use(op.operands[1])
    values = machine.values

    def compute() -> Value:
        left, right = _array(values[a]), _array(values[b])
        zero = right == 0
        if zero.any() and (machine.mask is None or (zero & machine.mask).any()):
            raise Fault(UndefinedValue, "an integer is divided by zero")
        return operation(left, right)

    return compute


def _array(value: Value | None) -> Array:
    assert isinstance(value, np.ndarray)
    return value


@_rule("fneg")
def _negate(fn: Translated, op: Instruction) -> Compute:
    values, a = fn.machine.values, fn.use(op.operands[0])
    return lambda: np.negative(_array(values[a]))


@_rule("freeze")
def _copy(fn: Translated, op: Instruction) -> Compute:
    values, a = fn.machine.values, fn.use(op.operands[0])
    return lambda: values[a]


@_rule("icmp", "fcmp")
def _compare(fn: Translated, op: Instruction) -> Compute:
    operation = compare(op.words[-1], op.operands[0].type)
    values, a, b = fn.machine.values, fn.use(op.operands[0]), fn.use(op.operands[1])
    return lambda: operation(_array(values[a]), _array(values[b]))


@_rule("trunc", "zext", "sext", "fptrunc", "fpext", "fptoui", "fptosi", "uitofp", "sitofp")
@_rule("ptrtoint", "inttoptr", "bitcast", "addrspacecast")
def _cast(fn: Translated, op: Instruction) -> Compute:
    values, a = fn.machine.values, fn.use(op.operands[0])
    if op.opcode == "bitcast" and op.operands[0].type == op.type:
        return lambda: values[a]
    operation = cast(op.opcode, op.operands[0].type, op.type)
    return lambda: operation(_array(values[a]))


@_rule("select")
def _select(fn: Translated, op: Instruction) -> Compute:
    values = fn.machine.values
    c, a, b = (fn.use(operand) for operand in op.operands)
    return lambda: np.where(_array(values[c]), _array(values[a]), _array(values[b]))


@_rule("getelementptr")
def _address(fn: Translated, op: Instruction) -> Compute:
    values, base = fn.machine.values, fn.use(op.operands[0])
    assert op.element is not None
    constant, terms = address_terms(op.element, op.operands[1:])
    slots = [(fn.use(operand), stride) for operand, stride in terms]
    offset = np.uint64(constant % (1 << 64))
    if not slots:
        return lambda: _array(values[base]) + offset

    def compute() -> Value:
        address = _array(values[base])
        for slot, stride in slots:
            index = _array(values[slot])
            wide = index.view(t.signed_dtype(index.dtype)).astype(np.int64)
            address = address + (wide * stride).view(np.uint64)
        return address + offset if constant else address

    return compute


def address_terms(
    element: LlvmType, indices: tuple[Operand, ...]
) -> tuple[int, list[tuple[Operand, int]]]:
    """The constant part of an address in bytes, and the variable indices with their strides."""
    constant, terms = 0, list[tuple[Operand, int]]()
    for position, index in enumerate(indices):
        if position and isinstance(element, t.StructType):
            assert isinstance(index, Constant)
            number = int(str(index.value or 0))
            constant += t.field_offset_bytes(element, number)
            element = element.fields[number]
            continue
        if position:
            assert isinstance(element, t.ArrayType | t.VectorType)
            element = element.element
        stride = t.size_bytes(element)
        if isinstance(index, Constant):
            constant += int(str(index.value or 0)) * stride
        else:
            terms.append((index, stride))
    return constant, terms


@_rule("load")
def _load(fn: Translated, op: Instruction) -> Compute:
    machine, a = fn.machine, fn.use(op.operands[0])
    values, space, align = machine.values, _space(op.operands[0]), _align(op, op.type)
    type_, site = op.type, op.site
    return lambda: machine.load(space, _array(values[a]), type_, align, site)


@_rule("store")
def _store(fn: Translated, op: Instruction) -> Compute:
    machine, v, a = fn.machine, fn.use(op.operands[0]), fn.use(op.operands[1])
    values, space, type_ = machine.values, _space(op.operands[1]), op.operands[0].type
    align, site = _align(op, type_), op.site

    def compute() -> None:
        value = values[v]
        assert value is not None
        machine.store(space, _array(values[a]), value, type_, align, site)

    return compute


def _space(pointer: Operand) -> int:
    assert isinstance(pointer.type, t.PointerType)
    return pointer.type.space


def _align(op: Instruction, type_: LlvmType) -> int:
    return min(op.align or t.alignment_bytes(type_), 16)


@_rule("alloca")
def _allocate(fn: Translated, op: Instruction) -> Compute:
    assert op.element is not None
    count = 1
    if op.operands:
        assert isinstance(op.operands[0], Constant)
        count = int(str(op.operands[0].value))
    align = op.align or t.alignment_bytes(op.element)
    offset = fn.machine.allocate_local(count * t.size_bytes(op.element), align)
    address = fn.program.constants.local_address(offset, _result_space(op))
    return lambda: address


def _result_space(op: Instruction) -> int:
    assert isinstance(op.type, t.PointerType)
    return op.type.space


@_rule("extractelement")
def _extract_element(fn: Translated, op: Instruction) -> Compute:
    values, v = fn.machine.values, fn.use(op.operands[0])
    if isinstance(op.operands[1], Constant):
        index = int(str(op.operands[1].value or 0))
        return lambda: _array(values[v])[index]
    i = fn.use(op.operands[1])
    threads = fn.machine.thread_ids

    def compute() -> Value:
        vector = _array(values[v])
        return vector[_array(values[i]).astype(np.int64) % len(vector), threads]

    return compute


@_rule("insertelement")
def _insert_element(fn: Translated, op: Instruction) -> Compute:
    values = fn.machine.values
    v, x, i = (fn.use(operand) for operand in op.operands)
    threads = fn.machine.thread_ids

    def compute() -> Value:
        vector = _array(values[v]).copy()
        vector[_array(values[i]).astype(np.int64), threads] = _array(values[x])
        return vector

    return compute


@_rule("shufflevector")
def _shuffle(fn: Translated, op: Instruction) -> Compute:
    values, a, b = fn.machine.values, fn.use(op.operands[0]), fn.use(op.operands[1])
    assert isinstance(op.type, t.VectorType)
    mask = op.operands[2]
    chosen = [0] * op.type.count
    if isinstance(mask, Constant) and isinstance(mask.value, tuple):
        lanes = [getattr(lane, "value", 0) for lane in mask.value]
        chosen = [int(lane or 0) for lane in lanes]
    return lambda: np.concatenate([_array(values[a]), _array(values[b])])[chosen]


@_rule("extractvalue")
def _extract_value(fn: Translated, op: Instruction) -> Compute:
    values, v, indices = fn.machine.values, fn.use(op.operands[0]), op.indices

    def compute() -> Value | None:
        value = values[v]
        for index in indices:
            assert isinstance(value, tuple)
            value = value[index]
        return value

    return compute


@_rule("insertvalue")
def _insert_value(fn: Translated, op: Instruction) -> Compute:
    values, indices = fn.machine.values, op.indices
    v, x = fn.use(op.operands[0]), fn.use(op.operands[1])

    def compute() -> Value:
        return _replaced(values[v], indices, values[x])

    return compute


def _replaced(value: Value | None, indices: tuple[int, ...], member: Value | None) -> Value:
    assert isinstance(value, tuple) and member is not None
    new = member if len(indices) == 1 else _replaced(value[indices[0]], indices[1:], member)
    return (*value[: indices[0]], new, *value[indices[0] + 1 :])


@_rule("call")
def _call(fn: Translated, op: Instruction) -> Compute | None:
    if isinstance(op.callee, InlineAssembly):
        raise UnsupportedError(f"inline assembly is not simulated: {op.callee.template}")
    if not isinstance(op.callee, str):
        raise UnsupportedError("the simulator does not call through pointers")
    slots = [fn.use(operand) for operand in op.operands]
    if op.callee in fn.program.module.functions:
        return _internal_call(fn, op.callee, slots)
    rule = find_rule(op.callee)
    if rule is None:
        raise UnsupportedError(f"the simulator does not know '{op.callee}'")
    call = Call(fn.machine, op.callee, op, slots)
    compute = rule(call)
    if call.is_suspension:
        assert compute is not None
        fn.suspend(op.site, lambda: _ignore(compute()), op.callee)
        return None
    return compute


def _ignore(value: object) -> None:
    del value


def _internal_call(fn: Translated, name: str, slots: list[int]) -> Compute:
    values, callee = fn.machine.values, fn.program.function(name)

    def compute() -> Value | None:
        arguments = [values[slot] for slot in slots]
        return callee.call([a for a in arguments if a is not None])

    return compute


@_rule("br", "switch")
def _jump(fn: Translated, op: Instruction) -> None:
    del fn, op  # edges are made when every label is known


@_rule("ret")
def _return(fn: Translated, op: Instruction) -> Compute | None:
    if not op.operands:
        return None
    values, v, returned = fn.machine.values, fn.use(op.operands[0]), fn.returned
    fn.segments[-1].steps.append(Step(returned, lambda: values[v], op.site))
    fn.keep(returned)
    return None


@_rule("unreachable")
def _trap(fn: Translated, op: Instruction) -> None:
    fn.segments[-1].is_trap = True


@_rule("fence")
def _fence(fn: Translated, op: Instruction) -> Compute:
    return lambda: None
