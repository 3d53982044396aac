"""Makes the roles that a kernel's schedule asks for (T0 to T0r); see `form_roles.py`.

A kernel without a schedule of roles stays as it is, and so does one that cannot be partitioned:
a remark says which line is in the way, and why.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr

from tilewright.ir.passes import Pass
from tilewright.ir.schedule_attributes import schedule_of
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.schedule.partition.form_roles import form_roles
from tilewright.schedule.partition.refusal import Refused
from tilewright.support.dataclass import dataclass
from tilewright.targets.nvidia.partition.smaller_maps import (
    SmallerMaps,
    drop_unused_maps,
    maps_of,
)

REMARKS_ATTRIBUTE = "tw.partition_remarks"
"""Left on the kernel: why it has no roles."""


@dataclass(frozen=True)
class FormRoles(Pass):
    """The pass; see the module."""

    name = "form-roles"
    produces = "T0r"
    after = ("select-tensor-maps", "merge-duplicates")

    def apply(self, module: ModuleOp) -> None:
        """Rewrite the kernel."""
        kernel = find_kernel(module)
        schedule = schedule_of(kernel)
        if schedule is None or not any(role.kind == "load" for role in schedule.roles):
            return
        maps = SmallerMaps(kernel)
        try:
            form_roles(kernel, schedule, maps_of(kernel), maps.shrink)
        except Refused as refused:
            maps.undo()
            kernel.attributes[REMARKS_ATTRIBUTE] = ArrayAttr([StringAttr(refused.remark())])
        drop_unused_maps(kernel)


def partition_remarks(kernel: FuncOp) -> tuple[str, ...]:
    """Why a kernel has no roles that were asked for."""
    texts = kernel.attributes.get(REMARKS_ATTRIBUTE)
    return tuple(text.data for text in texts) if isinstance(texts, ArrayAttr) else ()
