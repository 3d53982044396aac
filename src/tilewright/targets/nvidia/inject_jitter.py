"""Puts a pause of any length before what roles do with rings and turns (T2 to T2).

    ring_release %ab, %s  ⇒  pause {seed = 41}; ring_release %ab, %s

A program that is right by luck, because one role is always faster than another, is wrong or hangs
under some of them; a right one computes the same bits. *Source*: two of the faults of the first
kernels with roles showed on an H200 with such pauses alone (2026-11).
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32
from xdsl.ir import Operation

from tilewright.ir.op import build
from tilewright.ir.passes import Pass
from tilewright.ops.function import find_kernel
from tilewright.ops.rings import SlotAccess
from tilewright.ops.roles import TurnOp
from tilewright.support.dataclass import dataclass
from tilewright.targets.nvidia.ops import PauseOp

# By definition: of multiplicative hashing, 2^32 over the golden ratio.
_SPREAD = 2654435761


@dataclass(frozen=True)
class InjectJitter(Pass):
    """The pass; see the module."""

    seed: int = 1
    name = "inject-jitter"
    requires = "T2"
    produces = "T2"
    after = ("count-rings", "release-late", "check-protocol")

    def apply(self, module: ModuleOp) -> None:
        """Put a pause before each access of a ring, and before each turn."""
        ops = [op for op in find_kernel(module).walk() if _is_disturbed(op)]
        for number, op in enumerate(ops):
            seed = (self.seed * _SPREAD + number * (_SPREAD >> 7)) % (1 << 31)
            assert op.parent is not None
            given = {"seed": IntegerAttr(seed, i32)}
            pause = build(PauseOp, properties=given, location=op.location)
            op.parent.insert_op_before(pause, op)


def _is_disturbed(op: Operation) -> bool:
    return isinstance(op, SlotAccess | TurnOp)
