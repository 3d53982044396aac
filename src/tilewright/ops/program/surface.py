"""User functions that say where a program stands in the grid."""

from __future__ import annotations

from tilewright.language.core import int32, tensor
from tilewright.ops.arguments import integer_constant
from tilewright.ops.builder import Builder, integer_property
from tilewright.ops.program.ir import GetNumProgramsOp, GetProgramIdOp
from tilewright.ops.surface import surface
from tilewright.support.errors import AxisOutOfRange


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
