"""A region prepared for evaluation: ops become steps, SSA values become slots.

A *rule* prepares one op once and returns the function that evaluates it. There are two kinds:
a plain rule's function takes the program and the operands and returns the results; a control
rule's function is a generator over the program that moves values between slots itself and
yields where another program may run.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from enum import Enum
from typing import Any

import numpy as np
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from tilewright.interp.program import Program
from tilewright.interp.values import EVERYWHERE
from tilewright.ir.locations import span_of
from tilewright.ir.op import Array, TileOp
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError, MissingRule
from tilewright.support.rules import RuleTable

ARRAYS = (np.ndarray, np.generic)
"""What values of scalar, tile and vector types are."""


class Pause(Enum):
    """Why a program lets others run."""

    ATOMIC = "atomic"
    SPIN = "spin"
    RING = "ring"


Running = Generator[Pause, None, None]
# Values are arrays, block pointers or descriptors, as the op's types say; `Any` because the
# table below erases which.
PlainFunction = Callable[..., Any]
ControlFunction = Callable[[Program], Running]
# From an op, its operands and the masks of their undefined elements to those of its results.
Taint = Callable[[Operation, Sequence[Any], Sequence[Array | None]], "Array | tuple[Array, ...]"]


@dataclass(frozen=True)
class Step:
    """One op with its slots; exactly one of `plain` and `control` is set.

    `taint` says which results are undefined when operands are; without it the whole of every
    result is.
    """

    operation: Operation
    operands: tuple[int, ...]
    results: tuple[int, ...]
    plain: PlainFunction | None = None
    control: ControlFunction | None = None
    taint: Taint | None = None


@dataclass(frozen=True)
class Code:
    """A block: its steps in order, the slots of its arguments and of what it ends with."""

    arguments: tuple[int, ...]
    steps: tuple[Step, ...]
    terminator: Operation
    outputs: tuple[int, ...]


PlainRule = Callable[[Operation, "Preparation"], PlainFunction]
ControlRule = Callable[[Operation, "Preparation"], ControlFunction]


class Rules:
    """The rule tables of a level; a target adds its own on top of the shared ones."""

    def __init__(self, name: str, parent: Rules | None = None) -> None:
        plain = None if parent is None else parent.plain
        control = None if parent is None else parent.control
        self.plain: RuleTable[PlainRule] = RuleTable(f"{name} interpretation", plain)
        taint = None if parent is None else parent.taint
        self.control: RuleTable[ControlRule] = RuleTable(f"{name} control flow", control)
        self.taint: RuleTable[Taint] = RuleTable(f"{name} undefined values", taint)

    def plain_rule(self, cls: type[Operation]) -> PlainRule | None:
        """The plain rule of ops of `cls`: that of `TileOp` where they just have a `reference`."""
        rule = self.plain.find(cls)
        if rule is None and issubclass(cls, TileOp) and cls.reference is not TileOp.reference:
            return self.plain.find(TileOp)
        return rule

    def covers(self, cls: type[Operation]) -> bool:
        """Whether ops of `cls` can be evaluated or end a region."""
        return self.plain_rule(cls) is not None or self.control.find(cls) is not None


class Preparation:
    """Turns the blocks of one function into code, with a slot for each value."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._slots: dict[SSAValue, int] = {}

    @property
    def num_slots(self) -> int:
        """How many slots a program needs."""
        return len(self._slots)

    def slot(self, value: SSAValue) -> int:
        """The slot of a value."""
        return self._slots.setdefault(value, len(self._slots))

    def slots(self, values: Iterable[SSAValue]) -> tuple[int, ...]:
        """The slots of a sequence of values."""
        return tuple(self.slot(value) for value in values)

    def region(self, region: Region) -> Code:
        """The code of a region of one block."""
        return self.block(region.block)

    def block(self, block: Block) -> Code:
        """The code of a block that ends with a terminator."""
        *body, last = block.ops
        if not last.has_trait(IsTerminator):
            raise InternalError(f"block of {block.parent_op()} ends without a terminator")
        arguments = self.slots(block.args)
        steps = tuple(self._step(operation) for operation in body)
        return Code(arguments, steps, last, self.slots(last.operands))

    def _step(self, operation: Operation) -> Step:
        operands = self.slots(operation.operands)
        control = self._rules.control.find(type(operation))
        if control is not None:
            function = control(operation, self)
            return Step(operation, operands, self.slots(operation.results), control=function)
        rule = self._rules.plain_rule(type(operation))
        if rule is None:
            raise _unknown(operation)
        plain = rule(operation, self)
        taint = self._rules.taint.find(type(operation))
        return Step(operation, operands, self.slots(operation.results), plain=plain, taint=taint)


def _unknown(operation: Operation) -> MissingRule:
    span, chain = span_of(operation)
    return MissingRule(
        f"{operation.name} has no meaning for the interpreter",
        hint=f"give `{type(operation).__name__}` a method `reference`, which computes the results "
        "from NumPy arrays",
        span=span,
        chain=chain,
    )


def execute(code: Code, program: Program) -> Running:
    """Run the steps of a block; afterwards its outputs are in their slots."""
    values = program.values
    for step in code.steps:
        program.operation = step.operation
        if step.control is not None:
            yield from step.control(program)
            continue
        assert step.plain is not None
        results = step.plain(program, *[values[slot] for slot in step.operands])
        if type(results) is not tuple:
            results = (results,) if step.results else ()
        for slot, result in zip(step.results, results, strict=True):
            values[slot] = result
        if program.has_poison:
            _spread_poison(step, program)
        for observer in program.machine.observers:
            observer.after_op(step.operation, program.coordinates, results)


def _spread_poison(step: Step, program: Program) -> None:
    """Find which elements of a step's results are undefined."""
    poison, fresh = program.poison, program.fresh_poison
    program.fresh_poison = None
    masks = [poison[slot] for slot in step.operands]
    if all(mask is None for mask in masks):
        for slot in step.results:
            poison[slot] = fresh
        return
    if step.taint is None:
        tainted: Array | tuple[Array, ...] = EVERYWHERE
    else:
        values = [program.values[slot] for slot in step.operands]
        tainted = step.taint(step.operation, values, masks)
    if not isinstance(tainted, tuple):
        tainted = (tainted,) * len(step.results)
    for slot, mask in zip(step.results, tainted, strict=True):
        poison[slot] = _normalised(program.values[slot], mask if fresh is None else mask | fresh)


def _normalised(value: object, mask: Array) -> Array | None:
    """`mask` in the shape of `value`, or None when it marks nothing."""
    if not np.any(mask):
        return None
    return np.broadcast_to(mask, np.shape(value)) if isinstance(value, ARRAYS) else EVERYWHERE


def run_now(code: Code, program: Program) -> None:
    """Run a block that may not let other programs run."""
    for pause in execute(code, program):
        raise InternalError(f"a combine region paused ({pause.value})")
