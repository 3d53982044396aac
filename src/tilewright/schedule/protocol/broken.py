"""The error of a protocol that is broken, in words."""

from __future__ import annotations

from xdsl.ir import Operation

from tilewright.ir.locations import span_of
from tilewright.ops.rings import RingOp
from tilewright.support.errors import ProtocolBroken


def broken(role: str, what: str, op: Operation, hint: str = "") -> ProtocolBroken:
    """The error of a role at an op; '' is what no role does, but the program has."""
    span, chain = span_of(op)
    whose = f"role {role}: " if role else ""
    return ProtocolBroken(whose + what, hint=hint, span=span, chain=chain)


def ring_name(ring: RingOp) -> str:
    """What messages call a ring."""
    return ring.ring_name.data
