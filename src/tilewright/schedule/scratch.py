"""Shared memory that an op needs while it runs: for elements that change threads.

An op with scratch writes it, waits for all warps, and reads it; its place is left on the op as
`scratch_offset`. Each family registers how many bytes its ops need next to their plan.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Operation

from tilewright.support.errors import InternalError
from tilewright.support.rules import RuleTable

ScratchRule = Callable[[Operation], int]
SCRATCH: RuleTable[ScratchRule] = RuleTable("scratch")
_ATTRIBUTE = "scratch_offset"


def scratch_bytes(op: Operation) -> int:
    """The bytes of shared memory that an op needs while it runs; 0 for most."""
    rule = SCRATCH.find(type(op))
    return 0 if rule is None else rule(op)


def place_scratch(op: Operation, offset_bytes: int) -> None:
    """Give the scratch of an op its place in the program's shared memory."""
    op.attributes[_ATTRIBUTE] = IntegerAttr(offset_bytes, i32)


def has_place(op: Operation) -> bool:
    """Whether an op has scratch that was given its place."""
    return _ATTRIBUTE in op.attributes


def scratch_offset(op: Operation) -> int:
    """The place that `place_scratch` gave. *Raises*: InternalError before it did."""
    offset = op.attributes.get(_ATTRIBUTE)
    if not isinstance(offset, IntegerAttr):
        raise InternalError(f"the scratch of {op.name} has no place")
    return offset.value.data
