"""Where a program stands in the grid."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.irdl import irdl_op_definition, prop_def, result_def, traits_def
from xdsl.traits import Pure

from tilewright.ir.effects import Effect, Resource, update
from tilewright.ir.op import TileOp
from tilewright.language.core import int32, tensor
from tilewright.ops.arguments import integer_constant
from tilewright.ops.builder import Builder, integer_property
from tilewright.ops.surface import surface
from tilewright.support.errors import AxisOutOfRange


@irdl_op_definition
class GetProgramIdOp(TileOp):
    """The coordinate of this program along `axis` (0, 1 or 2) as i32."""

    name = "tt.get_program_id"
    axis = prop_def(IntegerAttr)
    result = result_def()
    traits = traits_def(Pure())


@irdl_op_definition
class GetNumProgramsOp(TileOp):
    """The extent of the grid along `axis` (0, 1 or 2) as i32."""

    name = "tt.get_num_programs"
    axis = prop_def(IntegerAttr)
    result = result_def()
    traits = traits_def(Pure())


@irdl_op_definition
class ClockOp(TileOp):
    """The nanoseconds of a clock that never goes back, as i64; each read is a later one."""

    name = "tw.clock"
    result = result_def()

    def effects(self) -> tuple[Effect, ...]:
        return (update(Resource.CLOCK),)


def _grid_axis(axis: object, function: str) -> int:
    value = integer_constant(axis, function, "axis")
    if value not in (0, 1, 2):
        raise AxisOutOfRange(
            f"{function}(): `axis` is {value}; a grid has axes 0, 1 and 2",
            argument="axis",
            known_as=f"{function} axis must be 0, 1, or 2 but got {value}",
        )
    return value


@surface()
def program_id(b: Builder, axis: object) -> tensor:
    """The coordinate of this program in the grid along `axis` (0, 1 or 2), int32."""
    properties = {"axis": integer_property(_grid_axis(axis, "program_id"))}
    return b.tensor(GetProgramIdOp, [], int32, properties)


@surface()
def num_programs(b: Builder, axis: object) -> tensor:
    """The extent of the grid along `axis` (0, 1 or 2), int32."""
    properties = {"axis": integer_property(_grid_axis(axis, "num_programs"))}
    return b.tensor(GetNumProgramsOp, [], int32, properties)
