"""The ops that only the NVIDIA target has."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType, StringAttr
from xdsl.irdl import irdl_op_definition, operand_def, prop_def

from tilewright.ir.effects import Effect, Order, Resource, update
from tilewright.ir.op import OneThreadOp, TileOp, ops_of
from tilewright.ir.types import i32
from tilewright.ops import rings, roles, staging
from tilewright.ops.channels import CHANNEL_OPS
from tilewright.targets.nvidia.tma_ops import TMA_OPS


@irdl_op_definition
class FenceAsyncSharedOp(TileOp):
    """This thread's writes to shared memory are seen by the async units (wgmma, TMA) after it."""

    name = "ttng.fence_async_shared"

    def effects(self) -> tuple[Effect, ...]:
        return (Order.FENCE,)


@irdl_op_definition
class FenceGlobalOp(OneThreadOp):
    """What copies have written to global memory, and others have waited for, is seen from here on.

    By threads as by copies: neither reads what it has kept of it.
    """

    name = "ttng.fence_global"

    def effects(self) -> tuple[Effect, ...]:
        return (update(Resource.QUEUE),)


@irdl_op_definition
class PauseOp(TileOp):
    """Stand still for 0 to 4 µs, each time for another while; `seed` tells pauses apart.

    It computes nothing and orders nothing: it is there to disturb.
    """

    name = "ttng.pause"
    seed = prop_def(IntegerAttr)

    def effects(self) -> tuple[Effect, ...]:
        return ()


@irdl_op_definition
class TurnBarriersOp(TileOp):
    """The mbarriers of turns whose waits have a bound, one for each replica, made before the roles.

    They lie behind each other from byte `offset_bytes` of shared memory on; `arrivals` end a phase
    of each.
    """

    name = "ttng.turn_barriers"
    offset_bytes = prop_def(IntegerAttr)
    arrivals = prop_def(DenseArrayBase[IntegerType])

    def effects(self) -> tuple[Effect, ...]:
        return (update(Resource.SHARED),)


@irdl_op_definition
class AwaitTurnOp(TileOp):
    """Wait at an mbarrier until the turn has been passed to this replica `count` times before.

    The first replica has its first turn from the start. `start_bytes` is the mbarrier of the first
    replica, and each has its own 8 bytes behind the one before.
    """

    name = "ttng.await_turn"
    count = operand_def(i32)
    turns = prop_def(StringAttr)
    start_bytes = prop_def(IntegerAttr)

    def effects(self) -> tuple[Effect, ...]:
        return (update(Resource.SHARED),)


@irdl_op_definition
class TellTurnOp(TileOp):
    """Arrive, by each warp, at the mbarrier of the replica whose turn comes next."""

    name = "ttng.tell_turn"
    turns = prop_def(StringAttr)
    start_bytes = prop_def(IntegerAttr)

    def effects(self) -> tuple[Effect, ...]:
        return (update(Resource.SHARED),)


TURN_OPS = (TurnBarriersOp, AwaitTurnOp, TellTurnOp)
NVIDIA_OPS = (
    *ops_of(staging), *ops_of(rings), *ops_of(roles), *CHANNEL_OPS, FenceAsyncSharedOp,
    FenceGlobalOp, PauseOp, *TURN_OPS, *TMA_OPS
)  # fmt: skip
