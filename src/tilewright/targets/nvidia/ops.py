"""The ops that only the NVIDIA target has."""

from __future__ import annotations

from xdsl.irdl import irdl_op_definition

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


NVIDIA_OPS = (*ops_of(staging), *ops_of(roles), *CHANNEL_OPS, FenceAsyncSharedOp, *TMA_OPS)
