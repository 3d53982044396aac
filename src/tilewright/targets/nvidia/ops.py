"""The ops that only the NVIDIA target has."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.irdl import irdl_op_definition, prop_def

from tilewright.ir.effects import Effect, Order
from tilewright.ir.op import TileOp, ops_of
from tilewright.ops import roles, staging
from tilewright.ops.channels import CHANNEL_OPS
from tilewright.targets.nvidia.tma_ops import TMA_OPS


@irdl_op_definition
class FenceAsyncSharedOp(TileOp):
    """This thread's writes to shared memory are seen by the async units (wgmma, TMA) after it."""

    name = "ttng.fence_async_shared"

    def effects(self) -> tuple[Effect, ...]:
        return (Order.FENCE,)


@irdl_op_definition
class PauseOp(TileOp):
    """Stand still for 0 to 4 µs, each time for another while; `seed` tells pauses apart.

    It computes nothing and orders nothing: it is there to disturb.
    """

    name = "ttng.pause"
    seed = prop_def(IntegerAttr)

    def effects(self) -> tuple[Effect, ...]:
        return ()


NVIDIA_OPS = (*ops_of(staging), *ops_of(roles), *CHANNEL_OPS, FenceAsyncSharedOp, PauseOp, *TMA_OPS)
