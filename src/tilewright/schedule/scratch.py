"""Shared memory that an op needs while it runs: for elements that change threads.

An op with scratch writes it, waits for all warps, and reads it; how much it takes is in its plan
(`tw.exchange`), and its place is left on the op as `scratch_offset`.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Operation

from tilewright.ir.annotations import annotated, decided, missing
from tilewright.ir.plans import ExchangeAttr
from tilewright.schedule.exchanges import may_exchange

_ATTRIBUTE = "scratch_offset"


def scratch_bytes(op: Operation) -> int:
    """The bytes of shared memory that an op needs while it runs; 0 for most.

    *Raises*: PlanMissing where that is not decided yet.
    """
    plan = annotated(op, ExchangeAttr)
    if plan is None and may_exchange(op):
        plan = decided(op, ExchangeAttr)
    return 0 if plan is None else plan.scratch_bytes


def place_scratch(op: Operation, offset_bytes: int) -> None:
    """Give the scratch of an op its place in the program's shared memory."""
    op.attributes[_ATTRIBUTE] = IntegerAttr(offset_bytes, i32)


def has_place(op: Operation) -> bool:
    """Whether an op has scratch that was given its place."""
    return _ATTRIBUTE in op.attributes


def scratch_offset(op: Operation) -> int:
    """The place that `place_scratch` gave. *Raises*: PlanMissing before it did."""
    offset = op.attributes.get(_ATTRIBUTE)
    if not isinstance(offset, IntegerAttr):
        raise missing(op, "its scratch has no place", "run `place-shared` first")
    return offset.value.data
