"""Loops that look whether an interrupt came: how often, so that it costs nothing."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, Region, SSAValue

from tilewright.ir.op import build
from tilewright.ir.regions import ControlFlowOp
from tilewright.ops.control_flow import ConditionOp, ForOp, WhileOp, YieldOp
from tilewright.ops.creation.ir import constant_of
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.targets.cpu.launch_ops import PollOp
from tilewright.targets.cpu.nests.emitter import Emitter
from tilewright.targets.cpu.schedule.inline import is_tile

# A loop of no more iterations than this cannot be what keeps a program from ending. Chosen, not
# measured: 64 iterations of anything but another loop end within microseconds.
_SHORT_LOOP = 64
# Of a loop over scalars, which LLVM unrolls and makes vectors of, every so many iterations look.
# Chosen, not measured: a look is two loads, a thousandth of the iterations between two.
_CHUNK = 1024


def is_short(op: ControlFlowOp) -> bool:
    """Whether a loop has few iterations, whatever it is given."""
    most = op.trips().most
    return most is not None and most <= _SHORT_LOOP


def is_tight(op: ForOp) -> bool:
    """Whether the iterations of a loop are so short that a look at each would be felt."""
    step = constant_of(op.step)
    if step is None or not 0 < step <= _CHUNK:
        return False
    return not any(_takes_long(inner) for inner in op.body.block.walk())


def _takes_long(op: Operation) -> bool:
    if isinstance(op, ControlFlowOp) and op.is_loop():
        return True
    return any(is_tile(value) for value in (*op.operands, *op.results))


def chunked(op: ForOp, operands: Sequence[SSAValue], body: Block) -> Operation:
    """The loop over `body` in chunks of iterations, with a look before each.

    *Semantics*: `while i < ub: poll; end = min(i + chunk, ub); for j in range(i, end, step): body`.
    The first result is the index behind the last chunk, the others are those of the loop.
    """
    start, bound, step, *carried = operands
    types = [start.type, *(value.type for value in carried)]
    test = Block(arg_types=types)
    ev = Emitter(test, op.location)
    ev.effect(ConditionOp, (ev.compare("slt", test.args[0], bound), *test.args))
    chunk = Block(arg_types=types)
    ev = Emitter(chunk, op.location)
    ev.effect(PollOp, ())
    first, *current = chunk.args
    size = ev.constant(start.type, _CHUNK * int(constant_of(op.step) or 1))
    # As unsigned numbers: the difference of two indices is exact, whatever their signs.
    is_far = ev.compare("ugt", ev.integer("subi", bound, first), size)
    following = ev.integer("addi", first, size)
    end = ev.pure(ELEMENTWISE["arith.select"], (is_far, following, bound), start.type)
    loop = build(
        ForOp,
        [first, end, step, *current],
        types[1:],
        dict(op.properties),
        [Region(body)],
        op.location,
    )
    loop.attributes = dict(op.attributes)
    ev.append(loop)
    ev.effect(YieldOp, (end, *loop.results))
    return build(
        WhileOp, [start, *carried], types, None, [Region(test), Region(chunk)], op.location
    )
