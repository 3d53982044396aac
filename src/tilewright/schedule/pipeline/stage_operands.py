"""Gives operands of mma that are copied ahead a place in shared memory (T1 to T1).

    %x = tt.load %p; %a = ttg.convert_layout %x; ttg.dot %a, …
    ⇒ %x = tt.load %p; %s = ttg.local_alloc %x; %a = ttg.local_load %s; ttg.dot %a, …

The instruction takes registers, in a layout in which no load finds them: they pass through shared
memory anyway. Of a load that the schedule has a ring of threads for that place is its slot, which
matrix loads read without conflicts.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tilewright.ir.edits import replace_by
from tilewright.ir.encoding import has_layout
from tilewright.ir.op import build
from tilewright.ir.passes import Pass
from tilewright.ir.schedule_attributes import anchor_of, schedule_of
from tilewright.ops.function import find_kernel
from tilewright.ops.memory.ir import LoadOp
from tilewright.ops.staging import ConvertLayoutOp, LaidOutDotOp, LocalAllocOp, LocalLoadOp
from tilewright.schedule.layout.stage_products import swizzled
from tilewright.schedule.plan.copies import no_copy_to
from tilewright.schedule.plan.products import is_half_matrix
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class StageOperands(Pass):
    """The pass; see the module."""

    name = "stage-operands"
    requires = "T1"
    produces = "T1"
    after = ("assign-layouts", "stage-tensor-maps")

    def apply(self, module: ModuleOp) -> None:
        """Rewrite the kernel."""
        kernel = find_kernel(module)
        schedule = schedule_of(kernel)
        if schedule is None:
            return
        for load in [op for op in kernel.walk() if isinstance(op, LoadOp)]:
            anchor = anchor_of(load)
            channel = None if anchor is None else schedule.channel_of(anchor)
            if channel is not None and channel.medium == "cp_async":
                _stage(load)


def _stage(load: LoadOp) -> None:
    """Put the tile of one load into shared memory, if an mma is all that takes it."""
    conversion = load.result.get_user_of_unique_use()
    if not isinstance(conversion, ConvertLayoutOp) or conversion.parent is not load.parent:
        return
    product = conversion.result.get_user_of_unique_use()
    if not isinstance(product, LaidOutDotOp) or product.product.data.instruction != "mma":
        return
    if not is_half_matrix(load.result) or not has_layout(load.result.type):
        return
    type_ = swizzled(load.result, k_dim=1 if product.operands[0] is conversion.result else 0)
    if no_copy_to(load, type_):
        return
    block = load.parent
    assert block is not None
    tile = build(LocalAllocOp, [load.result], [type_], location=load.location)
    block.insert_op_before(tile, conversion)
    read = build(
        LocalLoadOp, [tile.results[0]], [conversion.result.type], location=conversion.location
    )
    block.insert_op_before(read, conversion)
    replace_by(conversion, read.results[0])
