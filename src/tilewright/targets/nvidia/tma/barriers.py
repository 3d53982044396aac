"""Gives mbarriers their place, and each wait for one the parity of its phase (T2 to T2).

A wait has an mbarrier of its own, so each time it finds its phase one further than the last time.
The phase is a scalar that the loops and branches around the wait carry:

    for … { … tma_wait %t … }  ⇒  for … iter_args(%p = 0) { … tma_wait %t, %p … yield xor %p, 1 }

`place-barriers` and `carry-phases` are two passes: neither reads what the other writes.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32
from xdsl.ir import Block, Operation, SSAValue

from tilewright.codegen.simt.allotment import turn_names
from tilewright.ir.attributes import integer_array
from tilewright.ir.op import build
from tilewright.ir.passes import Pass
from tilewright.ir.regions import ControlFlowOp
from tilewright.ops.carried_values import carry
from tilewright.ops.creation.ir import ConstantOp
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.ops.roles import RolesOp, find_roles
from tilewright.schedule.annotations import set_shared_bytes, shared_bytes
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import MalformedText
from tilewright.targets.nvidia.tma_ops import (
    InitBarriersOp,
    TmaLoadOp,
    TmaLoadSlotOp,
    TmaWaitOp,
    TmaWaitSlotOp,
    find_init,
)

# Source: PTX ISA 8.8, "mbarrier": an object of 64 bits.
BARRIER_BYTES = 8
_Numbered = TmaLoadOp | TmaWaitOp | TmaLoadSlotOp | TmaWaitSlotOp
# The parity of the phase that each mbarrier is in.
_Phases = dict[int, SSAValue]


@dataclass(frozen=True)
class PlaceBarriers(Pass):
    """Put the mbarriers of a kernel behind its shared tiles."""

    name = "place-barriers"
    requires = "T2"
    produces = "T2"
    after = ("join-waits", "place-shared")

    def apply(self, module: ModuleOp) -> None:
        """Place them, where there are any."""
        kernel = find_kernel(module)
        set_shared_bytes(kernel, place_barriers(kernel, shared_bytes(kernel)))


@dataclass(frozen=True)
class CarryPhases(Pass):
    """Give every wait the parity of its mbarrier's phase."""

    name = "carry-phases"
    requires = "T2"
    produces = "T2"
    after = ("join-waits",)

    def apply(self, module: ModuleOp) -> None:
        """Carry the phases through the kernel."""
        carry_phases(find_kernel(module))


def barrier_bytes(kernel: FuncOp) -> int:
    """The most that the mbarriers of a kernel take of shared memory.

    Those that bound the waits for turns count always: a bound changes no schedule.
    """
    init, roles = find_init(kernel), find_roles(kernel)
    count = 0 if init is None else init.count.value.data
    if roles is not None:
        described = roles.described()
        count += sum(described[n].replicas * len(names) for n, names in turns_of_roles(roles))
    return BARRIER_BYTES * (1 + count) if count else 0


def turns_of_roles(roles: RolesOp) -> list[tuple[int, list[str]]]:
    """The roles of which several replicas take turns, by number, and the names of their turns."""
    found = [
        (number, turn_names(body.block))
        for number, (role, body) in enumerate(zip(roles.described(), roles.bodies, strict=True))
        if role.replicas > 1
    ]
    return [(number, names) for number, names in found if names]


def place_barriers(kernel: FuncOp, start_bytes: int) -> int:
    """Put the mbarriers of a kernel behind its shared tiles; where shared memory ends then."""
    init = find_init(kernel)
    if init is None:
        return start_bytes
    start = -(-start_bytes // BARRIER_BYTES) * BARRIER_BYTES
    init.properties["offset_bytes"] = IntegerAttr(start, i32)
    count = _checked_count(kernel, init)
    for op in kernel.walk():
        if isinstance(op, _Numbered):
            place = start + BARRIER_BYTES * op.barrier.value.data
            op.properties["barrier_bytes"] = IntegerAttr(place, i32)
    return start + BARRIER_BYTES * count


def _checked_count(kernel: FuncOp, init: InitBarriersOp) -> int:
    """How many mbarriers a kernel makes. *Raises*: MalformedText where it names another one."""
    count = init.count.value.data
    for op in kernel.walk():
        if isinstance(op, _Numbered) and not 0 <= op.barrier.value.data < count:
            raise MalformedText(
                f"{op.name} names mbarrier {op.barrier.value.data}, and the kernel makes {count}",
                hint="mbarriers are numbered from 0, in the order in which they lie",
            )
    return count


def carry_phases(kernel: FuncOp) -> None:
    """Give every wait its phase, through loops and branches."""
    init = find_init(kernel)
    if init is None:
        return
    count = _checked_count(kernel, init)
    zero, one = (_constant(value, init) for value in (0, 1))
    _Carrying(one).block(kernel.body.block, dict.fromkeys(range(count), zero))


def _constant(value: int, before: Operation) -> SSAValue:
    op = build(ConstantOp, (), [i32], {"value": IntegerAttr(value, i32)}, location=before.location)
    assert before.parent is not None
    before.parent.insert_op_before(op, before)
    return op.results[0]


class _Carrying:
    """The walk over a kernel; `one` is what turns a phase into the next."""

    def __init__(self, one: SSAValue) -> None:
        self._one = one

    def block(self, block: Block, phases: _Phases) -> _Phases:
        """Give the waits of a block their phases; those behind it."""
        phases = dict(phases)
        for op in tuple(block.ops):
            if isinstance(op, TmaWaitOp):
                number = op.barrier.value.data
                count = len(op.tokens)
                op.operands = [*op.tokens, phases[number]]
                op.properties["operandSegmentSizes"] = integer_array((count, 1))
                phases[number] = self._following(op, phases[number])
            elif isinstance(op, ControlFlowOp):
                numbers = _waited_for(op)
                if numbers:
                    phases.update(self._through(op, numbers, phases))
        return phases

    def _following(self, op: Operation, phase: SSAValue) -> SSAValue:
        xor = build(ELEMENTWISE["arith.xori"], [phase, self._one], [i32], location=op.location)
        assert op.parent is not None
        op.parent.insert_op_after(xor, op)
        return xor.results[0]

    def _through(self, op: ControlFlowOp, numbers: Sequence[int], phases: _Phases) -> _Phases:
        """Let a loop or branch carry phases."""

        def inside(block: Block, values: Sequence[SSAValue]) -> list[SSAValue]:
            after = self.block(block, {**phases, **dict(zip(numbers, values, strict=True))})
            return [after[number] for number in numbers]

        behind = carry(op, [phases[number] for number in numbers], inside)
        return dict(zip(numbers, behind, strict=True))


def _waited_for(op: Operation) -> list[int]:
    """The mbarriers that something inside of an op waits for, in order."""
    waits = {inner.barrier.value.data for inner in op.walk() if isinstance(inner, TmaWaitOp)}
    return sorted(waits)
