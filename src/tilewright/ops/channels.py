"""Channels between roles at T0r: values that one role puts and others get, in the same order.

A channel has no memory and no number of barriers yet. What a role puts is a fill, a value for
each of the channel's tiles; every replica of every role that reads the channel gets every fill,
in the order in which they were put, but for those that it skips. Replicas that each have a part
of a tile put those parts, which together are a fill. Roles with channels are a
network of processes: what they compute does not depend on which of them runs first.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tilewright.ir.effects import Effect, Resource, update
from tilewright.ir.op import Array, TileOp
from tilewright.ir.types import element_of, i1, i32, shape_of


@irdl_attr_definition
class ChannelType(ParametrizedAttribute, TypeAttribute):
    """A channel: fills that one role puts and others get."""

    name = "tw.channel"


CHANNEL = ChannelType()


@irdl_op_definition
class ChannelOp(TileOp):
    """A channel of fills with a value of each of the types `tiles`.

    A fill is put once every reader has got the one `slots` before it; with no slots, at once.
    `channel_name` is what messages call it. With `shares` its slots will lie in the memory of the
    channel of that name.
    """

    name = "tw.channel"
    channel_name = prop_def(StringAttr)
    shares = opt_prop_def(StringAttr)
    tiles = prop_def(ArrayAttr[Attribute])
    slots = prop_def(IntegerAttr)
    result = result_def(ChannelType)

    def effects(self) -> tuple[Effect, ...]:
        """It is a thing of its own: two channels that look alike are not one."""
        return (update(Resource.QUEUE),)

    def verify_(self) -> None:
        """There are no less than no slots, and something to carry but where roles only meet."""
        is_used = any(not isinstance(use.operation, MeetOp) for use in self.result.uses)
        if (is_used and not self.tiles.data) or self.slots.value.data < 0:
            count = self.slots.value.data
            raise VerifyException(f"{self.name}: {len(self.tiles.data)} tiles, {count} slots")


class _ChannelAccess(TileOp):
    """What both ends of a channel have in common."""

    def effects(self) -> tuple[Effect, ...]:
        return (update(Resource.QUEUE),)

    def channel_of(self) -> ChannelOp:
        """The channel of this end. *Raises*: VerifyException where it is handed on."""
        owner = self.operands[0].owner
        if not isinstance(owner, ChannelOp):
            raise VerifyException(f"{self.name}: its channel is no result of {ChannelOp.name}")
        return owner

    def check_values(self, values: tuple[SSAValue, ...]) -> None:
        """Hold the values of a fill to the channel's types. *Raises*: VerifyException."""
        expected = self.channel_of().tiles.data
        kinds = [(element_of(type_), shape_of(type_)) for type_ in expected]
        # A channel is made of tiles, whatever their layouts at either end.
        if [(element_of(value.type), shape_of(value.type)) for value in values] != kinds:
            shown = ", ".join(map(str, expected))
            raise VerifyException(f"{self.name}: the channel carries ({shown})")


@irdl_op_definition
class PutOp(_ChannelAccess):
    """The next fill of a channel is `values`.

    Behind them may stand an i1 for each, `shared`: whether the program beside this one in its
    cluster puts the same value there, so that each may bring a part of it to both.
    """

    name = "tw.put"
    channel = operand_def(ChannelType)
    given = var_operand_def()

    @property
    def values(self) -> tuple[SSAValue, ...]:
        """What is put."""
        return tuple(self.given[: len(self.channel_of().tiles.data)])

    @property
    def shared(self) -> tuple[SSAValue, ...]:
        """Which values the cluster shares; () where none is."""
        return tuple(self.given[len(self.values) :])

    def verify_(self) -> None:
        """The values are what the channel carries, and whether they are shared is i1."""
        self.check_values(self.values)
        if self.shared and [flag.type for flag in self.shared] != [i1] * len(self.values):
            raise VerifyException(f"{self.name}: an i1 for each value says whether it is shared")


@irdl_op_definition
class PutPartOp(_ChannelAccess):
    """Part number `part` (i32) along `dim` of the next fill of a channel of one tile.

    Each replica of a role puts a part of its own; the fill is there when all of them are:
    fill[…, part * extent + i, …] = value[…, i, …].
    """

    name = "tw.put_part"
    channel = operand_def(ChannelType)
    value = operand_def()
    part = operand_def()
    dim = prop_def(IntegerAttr)

    def verify_(self) -> None:
        """The value is a part of the one tile of the channel."""
        tiles, dim = self.channel_of().tiles.data, self.dim.value.data
        if len(tiles) != 1 or not _is_part(tiles[0], self.value.type, dim):
            shown = ", ".join(map(str, tiles))
            raise VerifyException(f"{self.name}: {self.value.type} is no part of ({shown})")
        if self.part.type != i32:
            raise VerifyException(f"{self.name}: the number of a part is i32")


@irdl_op_definition
class GetOp(_ChannelAccess):
    """The next fill of a channel that this replica has not got."""

    name = "tw.get"
    channel = operand_def(ChannelType)
    values = var_result_def()

    def verify_(self) -> None:
        """The results are what the channel carries."""
        self.check_values(tuple(self.values))


@irdl_op_definition
class SkipOp(_ChannelAccess):
    """Leave the next `count` fills (i32, not negative) to other replicas; nobody waits here.

    The next fill that this replica gets is the one behind them.
    """

    name = "tw.skip"
    channel = operand_def(ChannelType)
    count = operand_def()

    def verify_(self) -> None:
        """The count is i32, and the channel is named itself."""
        self.channel_of()
        if self.count.type != i32:
            raise VerifyException(f"{self.name}: the count is i32")


@irdl_op_definition
class MeetOp(TileOp):
    """All roles of the program wait for each other.

    What any of them has stored before is what others load behind it. One program finds that
    anyway; so it stands for nothing until there are roles, and has no channel: `count` replicas
    meet at `channel`, which carries nothing else.
    """

    name = "tw.meet"
    channel = var_operand_def(ChannelType)
    count = opt_prop_def(IntegerAttr)

    def effects(self) -> tuple[Effect, ...]:
        return (update(Resource.QUEUE),)

    def verify_(self) -> None:
        """A channel comes with the number of those who meet."""
        if len(self.channel) != (0 if self.count is None else 1):
            raise VerifyException(f"{self.name}: {len(self.channel)} channels")


@irdl_op_definition
class SliceOp(TileOp):
    """Part number `part` (i32) of a tile along `dim`, in parts of the result's extent.

    result[…, i, …] = src[…, part * extent + i, …]; the part lies inside of `src`.
    """

    name = "tw.slice"
    src = operand_def()
    part = operand_def()
    dim = prop_def(IntegerAttr)
    result = result_def()
    traits = traits_def(Pure())

    def verify_(self) -> None:
        """The result is `src` but for the extent of `dim`, which it divides."""
        if not _is_part(self.src.type, self.result.type, self.dim.value.data):
            raise VerifyException(f"{self.name}: {self.result.type} is no part of {self.src.type}")
        if self.part.type != i32:
            raise VerifyException(f"{self.name}: the number of a part is i32")

    def reference(self, src: Array, part: Array) -> Array:
        dim = self.dim.value.data
        size = shape_of(self.result.type)[dim]
        first = int(part) * size
        sliced: Array = src[(slice(None),) * dim + (slice(first, first + size),)]
        return sliced


def _is_part(whole_type: Attribute, part_type: Attribute, dim: int) -> bool:
    """Whether tiles of one type are whole parts of those of another one along a dim."""
    whole, part = shape_of(whole_type), shape_of(part_type)
    is_same = element_of(whole_type) == element_of(part_type)
    is_cut = len(whole) == len(part) and 0 <= dim < len(whole) and not whole[dim] % part[dim]
    return is_same and is_cut and _without(whole, dim) == _without(part, dim)


def _without(shape: tuple[int, ...], dim: int) -> tuple[int, ...]:
    return shape[:dim] + shape[dim + 1 :]


CHANNEL_OPS = (ChannelOp, PutOp, PutPartOp, GetOp, SkipOp, MeetOp, SliceOp)
