"""Where a program stands in the grid."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.irdl import irdl_op_definition, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tilewright.ir.effects import Effect, Resource, update
from tilewright.ir.op import TileOp

# By definition: the axes of a grid.
_NUM_AXES = 3


def _require_axis(name: str, axis: IntegerAttr) -> None:
    """Hold an op to an axis of a grid. *Raises*: VerifyException."""
    if not 0 <= axis.value.data < _NUM_AXES:
        raise VerifyException(f"{name}: axis {axis.value.data} is not 0, 1 or 2")


@irdl_op_definition
class GetProgramIdOp(TileOp):
    """The coordinate of this program along `axis` (0, 1 or 2) as i32."""

    name = "tt.get_program_id"
    axis = prop_def(IntegerAttr)
    result = result_def()
    traits = traits_def(Pure())

    def verify_(self) -> None:
        """The grid has the axis."""
        _require_axis(self.name, self.axis)


@irdl_op_definition
class GetNumProgramsOp(TileOp):
    """The extent of the grid along `axis` (0, 1 or 2) as i32."""

    name = "tt.get_num_programs"
    axis = prop_def(IntegerAttr)
    result = result_def()
    traits = traits_def(Pure())

    def verify_(self) -> None:
        """The grid has the axis."""
        _require_axis(self.name, self.axis)


@irdl_op_definition
class GetGridExtentOp(TileOp):
    """The extent along `axis` (0, 1 or 2) of the grid that the launch asks for, as i32.

    As many programs run, except in a persistent kernel (`runtime/grid.py`), which has fewer.
    """

    name = "tw.get_grid_extent"
    axis = prop_def(IntegerAttr)
    result = result_def()
    traits = traits_def(Pure())

    def verify_(self) -> None:
        """The grid has the axis."""
        _require_axis(self.name, self.axis)


@irdl_op_definition
class ClockOp(TileOp):
    """The nanoseconds of a clock that never goes back, as i64; each read is a later one."""

    name = "tw.clock"
    result = result_def()

    def effects(self) -> tuple[Effect, ...]:
        return (update(Resource.CLOCK),)
