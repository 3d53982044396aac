"""How the interpreter runs T1 and T2 for NVIDIA: laid-out ops, fences, scratch.

`NVIDIA_INTERPRETATION` holds the rules of T0, of the laid-out ops and of `ttng`; pass it to
`run_kernel`. An op with scratch overwrites the bytes of its place, so that whatever shares them
by mistake is lost.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation

from tilewright.interp.code import ControlFunction, PlainFunction, Preparation, Rules, Running
from tilewright.interp.program import Program
from tilewright.interp.rules import roles
from tilewright.interp.rules.staging import STAGED_RULES, located, shared_memory_of
from tilewright.schedule import atomics, conversions, rearrangements, reductions, scans, sorts
from tilewright.schedule.exchanges import CHOICES
from tilewright.schedule.scratch import has_place, scratch_bytes, scratch_offset
from tilewright.targets.nvidia.ops import TURN_OPS, FenceAsyncSharedOp, FenceGlobalOp, PauseOp
from tilewright.targets.nvidia.tma.interpret import register_copy_engine

NVIDIA_INTERPRETATION = Rules("nvidia", STAGED_RULES)
"""The rules of every level on the way to an NVIDIA GPU."""
register_copy_engine(NVIDIA_INTERPRETATION)

# Imported for the rules that they register.
RULE_MODULES = (roles,)

# Imported for the exchanges that they register.
EXCHANGE_MODULES = (atomics, conversions, rearrangements, reductions, scans, sorts)


@NVIDIA_INTERPRETATION.plain.register(FenceAsyncSharedOp)
def _fence(operation: Operation, preparation: Preparation) -> PlainFunction:
    return lambda program: None if program.shared is None else program.shared.fence()


@NVIDIA_INTERPRETATION.plain.register(PauseOp, FenceGlobalOp, *TURN_OPS)
def _nothing(operation: Operation, preparation: Preparation) -> PlainFunction:
    return lambda program: None


def _plain_through_scratch(
    rule: Callable[[Operation, Preparation], PlainFunction],
) -> Callable[[Operation, Preparation], PlainFunction]:
    def prepare(operation: Operation, preparation: Preparation) -> PlainFunction:
        evaluate = rule(operation, preparation)
        place = _place(operation)
        if place is None:
            return evaluate

        def through_scratch(program: Program, *operands: object) -> object:
            _overwrite(program, *place)
            return evaluate(program, *operands)

        return through_scratch

    return prepare


def _control_through_scratch(
    rule: Callable[[Operation, Preparation], ControlFunction],
) -> Callable[[Operation, Preparation], ControlFunction]:
    def prepare(operation: Operation, preparation: Preparation) -> ControlFunction:
        run = rule(operation, preparation)
        place = _place(operation)
        if place is None:
            return run

        def through_scratch(program: Program) -> Running:
            _overwrite(program, *place)
            yield from run(program)

        return through_scratch

    return prepare


def _place(operation: Operation) -> tuple[int, int] | None:
    """Where the scratch of an op is, and its bytes; None at T1 or without any."""
    if not has_place(operation):
        return None
    return scratch_offset(operation), scratch_bytes(operation)


def _overwrite(program: Program, start: int, size: int) -> None:
    with located(program):
        memory = shared_memory_of(program, is_placed=True)
        memory.pass_through(program.shared_start + start, size)


for _class in CHOICES.classes():
    _plain = STAGED_RULES.plain.find(_class)
    _control = STAGED_RULES.control.find(_class)
    if _plain is not None:
        NVIDIA_INTERPRETATION.plain.register(_class)(_plain_through_scratch(_plain))
    if _control is not None:
        NVIDIA_INTERPRETATION.control.register(_class)(_control_through_scratch(_control))
