"""Lets a replica wait for its turn at an mbarrier, too, where waits have a bound (T2 to T2).

    turn_wait "dots"                 await_turn %n {turns = "dots"}; turn_wait "dots"
    …                            ⇒   …
    turn_pass "dots"                 turn_pass "dots"; tell_turn {turns = "dots"}

A turn is a named barrier, and nothing ends a wait at one of these but those who are missing. So
the replica that passes its turn arrives at an mbarrier of the next one as well, and that one
waits there first: by parity, with a bound, and with a name in the report. `%n` counts the turns
that a replica has had; loops and branches carry it. The named barriers stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i32
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilewright.ir.attributes import integer_array
from tilewright.ir.op import build
from tilewright.ir.passes import Pass
from tilewright.ir.regions import ControlFlowOp
from tilewright.ops.carried_values import carry
from tilewright.ops.creation.ir import ConstantOp
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.ops.function import find_kernel
from tilewright.ops.roles import RolesOp, TurnOp, TurnPassOp, TurnWaitOp, find_roles
from tilewright.schedule.annotations import set_shared_bytes, shared_bytes
from tilewright.support.dataclass import dataclass
from tilewright.targets.nvidia.ops import AwaitTurnOp, TellTurnOp, TurnBarriersOp
from tilewright.targets.nvidia.tma.barriers import BARRIER_BYTES, turns_of_roles

_Counts = dict[str, SSAValue]


@dataclass(frozen=True)
class BoundTurns(Pass):
    """The pass; see the module."""

    name = "bound-turns"
    requires = "T2"
    produces = "T2"
    after = ("place-barriers", "count-rings", "release-late", "check-protocol", "inject-jitter")

    def apply(self, module: ModuleOp) -> None:
        """Give each replica that takes turns its mbarriers."""
        kernel = find_kernel(module)
        roles = find_roles(kernel)
        turns = [] if roles is None else turns_of_roles(roles)
        if roles is None or not turns:
            return
        described = roles.described()
        place = start = -(-shared_bytes(kernel) // BARRIER_BYTES) * BARRIER_BYTES
        arrivals: list[int] = []
        for number, names in turns:
            role = described[number]
            starts: dict[str, int] = {}
            for name in names:
                starts[name] = place
                place += BARRIER_BYTES * role.replicas
                arrivals += [role.warps] * role.replicas
            _await_turns(roles.bodies[number].block, starts)
        _make_barriers(roles, start, arrivals)
        set_shared_bytes(kernel, place)


def _make_barriers(roles: RolesOp, start: int, arrivals: Sequence[int]) -> None:
    given: dict[str, Attribute] = {
        "offset_bytes": IntegerAttr(start, i32),
        "arrivals": integer_array(arrivals),
    }
    assert roles.parent is not None
    made = build(TurnBarriersOp, (), (), given, location=roles.location)
    roles.parent.insert_op_before(made, roles)


def _await_turns(body: Block, starts: dict[str, int]) -> None:
    """Count the turns of a role's replicas through its body."""
    first = body.first_op
    assert first is not None
    zero, one = (_constant(value, first) for value in (0, 1))
    _Counting(starts, one).block(body, dict.fromkeys(starts, zero))


def _constant(value: int, before: Operation) -> SSAValue:
    op = build(ConstantOp, (), [i32], {"value": IntegerAttr(value, i32)}, location=before.location)
    assert before.parent is not None
    before.parent.insert_op_before(op, before)
    return op.results[0]


class _Counting:
    """The walk over a role; `starts` are the mbarriers of its turns, `one` a turn more."""

    def __init__(self, starts: dict[str, int], one: SSAValue) -> None:
        self._starts = starts
        self._one = one

    def block(self, block: Block, counts: _Counts) -> _Counts:
        """Let the turns of a block be waited for at mbarriers; how many there were behind it."""
        counts = dict(counts)
        for op in tuple(block.ops):
            if isinstance(op, TurnWaitOp):
                self._wait(op, counts)
            elif isinstance(op, TurnPassOp):
                assert op.parent is not None
                told = build(TellTurnOp, (), (), self._given(op), location=op.location)
                op.parent.insert_op_after(told, op)
            elif isinstance(op, ControlFlowOp):
                names = _waited_for(op)
                if names:
                    counts.update(self._through(op, names, counts))
        return counts

    def _wait(self, op: TurnWaitOp, counts: _Counts) -> None:
        name = op.turns.data
        assert op.parent is not None
        waiting = build(AwaitTurnOp, [counts[name]], (), self._given(op), location=op.location)
        op.parent.insert_op_before(waiting, op)
        operands = [counts[name], self._one]
        more = build(ELEMENTWISE["arith.addi"], operands, [i32], location=op.location)
        op.parent.insert_op_after(more, op)
        counts[name] = more.results[0]

    def _given(self, op: TurnOp) -> dict[str, Attribute]:
        start = IntegerAttr(self._starts[op.turns.data], i32)
        return {"turns": StringAttr(op.turns.data), "start_bytes": start}

    def _through(self, op: ControlFlowOp, names: Sequence[str], counts: _Counts) -> _Counts:
        """Let a loop or branch carry the counts."""

        def inside(block: Block, values: Sequence[SSAValue]) -> list[SSAValue]:
            after = self.block(block, {**counts, **dict(zip(names, values, strict=True))})
            return [after[name] for name in names]

        behind = carry(op, [counts[name] for name in names], inside)
        return dict(zip(names, behind, strict=True))


def _waited_for(op: ControlFlowOp) -> list[str]:
    """The turns that something inside of an op waits for or passes, in order."""
    return sorted({inner.turns.data for inner in op.walk() if isinstance(inner, TurnOp)})
