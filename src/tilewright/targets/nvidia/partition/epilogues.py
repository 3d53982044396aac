"""How roles store the blocks behind their products: in which chunks, and through how many tiles."""

from __future__ import annotations

from tilewright.ir.regions import loops_around
from tilewright.ir.schedule import Epilogue, Schedule
from tilewright.ir.types import shape_of, storage_bytes
from tilewright.ops.descriptors.ir import DescriptorReduceOp
from tilewright.ops.function import FuncOp
from tilewright.ops.matmul.ir import ProductOp
from tilewright.targets.nvidia.partition.room import stored_block

# By definition: two tiles in turn, or all columns of a tile of 256 at once.
TWO_BUFFERS, ALL_BUFFERS = 2, 4
_LEAST_SLOTS = 3
"""What all buffers have to leave of a ring. Source: figures of `gains_whole`, all with three."""
# Source: PTX ISA 8.8, 5.5.6, "Swizzling modes": the longest row.
_SWIZZLED_BYTES = 128


def epilogue_of(kernel: FuncOp, buffers: int) -> Epilogue:
    """Chunks as wide as a row that the copy engine swizzles, where something is stored by blocks.

    Source: two buffers of 64 columns, 1.06 to 1.17 times the speed of whole tiles (K = 1024, H200).
    """
    blocks = [(op, block) for op in kernel.walk() if (block := stored_block(op)) is not None]
    chunked = [pair for pair in blocks if not isinstance(pair[0], DescriptorReduceOp)]
    sizes = [storage_bytes(block) for _, block in chunked or blocks]
    if not sizes:
        return Epilogue()
    return Epilogue("tma", _SWIZZLED_BYTES // max(sizes), buffers)


def waits_whole(kernel: FuncOp, schedule: Schedule) -> bool:
    """Whether buffers hold a whole tile that is stored, and leave rings enough slots."""
    stored = [block for op in kernel.walk() if (block := stored_block(op)) is not None]
    chunks = {shape_of(block)[-1] // schedule.epilogue.columns for block in stored}
    slots = min((ring.slots for ring in schedule.channels), default=0)
    is_all = schedule.epilogue.buffers == ALL_BUFFERS and chunks == {ALL_BUFFERS}
    return is_all and slots >= _LEAST_SLOTS


def gains_whole(kernel: FuncOp, schedule: Schedule) -> bool:
    """Whether a schedule whose tiles wait whole is the faster one: products of tile after tile.

    Measured on an H200, 2026-11-28, of the speed with two buffers and four slots, back to back for
    seconds and cold: bf16 8192³ 1.006 and 1.004, 4096 x 14336 x 4096 1.015 and 1.009, 8192 x 8192 x
    1024 1.02 and 0.996, fp16 4096³ 1.01, fp8 8192³ 1.011 and 1.012, 4096³ 1.013. Where two programs
    load for each other it gains nothing (fp8 8192 x 8192 x 1024 0.98).
    """
    products = [op for op in kernel.walk() if isinstance(op, ProductOp)]
    is_nested = len(products) == 1 and len(list(loops_around(products[0]))) > 1
    is_alone = schedule.cluster == 1 and all(role.split in ("", "m") for role in schedule.roles)
    return is_nested and is_alone and waits_whole(kernel, schedule)
