"""Finds ops that nobody taught the target, before its schedule meets them.

Why here: the tile passes have lowered what no schedule sees, and an op still has the line of its
author. An op of another package that lacks a rule is that package's to complete, so the message
says which part is missing and how it is registered. Requires and produces T0.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilewright.ir.locations import span_of
from tilewright.ir.passes import Pass
from tilewright.passes.coverage import Gap, coverage_of
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import MissingRule


@dataclass(frozen=True)
class RequireRules(Pass):
    """The pass, for the ops that `target` has rules for."""

    target: str
    name = "require-rules"

    def apply(self, module: ModuleOp) -> None:
        """Check every op.

        Raises: MissingRule at the first op that the target has no rule for.
        """
        coverage = coverage_of(self.target)
        for op in module.walk():
            gap = coverage.find_gap(op)
            if gap is not None:
                raise _missing(op, gap, coverage.title)


def _missing(op: Operation, gap: Gap, target: str) -> MissingRule:
    span, chain = span_of(op)
    cls = type(op).__name__
    return MissingRule(
        f"{op.name} has no {gap.part} for {target}",
        hint=f"register one with `{gap.remedy.format(op=cls)}`, or refuse the op in words with "
        f'`unsupported({cls}, "…")` of that target\'s coverage',
        span=span,
        chain=chain,
    )
