"""Writes on every load and store what the affine analysis says of it, for people and tests.

Requires and produces T0; changes nothing but attributes. In no target's pipeline.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, StringAttr

from tilewright.analysis.affine.access import Accesses
from tilewright.analysis.affine.text import describe_access
from tilewright.ir.passes import Pass
from tilewright.ops.memory.ir import LoadOp, StoreOp
from tilewright.support.dataclass import dataclass

ATTRIBUTE = "tw.access"


@dataclass(frozen=True)
class DescribeAccesses(Pass):
    """The pass; see the module."""

    name = "describe-accesses"
    after = ("lower-block-pointers", "lower-descriptors", "split-carried-pointers")

    def apply(self, module: ModuleOp) -> None:
        """Annotate every load and store of a module."""
        accesses = Accesses()
        for op in module.walk():
            if isinstance(op, LoadOp | StoreOp):
                found = accesses.of(op)
                text = found if isinstance(found, str) else describe_access(found)
                op.attributes[ATTRIBUTE] = StringAttr(text)
