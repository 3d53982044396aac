"""Refuses ops that a target cannot run, in the words of the target.

Why here: a user function may mean something on one target only, and nothing before the target's
own passes knows the target. Requires and produces T0.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tilewright.ir.locations import span_of
from tilewright.ir.passes import Pass
from tilewright.passes.coverage import coverage_of
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import UnsupportedError


@dataclass(frozen=True)
class RefuseOps(Pass):
    """The pass, for the ops that `target` refuses."""

    target: str
    name = "refuse-ops"

    def apply(self, module: ModuleOp) -> None:
        """Check every op.

        Raises: UnsupportedError at the first that the target refuses.
        """
        reasons = coverage_of(self.target).reasons
        for op in module.walk():
            if op.name in reasons:
                summary, hint = reasons[op.name]
                span, chain = span_of(op)
                raise UnsupportedError(summary, hint=hint, span=span, chain=chain)
