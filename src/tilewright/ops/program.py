"""Where a program stands in the grid."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.irdl import irdl_op_definition, prop_def, result_def, traits_def
from xdsl.traits import Pure

from tilewright.ir.op import TileOp


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


PROGRAM_OPS = (GetProgramIdOp, GetNumProgramsOp)
