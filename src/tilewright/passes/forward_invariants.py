"""Replaces loop-carried values that a loop never changes by their initial value.

    for … iter_args(%x = %init) { … yield %x }   ⇒   for … { … %init … }

Why: a carried scalar hides constants (strides!) from the analysis of pointers. Requires and
produces T0.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, OpResult, SSAValue

from tilewright.ir.passes import Pass
from tilewright.ir.regions import ControlFlowOp, Phi, phis_of, without_phis
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class ForwardInvariants(Pass):
    """The pass; see the module."""

    name = "forward-invariants"
    after = ("lower-block-pointers", "lower-descriptors", "select-tensor-maps")

    def apply(self, module: ModuleOp) -> None:
        """Rewrite every loop of a module, inner ones first."""
        for op in reversed(tuple(module.walk())):
            if isinstance(op, ControlFlowOp) and op.results and op.is_loop():
                _forward(op)


def _forward(loop: ControlFlowOp) -> None:
    same = {
        p: r for p, r in _roots(phis_of(loop)).items() if r is not None and _is_outside(r, loop)
    }
    for phi, root in same.items():
        for value in phi.values:
            value.replace_all_uses_with(root)
    if same:
        without_phis(loop, tuple(same))


def _roots(phis: Sequence[Phi]) -> dict[Phi, SSAValue | None]:
    """The one value that each phi is, whichever way control comes; None where there are several.

    What is not known yet is taken for the same as the rest: values that a loop only trades are
    one value if they start as one.
    """
    owners = {value: phi for phi in phis for value in phi.values}
    roots: dict[Phi, SSAValue | None] = {}
    before = None
    while roots != before:
        before = dict(roots)
        for phi in phis:
            sources = [v for v in phi.sources() if v not in owners or owners[v] in roots]
            found = {roots[owners[v]] if v in owners else v for v in sources}
            if found:
                roots[phi] = found.pop() if len(found) == 1 else None
    return roots


def _is_outside(value: SSAValue, loop: Operation) -> bool:
    """Whether a value is there before a loop."""
    block = value.op.parent if isinstance(value, OpResult) else value.owner
    return isinstance(block, Block) and not loop.is_ancestor(block)
