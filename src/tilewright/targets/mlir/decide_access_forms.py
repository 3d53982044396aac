"""Decides how each load and store of a tile is written: as a view of memory, or by its elements.

Why here: the decision reads the kernel as a whole, and the text is written op by op. What is
annotated already is kept, so that a user may ask for elements. Requires and produces T0.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, StringAttr

from tilewright.ir.locations import span_of
from tilewright.ir.passes import Pass
from tilewright.ir.types import shape_of
from tilewright.ops.function import functions_of
from tilewright.ops.memory.ir import LoadOp, StoreOp
from tilewright.support.dataclass import dataclass
from tilewright.targets.mlir.emitter import Emitter
from tilewright.targets.mlir.rules.memory import ACCESSES, FORM, view_or_reason
from tilewright.targets.mlir.text import ModuleText


@dataclass(frozen=True)
class AccessForms:
    """How many accesses are views, and why the others are not."""

    num_views: int
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class DecideAccessForms(Pass):
    """The pass; it annotates `tw.access_form`: `view`, or `elements: ` and the reason."""

    name = "decide-access-forms"

    def apply(self, module: ModuleOp) -> AccessForms:
        """Annotate every access of tiles; what was decided."""
        num_views, remarks = 0, list[str]()
        for kernel in functions_of(module):
            emitter = Emitter(ModuleText(), kernel)
            for op in kernel.walk():
                if not isinstance(op, ACCESSES) or not shape_of(op.operands[0].type):
                    continue
                if FORM not in op.attributes:
                    found = view_or_reason(emitter, op)
                    form = f"elements: {found}" if isinstance(found, str) else "view"
                    op.attributes[FORM] = StringAttr(form)
                form = op.attributes[FORM]
                assert isinstance(form, StringAttr)
                num_views += form.data == "view"
                if form.data != "view":
                    remarks.append(_remark(op, form.data.removeprefix("elements: ")))
        return AccessForms(num_views, tuple(remarks))


def _remark(op: LoadOp | StoreOp, reason: str) -> str:
    span, _ = span_of(op)
    where = "" if span is None else f"{span.position()}: "
    return f"{where}this {op.name.removeprefix('tt.')} goes element by element: {reason}"
