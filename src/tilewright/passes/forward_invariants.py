"""Replaces loop-carried values that a loop never changes by their initial value.

    for … iter_args(%x = %init) { … yield %x }   ⇒   for … { … %init … }

Why: a carried scalar hides constants (strides!) from the analysis of pointers. Requires and
produces T0.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tilewright.ir.passes import Pass
from tilewright.ir.regions import rebuilt
from tilewright.ops.control_flow import ForOp
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class ForwardInvariants(Pass):
    """The pass; see the module."""

    name = "forward-invariants"
    after = ("lower-block-pointers", "lower-descriptors", "select-tensor-maps")

    def apply(self, module: ModuleOp) -> None:
        """Rewrite every loop of a module, inner ones first."""
        for op in reversed(tuple(module.walk())):
            if isinstance(op, ForOp) and op.results:
                _forward(op)


def _forward(loop: ForOp) -> None:
    body = loop.body.block
    terminator = body.last_op
    assert terminator is not None
    same = [
        value is body.args[index + 1] or value is loop.operands[index + 3]
        for index, value in enumerate(terminator.operands)
    ]
    if not any(same):
        return
    initial = tuple(loop.operands[3:])
    kept = [index for index, is_same in enumerate(same) if not is_same]
    terminator.operands = [terminator.operands[index] for index in kept]
    for index in reversed(range(len(same))):
        if same[index]:
            argument = body.args[index + 1]
            argument.replace_all_uses_with(initial[index])
            body.erase_arg(argument)
    operands = [*loop.operands[:3], *(initial[index] for index in kept)]
    types = [loop.results[index].type for index in kept]
    new = rebuilt(loop, operands, types)
    for index, result in enumerate(loop.results):
        result.replace_all_uses_with(
            initial[index] if same[index] else new.results[kept.index(index)]
        )
    loop.detach()
    loop.erase()
