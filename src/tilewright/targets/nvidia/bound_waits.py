"""Bounds how long a program waits at an mbarrier (T2 to T2).

    %t = ring_wait %ab, %s, %f  ⇒  %t = ring_wait %ab, %s, %f {tw.bounded_wait = array<i32: 3, 10>}

A wait has a number, in the order of the text, and the seconds after which the program gives up:
it leaves the number, the slot and the phase behind for the host, which says in words what each
role waited for, and stops. Nothing else changes: a program whose waits end computes the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilewright.codegen.simt.allotment import allot
from tilewright.ir.attributes import integer_array, integers_of
from tilewright.ir.locations import describe
from tilewright.ir.passes import Pass
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.ops.rings import (
    RingAcquireOp,
    RingSettled,
    RingWaitOp,
    SlotAccess,
    slot_side,
)
from tilewright.ops.roles import find_roles
from tilewright.support.dataclass import dataclass
from tilewright.targets.nvidia.ops import AwaitTurnOp
from tilewright.targets.nvidia.tma_ops import TmaWaitOp, TmaWaitSlotOp

_BOUND = "tw.bounded_wait"
WAITS = (RingAcquireOp, RingWaitOp, RingSettled, AwaitTurnOp, TmaWaitOp, TmaWaitSlotOp)
"""The ops that wait at an mbarrier."""


@dataclass(frozen=True)
class BoundWaits(Pass):
    """The pass; see the module."""

    seconds: int = 10
    name = "bound-waits"
    requires = "T2"
    produces = "T2"
    after = ("count-rings", "carry-phases", "release-late", "check-protocol", "bound-turns")

    def apply(self, module: ModuleOp) -> None:
        """Bound every wait of the kernel."""
        for number, op in enumerate(_waits(find_kernel(module))):
            op.attributes[_BOUND] = integer_array((number, self.seconds))


@dataclass(frozen=True)
class WaitBound:
    """The number of a wait, and the seconds after which a program gives up."""

    number: int
    seconds: int


def wait_bound(op: Operation) -> WaitBound | None:
    """The bound of a wait; None where it has none."""
    found = integers_of(op.attributes.get(_BOUND))
    return WaitBound(*found) if found else None


def describe_waits(kernel: FuncOp) -> dict[str, object] | None:
    """What a driver needs to read the report of a kernel; None where no wait is bounded.

    `waits` are a text for each wait, in which `{slot}` and `{phase}` are to be filled in;
    `groups` the name of each group of warps and the first of them and the one behind the last.
    """
    waits = list(_waits(kernel))
    bounds = [wait_bound(op) for op in waits]
    bound = next(iter(bounds), None)
    if bound is None:
        return None
    texts = [f"{_awaited(op)} ({describe(op)})" for op in waits]
    return {"seconds": bound.seconds, "waits": texts, "groups": _groups(kernel)}


def _waits(kernel: FuncOp) -> Iterator[Operation]:
    return (op for op in kernel.walk() if isinstance(op, WAITS))


def _awaited(op: Operation) -> str:
    """What a wait is for, as messages call it."""
    if isinstance(op, AwaitTurnOp):
        return f"its turn at {op.turns.data}"
    if isinstance(op, SlotAccess):
        return (
            f"phase {{phase}} of {slot_side(op.ring_of().ring_name.data, '{slot}', op.IS_TO_FILL)}"
        )
    if isinstance(op, RingSettled):
        return f"phase {{phase}} of {slot_side(op.ring_of().ring_name.data, '{slot}', op.IS_EMPTY)}"
    return "phase {phase} of the copies to slot {slot}"


def _groups(kernel: FuncOp) -> list[tuple[str, int, int]]:
    """The groups of warps that run together, one where there are no roles."""
    roles = find_roles(kernel)
    if roles is None:
        return []
    found: list[tuple[str, int, int]] = []
    for role, part in zip(roles.described(), allot(roles).partitions, strict=True):
        for index, name in enumerate(role.replica_names()):
            first = part.first_warp + index * part.warps
            found.append((name, first, first + part.warps))
    return found
