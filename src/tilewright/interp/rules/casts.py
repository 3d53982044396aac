"""Casts: each op picks a conversion of `interp.casts` by its types."""

from __future__ import annotations

from xdsl.ir import Operation

from tilewright.interp import casts
from tilewright.interp.code import PlainFunction, Preparation
from tilewright.interp.program import Program
from tilewright.interp.rules.tables import TILE_RULES
from tilewright.interp.values import dtype_of
from tilewright.ir.op import Array
from tilewright.ops.elementwise import ir as ops


@TILE_RULES.plain.register(ops.ExtFOp, ops.TruncFOp, ops.FpToFpOp)
def float_cast(operation: Operation, _: Preparation) -> PlainFunction:
    """Float to float under the op's rounding mode."""
    dtype = dtype_of(operation.results[0].type)
    rounding = operation.rounding_name() if isinstance(operation, ops.FpToFpOp) else "rtne"
    return lambda program, src: casts.round_float(src, dtype, rounding)


@TILE_RULES.plain.register(ops.SIToFPOp, ops.UIToFPOp)
def integer_to_float(operation: Operation, _: Preparation) -> PlainFunction:
    """Integer to float, rounded once."""
    dtype = dtype_of(operation.results[0].type)
    signed = isinstance(operation, ops.SIToFPOp)
    return lambda program, src: casts.integer_to_float(src, dtype, signed=signed)


@TILE_RULES.plain.register(ops.FPToSIOp, ops.FPToUIOp)
def float_to_integer(operation: Operation, _: Preparation) -> PlainFunction:
    """Float to integer towards zero."""
    dtype = dtype_of(operation.results[0].type)
    signed = isinstance(operation, ops.FPToSIOp)
    return lambda program, src: casts.float_to_integer(src, dtype, signed=signed)


@TILE_RULES.plain.register(ops.ExtSIOp, ops.ExtUIOp)
def extend(operation: Operation, _: Preparation) -> PlainFunction:
    """Integer to a wider integer."""
    dtype = dtype_of(operation.results[0].type)
    signed = isinstance(operation, ops.ExtSIOp)
    return lambda program, src: casts.extend_integer(src, dtype, signed=signed)


@TILE_RULES.plain.register(ops.TruncIOp)
def truncate(operation: Operation, _: Preparation) -> PlainFunction:
    """Integer to a narrower integer."""
    dtype = dtype_of(operation.results[0].type)
    return lambda program, src: casts.truncate_integer(src, dtype)


@TILE_RULES.plain.register(ops.ArithBitcastOp, ops.BitcastOp)
def bitcast(operation: Operation, _: Preparation) -> PlainFunction:
    """The same bits under another type."""
    dtype = dtype_of(operation.results[0].type)
    return lambda program, src: casts.reinterpret(src, dtype)


@TILE_RULES.plain.register(ops.IndexCastOp)
def index_cast(operation: Operation, _: Preparation) -> PlainFunction:
    """Integer to or from index."""
    source, target = operation.operands[0].type, operation.results[0].type
    return lambda program, src: casts.index_cast(src, source, target)


@TILE_RULES.plain.register(ops.PtrToIntOp)
def pointer_to_integer(operation: Operation, _: Preparation) -> PlainFunction:
    """The address itself."""
    return lambda program, src: src


@TILE_RULES.plain.register(ops.IntToPtrOp)
def integer_to_pointer(operation: Operation, _: Preparation) -> PlainFunction:
    """An address; a real one that lies in a known array becomes its virtual one."""

    def evaluate(program: Program, src: Array) -> Array:
        return program.machine.memory.translate(src)

    return evaluate
