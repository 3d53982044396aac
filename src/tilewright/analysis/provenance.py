"""Where a pointer comes from: the kernel's argument that it is computed from."""

from __future__ import annotations

from xdsl.ir import BlockArgument, OpResult, SSAValue

from tilewright.ops.control_flow import ForOp
from tilewright.ops.creation import SplatOp
from tilewright.ops.debug import HintOp
from tilewright.ops.elementwise import BitcastOp
from tilewright.ops.function import FuncOp
from tilewright.ops.memory import AddPtrOp
from tilewright.ops.shape import BroadcastOp, ExpandDimsOp, ReshapeOp, TransOp

_DERIVED = (
    AddPtrOp,
    BitcastOp,
    SplatOp,
    BroadcastOp,
    ExpandDimsOp,
    ReshapeOp,
    TransOp,
    HintOp,
)


def base_argument(pointer: SSAValue) -> SSAValue | None:
    """The kernel's argument that a pointer is computed from, or None where that is not known."""
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
        op = pointer.op
        if op.name != "ttg.convert_layout" and not isinstance(op, _DERIVED):
            return None
        pointer = op.operands[0]
