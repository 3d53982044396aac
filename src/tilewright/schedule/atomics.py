"""What an atomic does besides its accesses: barriers, and old values for threads with copies.

One thread acts for each element. Lanes of its warp get the value by a shuffle, other warps
through shared memory; a scalar is a tile of which every thread holds a copy.

What the threads of a program wrote before a release must be done when one of them releases,
and none may read ahead of an acquire, so all wait before the one and after the other.
"""

from __future__ import annotations

from xdsl.ir import Operation

from tilewright.ir.effects import atomic_of
from tilewright.ir.encoding import has_layout, layout_of
from tilewright.ir.types import element_of, storage_bytes
from tilewright.layout.linear import LinearLayout
from tilewright.ops.atomics.ir import (
    AtomicCasOp,
    AtomicLoadOp,
    AtomicRmwOp,
)
from tilewright.schedule.exchanges import register_scratch
from tilewright.schedule.reduction_scratch import Exchange, Slots, plan_slots

# By definition: a warp has 32 lanes on every NVIDIA GPU.
_LANES_LOG2 = 5


def is_result_used(op: Operation) -> bool:
    """Whether anybody reads the old values."""
    return any(True for result in op.results for _ in result.uses)


def waits_before(op: Operation) -> bool:
    """Whether all threads wait for each other before the accesses of an atomic."""
    atomic = atomic_of(op)
    return atomic is not None and atomic.releases


def waits_after(op: Operation) -> bool:
    """Whether all threads wait for each other behind the accesses of an atomic."""
    atomic = atomic_of(op)
    return atomic is not None and (atomic.acquires or plan_broadcast(op) is not None)


def plan_broadcast(op: Operation) -> Slots | None:
    """The places through which old values reach the warps with copies; None without such."""
    if not op.results or not is_result_used(op):
        return None
    result = op.results[0]
    size = storage_bytes(element_of(result.type))
    if not has_layout(result.type):
        return plan_slots(Exchange(_SCALAR, (), (1 << _LANES_LOG2) - 1, 0), 1, size)
    layout = layout_of(result.type)
    warps = layout.free_bits("warp")
    if not warps:
        return None
    between = Exchange(layout, (), layout.free_bits("lane"), warps)
    return plan_slots(between, layout.num_registers, size)


# A layout of one element, in every lane of one warp.
_SCALAR = LinearLayout((("register", ()), ("lane", ((),) * _LANES_LOG2), ("warp", ())), ())


@register_scratch(AtomicRmwOp, AtomicCasOp, AtomicLoadOp)
def _broadcast_scratch(op: Operation) -> int:
    slots = plan_broadcast(op)
    return 0 if slots is None else slots.size_bytes
