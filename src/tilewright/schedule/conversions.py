"""The plan of each conversion, and the shared memory it needs."""

from __future__ import annotations

from functools import cache

from tilewright.ir.encoding import layout_of
from tilewright.ir.types import storage_bytes
from tilewright.layout.convert import Conversion, SharedRoundTrip, plan_conversion
from tilewright.layout.linear import LinearLayout
from tilewright.ops.staging import ConvertLayoutOp
from tilewright.schedule.scratch import SCRATCH

MAX_SCRATCH_BYTES = 64 << 10
"""A conversion goes in several passes rather than take more of the shared memory than this."""


@cache
def _plan(source: LinearLayout, target: LinearLayout, element_bytes: int) -> Conversion:
    return plan_conversion(source, target, element_bytes, max_bytes=MAX_SCRATCH_BYTES)


def conversion_of(op: ConvertLayoutOp) -> Conversion:
    """How a conversion moves its elements."""
    size = storage_bytes(op.src.type)
    return _plan(layout_of(op.src.type), layout_of(op.result.type), size)


@SCRATCH.register(ConvertLayoutOp)
def _scratch(op: ConvertLayoutOp) -> int:
    plan = conversion_of(op)
    return plan.bytes if isinstance(plan, SharedRoundTrip) else 0
