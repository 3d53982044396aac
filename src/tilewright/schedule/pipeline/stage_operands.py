"""Gives tiles that are copied ahead and change layouts a place in shared memory (T1 to T1).

    %x = tt.load %p; %a = ttg.convert_layout %x; ttg.dot %a, …
    ⇒ %x = tt.load %p; %s = ttg.local_alloc %x; %a = ttg.local_load %s; ttg.dot %a, …

They pass through shared memory anyway. Of a load that the schedule has a ring of threads for that
place is its slot, and what the conversion would write there, wait for and read is read from it.
Those are operands of `mma`, whose registers matrix loads read without conflicts, and tiles of one
dim (scales, a bias), whose elements lie in a row that any lanes may read.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import ModuleOp

from tilewright.ir.edits import replace_by
from tilewright.ir.encoding import SharedType, has_layout, shared_tile
from tilewright.ir.op import build
from tilewright.ir.passes import Pass
from tilewright.ir.schedule_attributes import anchor_of, schedule_of
from tilewright.ir.types import element_of, shape_of, storage_bytes
from tilewright.layout.build import shared_row
from tilewright.ops.function import find_kernel
from tilewright.ops.memory.ir import LoadOp
from tilewright.ops.staging import ConvertLayoutOp, LaidOutDotOp, LocalAllocOp, LocalLoadOp
from tilewright.schedule.layout.stage_products import for_single_warps
from tilewright.schedule.plan.copies import no_copy_to
from tilewright.schedule.plan.products import is_matrix_of_words
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
    """Put the tile of one load into shared memory, if one conversion is all that takes it."""
    conversion = load.result.get_user_of_unique_use()
    if not isinstance(conversion, ConvertLayoutOp) or conversion.parent is not load.parent:
        return
    type_ = _place(load, conversion)
    if type_ is None or no_copy_to(load, type_):
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


def _place(load: LoadOp, conversion: ConvertLayoutOp) -> SharedType | None:
    """The shared tile from which a conversion's result is read as cheaply as from its own."""
    type_ = load.result.type
    if not has_layout(type_):
        return None
    shape = shape_of(type_)
    if max(shape) == prod(shape):
        return shared_tile(element_of(type_), shared_row(shape, storage_bytes(type_)))
    product = conversion.result.get_user_of_unique_use()
    if not isinstance(product, LaidOutDotOp) or product.product.data.instruction != "mma":
        return None
    if not is_matrix_of_words(load.result):
        return None
    return for_single_warps(load.result, 1 if product.operands[0] is conversion.result else 0)
