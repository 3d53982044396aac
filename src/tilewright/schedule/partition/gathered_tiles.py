"""Tiles of which each replica makes a part and all replicas take the whole (T0r).

    %x : 64x64, the part of replica %r ⇒ put_part %ch, %x, %r; %w : 128x64 = get %ch

A replica has the whole tile when all of them have put their parts, so each waits for the others
once for each such tile. They go through the same loops and branches: what steers them is never a
part of a tile.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilewright.ir.op import build
from tilewright.ir.regions import is_control_flow
from tilewright.ir.types import i32
from tilewright.ops.channels import CHANNEL, ChannelOp, GetOp, PutPartOp
from tilewright.schedule.partition.refusal import Refused

_SLOTS = 2
"""A replica writes its next part while another still reads this one. Source: hand-written
attention backward needs two (H200)."""


class GatheredTiles:
    """The channels through which replicas show each other their parts."""

    def __init__(self) -> None:
        self.channels: list[Operation] = []

    def gather(
        self, block: Block, like: Operation, part: SSAValue, replica: SSAValue, whole: Attribute,
        dim: int,
    ) -> SSAValue:  # fmt: skip
        """Put a part at the end of a block, and get the whole tile.

        *Raises*: Refused for what a loop or a branch gives.
        """
        if is_control_flow(like):
            raise Refused(like, f"{like.name} gives a tile in parts that a product needs whole")
        properties: dict[str, Attribute] = {
            "channel_name": StringAttr(f"parts{len(self.channels)}"),
            "tiles": ArrayAttr([whole]),
            "slots": IntegerAttr(_SLOTS, i32),
        }
        channel = build(ChannelOp, (), [CHANNEL], properties, location=like.location)
        self.channels.append(channel)
        operands = [channel.results[0], part, replica]
        dims: dict[str, Attribute] = {"dim": IntegerAttr(dim, i32)}
        block.add_op(build(PutPartOp, operands, (), dims, location=like.location))
        get = build(GetOp, [channel.results[0]], [whole], location=like.location)
        block.add_op(get)
        return get.results[0]
