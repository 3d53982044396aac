"""Replaces loop-carried values that a loop never changes by their initial value.

    for … iter_args(%x = %init) { … yield %x }   ⇒   for … { … %init … }
    %x = arange(0, 64); for … { %x = arange(0, 64) … }   ⇒   %x = arange(0, 64); for … { … %x … }

Why: a carried value hides constants (strides!) from the analysis of pointers. Authors write the
second form without noticing: an index gets its name again inside the loop. Requires and
produces T0.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, OpResult, SSAValue

from tilewright.ir.expressions import form_of
from tilewright.ir.passes import Pass
from tilewright.ir.regions import ControlFlowOp, Phi, phis_of, without_phis
from tilewright.support.dataclass import dataclass
from tilewright.support.deep_calls import with_room


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
    same = {p: r for p, r in _Roots(loop).find().items() if r is not None and _is_outside(r, loop)}
    for phi, root in same.items():
        for value in phi.values:
            value.replace_all_uses_with(root)
    if same:
        without_phis(loop, tuple(same))


class _Roots:
    """The one value that each phi of a loop is, whichever way control comes.

    What is not known yet is taken for the same as the rest: values that a loop only trades are
    one value if they start as one, and what a loop computes again is the same if all is of which
    it is computed.
    """

    def __init__(self, loop: ControlFlowOp) -> None:
        self._loop = loop
        self._phis = phis_of(loop)
        self._owners = {value: phi for phi in self._phis for value in phi.values}
        self._roots: dict[Phi, SSAValue | None] = {}

    def find(self) -> dict[Phi, SSAValue | None]:
        """The value of each phi; None where there are several."""
        before = None
        while self._roots != before:
            before = dict(self._roots)
            for phi in self._phis:
                self._visit(phi)
        return self._roots

    def _visit(self, phi: Phi) -> None:
        found = {self._root_of(v) for v in phi.sources() if self._is_known(v)}
        outside = [v for v in found if v is not None and _is_outside(v, self._loop)]
        if len(outside) == 1:
            same: set[tuple[SSAValue, SSAValue]] = set()
            again = {v for v in found if v is not None and self._is_again(v, outside[0], same)}
            found = {outside[0], *(found - again)}
        if found:
            self._roots[phi] = found.pop() if len(found) == 1 else None

    def _is_known(self, value: SSAValue) -> bool:
        return value not in self._owners or self._owners[value] in self._roots

    def _root_of(self, value: SSAValue) -> SSAValue | None:
        return self._roots[self._owners[value]] if value in self._owners else value

    def _is_again(
        self, inner: SSAValue, outer: SSAValue, same: set[tuple[SSAValue, SSAValue]]
    ) -> bool:
        """Whether a value is the one from outside, or computed in the loop as that one was."""
        root = self._root_of(inner) if self._is_known(inner) else outer
        if root is outer or (root, outer) in same:
            return True
        if not isinstance(root, OpResult) or not isinstance(outer, OpResult):
            return False
        one, other = root.op, outer.op
        form = form_of(one)
        if _is_outside(root, self._loop) or form is None or form != form_of(other):
            return False
        pairs = list(zip(one.operands, other.operands, strict=False))
        is_alike = root.index == outer.index and len(one.operands) == len(other.operands)
        if not is_alike or not all(self._is_deeper_again(pair, same) for pair in pairs):
            return False
        same.add((root, outer))
        return True

    def _is_deeper_again(
        self, pair: tuple[SSAValue, SSAValue], same: set[tuple[SSAValue, SSAValue]]
    ) -> bool:
        return with_room(lambda: self._is_again(*pair, same))


def _is_outside(value: SSAValue, loop: Operation) -> bool:
    """Whether a value is there before a loop."""
    block = value.op.parent if isinstance(value, OpResult) else value.owner
    return isinstance(block, Block) and not loop.is_ancestor(block)
