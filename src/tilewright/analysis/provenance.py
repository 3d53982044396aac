"""Where a pointer comes from: the kernel's argument that it is computed from."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import OpResult, SSAValue

from tilewright.ir.op import DerivedAddress
from tilewright.ir.regions import sources_of
from tilewright.ops.function import is_argument


def base_argument(pointer: SSAValue) -> SSAValue | None:
    """The kernel's argument that a pointer is computed from, whichever way control takes.

    The pointer may be a tile of them, or a descriptor. None where the argument is not known, or
    not the same one on every way.
    """
    found: SSAValue | None = None
    pending, seen = [pointer], {pointer}
    while pending:
        value = pending.pop()
        if is_argument(value):
            if found is not None and found is not value:
                return None
            found = value
            continue
        sources = _computed_from(value)
        if not sources:
            return None
        new = [source for source in sources if source not in seen]
        seen.update(new)
        pending += new
    return found


def _computed_from(value: SSAValue) -> Sequence[SSAValue]:
    """What holds the same address but for an offset, one value for each way to get here."""
    if isinstance(value, OpResult) and value.op.has_trait(DerivedAddress):
        return value.op.operands[:1]
    return sources_of(value) or ()
