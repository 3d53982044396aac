"""Conversions between float types, all registers of a tile at once.

Hardware converts two neighbours into one word; one register at a time would leave it to the
back end to find them again.
"""

from __future__ import annotations

from xdsl.ir import Operation

from tilewright.codegen.simt.context import SimtContext, element_type
from tilewright.codegen.simt.rules import SIMT_RULES
from tilewright.ops.elementwise.ir import ExtFOp, FpToFpOp, TruncFOp


@SIMT_RULES.register(ExtFOp, TruncFOp, FpToFpOp)
def _convert(ctx: SimtContext, op: Operation) -> None:
    (source,), (result,) = op.operands, op.results
    rounding = op.rounding_name() if isinstance(op, FpToFpOp) else "rtne"
    names = ctx.registers(source)
    types = element_type(source.type), element_type(result.type)
    distinct = list(dict.fromkeys(names))
    converted = ctx.target.convert_floats(ctx.fn, *types, distinct, rounding)
    by_name = dict(zip(distinct, converted, strict=True))
    ctx.define_tile(result, [by_name[name] for name in names])
