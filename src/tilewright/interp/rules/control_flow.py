"""Structured control flow: loops, branches and calls."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Operation

from tilewright.interp.access import require_defined
from tilewright.interp.code import (
    ARRAYS,
    Code,
    ControlFunction,
    Pause,
    Preparation,
    Running,
    execute,
    run_now,
)
from tilewright.interp.program import Program
from tilewright.interp.rules.tables import TILE_RULES
from tilewright.interp.values import NOWHERE, dtype_of
from tilewright.ir.op import Array
from tilewright.ops.control_flow import ForOp, IfOp, WhileOp
from tilewright.ops.function import CallOp, FuncOp
from tilewright.support.errors import InternalError, LoopStepNotPositive


def _scalar(program: Program, slot: int, what: str) -> int:
    require_defined(program, what, program.poison[slot])
    value = program.values[slot]
    assert isinstance(value, ARRAYS)
    return int(value)


@TILE_RULES.control.register(ForOp)
def for_loop(operation: Operation, preparation: Preparation) -> ControlFunction:
    """scf.for: lower bound up to, and without, the upper bound by a positive step."""
    assert isinstance(operation, ForOp)
    bounds = preparation.slots((operation.lb, operation.ub, operation.step))
    initial = preparation.slots(operation.iter_args)
    code = preparation.region(operation.body)
    results = preparation.slots(operation.results)
    counter, *carried_list = code.arguments
    carried = tuple(carried_list)
    dtype = dtype_of(operation.lb.type)

    def run(program: Program) -> Running:
        low, high, step = (_scalar(program, slot, "a loop bound") for slot in bounds)
        if step <= 0:
            raise program.fault(LoopStepNotPositive, f"the loop's step is {step}")
        program.move(initial, carried)
        for value in range(low, high, step):
            program.values[counter] = np.array(value, dtype)
            yield from execute(code, program)
            program.move(code.outputs, carried)
        program.move(carried, results)
        program.operation = operation

    return run


@TILE_RULES.control.register(WhileOp)
def while_loop(operation: Operation, preparation: Preparation) -> ControlFunction:
    """scf.while, which lets other programs run when it waits for them."""
    assert isinstance(operation, WhileOp)
    initial = preparation.slots(operation.arguments)
    before = preparation.region(operation.before_region)
    after = preparation.region(operation.after_region)
    results = preparation.slots(operation.results)
    condition, *forwarded_list = before.outputs
    forwarded = tuple(forwarded_list)

    def run(program: Program) -> Running:
        program.move(initial, before.arguments)
        watch = _SpinWatch(program, before)
        while True:
            yield from execute(before, program)
            program.operation = before.terminator
            if not _scalar(program, condition, "a loop condition"):
                break
            program.move(forwarded, after.arguments)
            yield from execute(after, program)
            program.move(after.outputs, before.arguments)
            if watch.is_waiting():
                program.operation = operation
                yield Pause.SPIN
                watch.restart()
        program.move(forwarded, results)

    return run


class _SpinWatch:
    """Notices a loop that can go on only when another program writes memory.

    That is certain when an iteration leaves both memory and the carried values as they were;
    a loop that counts its attempts is given `spin_limit` iterations without a write.
    """

    def __init__(self, program: Program, before: Code) -> None:
        self._program = program
        self._slots = before.arguments
        self.restart()

    def restart(self) -> None:
        """Begin anew, after other programs have run."""
        self._version = self._program.machine.memory.version
        self._carried = [self._program.values[slot] for slot in self._slots]
        self._iterations = 0

    def is_waiting(self) -> bool:
        """Whether the iteration that has just ended shows that the loop waits."""
        carried = [self._program.values[slot] for slot in self._slots]
        if self._program.machine.memory.version != self._version:
            self.restart()
            return False
        if all(map(_same, self._carried, carried)):
            return True
        self._carried = carried
        self._iterations += 1
        return self._iterations >= self._program.machine.spin_limit


def _same(a: object, b: object) -> bool:
    if a is b:
        return True
    if isinstance(a, ARRAYS) and isinstance(b, ARRAYS):
        return a.tobytes() == b.tobytes()
    return a == b


@TILE_RULES.control.register(IfOp)
def branch(operation: Operation, preparation: Preparation) -> ControlFunction:
    """scf.if; in a combine region the condition may be an array, then both sides count."""
    assert isinstance(operation, IfOp)
    condition = preparation.slot(operation.cond)
    sides = [preparation.region(r) if r.blocks else None for r in operation.regions]
    results = preparation.slots(operation.results)

    def run(program: Program) -> Running:
        chosen = program.values[condition]
        assert isinstance(chosen, ARRAYS)
        if np.ndim(chosen):
            _both_sides(program, np.asarray(chosen), sides, results)
            return
        require_defined(program, "a branch condition", program.poison[condition])
        code = sides[0] if chosen else sides[1]
        if code is not None:
            yield from execute(code, program)
            program.move(code.outputs, results)

    return run


def _both_sides(
    program: Program, condition: Array, sides: list[Code | None], results: tuple[int, ...]
) -> None:
    """Evaluate both sides of a branch on arrays of scalars and select by element."""
    outcomes: list[list[tuple[object, Array | None]]] = []
    for code in sides:
        if code is None:
            continue
        run_now(code, program)
        outcomes.append([(program.values[s], program.poison[s]) for s in code.outputs])
    if not results:
        return
    for slot, (yes, yes_mask), (no, no_mask) in zip(results, *outcomes, strict=True):
        program.values[slot] = np.where(condition, yes, no)  # type: ignore[call-overload]
        masked = yes_mask is not None or no_mask is not None
        program.poison[slot] = (
            np.where(condition, _plain(yes_mask), _plain(no_mask)) if masked else None
        )


def _plain(mask: Array | None) -> Array:
    return NOWHERE if mask is None else mask


@TILE_RULES.control.register(CallOp)
def call(operation: Operation, preparation: Preparation) -> ControlFunction:
    """A call of another function of the module."""
    assert isinstance(operation, CallOp)
    callee = _callee(operation)
    arguments = preparation.slots(operation.arguments)
    results = preparation.slots(operation.results)
    code = preparation.region(callee.body)

    def run(program: Program) -> Running:
        program.move(arguments, code.arguments)
        yield from execute(code, program)
        program.move(code.outputs, results)

    return run


def _callee(operation: CallOp) -> FuncOp:
    symbol = operation.callee
    assert isinstance(symbol, SymbolRefAttr)
    root: Operation = operation
    while (parent := root.parent_op()) is not None:
        root = parent
    for function in root.walk():
        if isinstance(function, FuncOp) and function.sym_name.data == symbol.string_value():
            return function
    raise InternalError(f"tt.call: the module has no function {symbol}")
