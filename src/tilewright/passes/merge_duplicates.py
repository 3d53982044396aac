"""Merges pure ops that compute the same value (common subexpressions).

Why: two ways of writing `x + offsets` must be one value for the schedule to see that a store
hits exactly what was loaded, and equal masks and indices need be computed only once. An op is
merged with an equal one in its own block or in one around it, where the regions between are
those of control flow. Requires and produces T0.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from tilewright.ir.edits import erase
from tilewright.ir.expressions import form_of
from tilewright.ir.passes import Pass
from tilewright.ir.regions import is_control_flow
from tilewright.support.dataclass import dataclass

Key = tuple[object, tuple[SSAValue, ...]]


@dataclass(frozen=True)
class MergeDuplicates(Pass):
    """The pass; see the module."""

    name = "merge-duplicates"
    after = ("split-carried-pointers", "split-products")

    def apply(self, module: ModuleOp) -> None:
        """Rewrite every function of a module."""
        for op in module.body.block.ops:
            for region in op.regions:
                for block in region.blocks:
                    _merge(block, {})


def _merge(block: Block, seen: dict[Key, Operation]) -> None:
    """Merge the ops of a block; `seen` is as it was when it ends."""
    own: list[Key] = []
    for op in tuple(block.ops):
        # A combine function is applied to vectors as well as to scalars: it uses nothing from
        # outside.
        visible = seen if is_control_flow(op) else {}
        for region in op.regions:
            for inner in region.blocks:
                _merge(inner, visible)
        form = form_of(op)
        if form is None:
            continue
        key = (form, tuple(op.operands))
        earlier = seen.setdefault(key, op)
        if earlier is op:
            own.append(key)
        else:
            for old, new in zip(op.results, earlier.results, strict=True):
                old.replace_all_uses_with(new)
            erase(op)
    for key in own:
        del seen[key]
