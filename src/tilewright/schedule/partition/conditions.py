"""When a program may run as roles: what its ops do, and in which order memory is touched.

A role that loads runs ahead of the others, and replicas do not wait for each other. So nothing
may write what is loaded ahead, and what replicas write must not meet. What is written before a load
through another argument is for the target to see to: `written_before` has those pairs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from xdsl.dialects.builtin import IntegerAttr, IntegerType
from xdsl.ir import Operation, SSAValue
from xdsl.traits import IsTerminator

from tilewright.analysis.argument_effects import touched_arguments
from tilewright.ir.effects import (
    Access,
    Effect,
    Resource,
    global_access,
    is_free,
    own_effects,
    writes_global,
)
from tilewright.ir.locations import describe
from tilewright.ir.regions import ControlFlowOp, is_control_flow, loops_around
from tilewright.ir.types import DescriptorType, PointerType
from tilewright.ops.channels import MeetOp
from tilewright.ops.debug.ir import is_assumption
from tilewright.ops.function import FuncOp
from tilewright.ops.memory.ir import LoadOp
from tilewright.schedule.partition.apart import are_apart
from tilewright.schedule.partition.refusal import Refused
from tilewright.schedule.partition.slices import Slice


def require_known_effects(kernel: FuncOp) -> None:
    """Hold every op to plain reads and writes. *Raises*: Refused."""
    for op in kernel.body.block.walk():
        if is_assumption(op) or isinstance(op, MeetOp):
            continue
        for effect in own_effects(op):
            if not _is_plain(effect) or _is_volatile(op):
                raise Refused(op, f"no role does {op.name} in the order of the program")


def writes_block(op: Operation) -> bool:
    """Whether an op writes a block of a tensor: those of one kernel come in any order."""
    access = global_access(op)
    if access is None or access.value is None or not access.writes:
        return False
    return isinstance(access.value.type, DescriptorType)


def _is_volatile(op: Operation) -> bool:
    flag = op.properties.get("isVolatile")
    return isinstance(flag, IntegerAttr) and bool(flag.value.data)


def _is_plain(effect: Effect) -> bool:
    if not isinstance(effect, Access):
        return False
    own = (Resource.GLOBAL, Resource.WORKSPACE)
    return effect.resource in own and effect.atomic is None


def reads_of_addresses(
    needed: Slice, loads: Sequence[Operation], known: Collection[Operation] = ()
) -> list[Operation]:
    """What a role reads besides, for the addresses and masks of its loads: threads copy by any.

    The one thread that starts copies of the engine reads numbers alone. Each role that needs it
    reads it itself. Whether a loop or a branch around a load runs is for all roles to know, so what
    it follows from is not among them; see `reads_in_front`.
    """
    by_threads = any(isinstance(load, LoadOp) for load in loads)
    steering = _steering(needed)
    reads = (op for op in sorted_ops(needed) if isinstance(op, LoadOp))
    return [
        op
        for op in reads
        if op not in loads and op not in known and op not in steering.ops
        if by_threads or _is_number(op)
    ]


def reads_in_front(
    needed: Slice, loads: Sequence[Operation], known: Collection[Operation] = ()
) -> list[Operation]:
    """The numbers of memory that loops and branches around loads follow from, read before them.

    All roles have to find the same, though one stores what another one has not read yet. So what
    stands in front of all loops, branches and stores stays in front of the roles.
    """
    first: list[Operation] = []
    for op in needed.block.ops:
        if is_control_flow(op) or writes_global(op):
            break
        first.append(op)
    return [op for op in steering_reads(needed, loads) if op in first and op not in known]


def steering_reads(needed: Slice, loads: Sequence[Operation]) -> list[LoadOp]:
    """The numbers of memory that loops and branches around loads follow from, wherever read."""
    steering = _steering(needed)
    reads = (op for op in sorted_ops(steering) if isinstance(op, LoadOp))
    return [op for op in reads if _is_number(op) and op not in loads]


def _why_not_in_front(op: Operation, needed: Slice) -> str:
    """What a number is read in or behind, which keeps it from being read in front of the roles."""
    if not isinstance(op, LoadOp) or not _is_number(op):
        return ""
    for other in needed.block.ops:
        if other is op:
            return ""
        if is_control_flow(other) or writes_global(other):
            advice = "read it in front of all loops, branches and stores"
            return f"; it is read {_place(op, other)} at {describe(other)}: {advice}"
    return ""


def _place(read: Operation, other: Operation) -> str:
    """Where a read stands that is in or behind a loop, a branch or a store, in a reader's words."""
    where = "in" if read in other.walk() else "behind"
    if not isinstance(other, ControlFlowOp):
        return "behind a store"
    if other.is_loop():
        return f"{where} a loop"
    first, *rest = other.regions
    is_return = all(op.has_trait(IsTerminator) for op in first.walk())
    if is_return and any(read in region.walk() for region in rest):
        return "behind an early return"
    return f"{where} a branch"


def _steering(needed: Slice) -> Slice:
    """What the loops and branches of a slice follow from."""
    steering = Slice(needed.block, ())
    for op in sorted_ops(needed):
        if is_control_flow(op):
            steering.add_values(value for edge in _edges(op) for value in edge)
    return steering


def _is_number(load: LoadOp) -> bool:
    """Whether an integer is loaded, or the address of something."""
    type_ = load.results[0].type
    return isinstance(type_, IntegerType | PointerType)


def _edges(op: Operation) -> Iterator[Sequence[SSAValue]]:
    """What decides where control goes at an op, and how often."""
    assert isinstance(op, ControlFlowOp)
    return (edge.giver.operands[: edge.first] for edge in op.edges())


def require_scalars(
    needed: Slice, loads: Sequence[Operation], known: Collection[Operation] = ()
) -> None:
    """Hold a role that loads to what every role can compute. *Raises*: Refused.

    Its loads, and the loops and branches around them, follow from arguments, the program's
    number, loop counters, and what the reads `known` find.
    """
    steering = _steering(needed)
    for op in sorted_ops(needed):
        if op in loads or op.has_trait(IsTerminator) or is_assumption(op):
            continue
        if op in known or isinstance(op, MeetOp) or _is_own(op):
            continue
        if not is_control_flow(op) and not is_free(op):
            what = "a loaded value" if op.results else f"what {op.name} does"
            late = _why_not_in_front(op, needed) if op in steering.ops else ""
            raise Refused(op, f"where a role loads follows from {what}, which one role knows{late}")
    for load in loads:
        if any(result in needed.values for result in load.results):
            raise Refused(load, "where a role loads follows from a tile that it loads")


def _is_own(op: Operation) -> bool:
    """Whether an op touches memory of the launch alone, for what it results in."""
    effects = own_effects(op)
    return bool(effects) and all(
        isinstance(e, Access) and e.resource is Resource.WORKSPACE for e in effects
    )


def sorted_ops(needed: Slice) -> Iterator[Operation]:
    """The ops of a slice in the order of the text."""
    return (op for op in needed.block.walk() if op in needed.ops)


def require_memory_order(
    kernel: FuncOp,
    loads: Sequence[Operation],
    replicas: int,
    unordered: Sequence[Operation] = (),
    known: Collection[Operation] = (),
) -> None:
    """Hold loads that run ahead to memory that nothing writes before. *Raises*: Refused.

    The iterations of the loops `unordered` keep no order among each other. The reads `known` are
    kept in order: roles meet in front of them where they have to.
    """
    touched = touched_arguments(kernel)
    order = {op: place for place, op in enumerate(kernel.walk())}
    writes = [op for op in touched if writes_global(op)]
    for load in loads:
        if load in known:
            continue
        for write in writes:
            if touched[load] & touched[write] and _may_precede(write, load, order):
                raise Refused(load, f"{write.name} may write what is loaded ahead of it")
    if replicas > 1:
        others = [op for op in touched if op not in loads and op not in known]
        _require_own_parts(others, writes, touched, unordered)


def written_before(
    kernel: FuncOp, loads: Sequence[Operation], unordered: Sequence[Operation]
) -> Iterator[tuple[Operation, Operation]]:
    """Loads that would run ahead of a write through other arguments, each with that write.

    The iterations of the loops `unordered` keep no order among each other.
    """
    touched = touched_arguments(kernel)
    order = {op: place for place, op in enumerate(kernel.walk())}
    for load in loads:
        for write in filter(writes_global, touched):
            is_other = not touched[load] & touched[write]
            if is_other and _may_precede(write, load, order, unordered):
                yield load, write


def _may_precede(
    first: Operation,
    second: Operation,
    order: dict[Operation, int],
    unordered: Sequence[Operation] = (),
) -> bool:
    """Whether an op may be done before another one, other than in `unordered` loops."""
    around = set(loops_around(first)).difference(unordered)
    return order[first] < order[second] or any(loop in around for loop in loops_around(second))


def _require_own_parts(
    ops: Sequence[Operation],
    writes: Sequence[Operation],
    touched: dict[Operation, frozenset[int]],
    unordered: Sequence[Operation],
) -> None:
    """Hold what replicas write to places of their own, which they touch once.

    What iterations without an order write to one place is anybody's.
    """
    for write in writes:
        for op in ops:
            is_other = op is not write and not are_apart(op, write)
            if is_other and touched[op] & touched[write]:
                raise Refused(op, f"{op.name} and {write.name} of two replicas may meet")
        is_loop = not set(loops_around(write)).issubset(unordered)
        if is_loop and not writes_block(write):
            raise Refused(write, f"{write.name} in a loop: two replicas may write one element")
