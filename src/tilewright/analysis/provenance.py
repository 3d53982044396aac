"""Where a pointer comes from: the kernel's argument that it is computed from."""

from __future__ import annotations

from xdsl.ir import BlockArgument, OpResult, SSAValue

from tilewright.ir.op import DerivedAddress
from tilewright.ops.control_flow import ForOp
from tilewright.ops.function import FuncOp


def base_argument(pointer: SSAValue) -> SSAValue | None:
    """The kernel's argument that a pointer is computed from, or None where that is not known.

    The pointer may be a tile of them, or a descriptor.
    """
    while True:
        if isinstance(pointer, BlockArgument):
            parent = pointer.block.parent_op()
            if isinstance(parent, FuncOp):
                return pointer
            if not isinstance(parent, ForOp) or pointer.index == 0:
                return None
            pointer = parent.iter_args[pointer.index - 1]
            continue
        assert isinstance(pointer, OpResult)
        if not pointer.op.has_trait(DerivedAddress):
            return None
        pointer = pointer.op.operands[0]
