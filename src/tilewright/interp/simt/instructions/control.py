"""Calls, branches and returns."""

from __future__ import annotations

from tilewright.interp.simt.calls import Call, find_rule
from tilewright.interp.simt.program import Compute, Translated, rule
from tilewright.interp.simt.ptx.translate import translate_assembly
from tilewright.interp.simt.ring_waits import counted_phase, ring_of, turn_of
from tilewright.interp.simt.runner import Step
from tilewright.interp.simt.syntax import InlineAssembly, Instruction
from tilewright.interp.simt.values import Value
from tilewright.support.errors import UnsupportedError


@rule("call")
def _call(fn: Translated, op: Instruction) -> Compute | None:
    if isinstance(op.callee, InlineAssembly):
        translate_assembly(fn, op)
        return None
    if not isinstance(op.callee, str):
        raise UnsupportedError("the simulator does not call through pointers")
    slots = [fn.use(operand) for operand in op.operands]
    if op.callee in fn.program.module.functions:
        return _internal_call(fn, op.callee, slots)
    rule = find_rule(op.callee)
    if rule is None:
        raise UnsupportedError(f"the simulator does not know '{op.callee}'")
    names = fn.program.module.rings
    call = Call(fn.machine, op.callee, op, slots, ring_of(op, names), turn=turn_of(op, names))
    if call.ring is not None:
        call.phase = fn.use(counted_phase(op, op.operands[1], fn.function.blocks))
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


@rule("br", "switch")
def _jump(fn: Translated, op: Instruction) -> None:
    del fn, op  # edges are made when every label is known


@rule("ret")
def _return(fn: Translated, op: Instruction) -> Compute | None:
    if not op.operands:
        return None
    values, v, returned = fn.machine.values, fn.use(op.operands[0]), fn.returned
    fn.segments[-1].steps.append(Step(returned, lambda: values[v], op.site))
    fn.keep(returned)
    return None


@rule("unreachable")
def _trap(fn: Translated, op: Instruction) -> None:
    fn.segments[-1].is_trap = True
