"""Matrix products and the packing of their operands, by the microkernel's functions."""

from __future__ import annotations

from typing import Literal

from xdsl.ir import Attribute, SSAValue

from tilewright.codegen.context import EmitContext
from tilewright.ir import types as ir
from tilewright.support.dataclass import replace
from tilewright.support.errors import InternalError
from tilewright.targets.cpu.dot.microkernel import emit_dot
from tilewright.targets.cpu.dot.packing import emit_pack
from tilewright.targets.cpu.dot.spec import DotSpec, SourceTile
from tilewright.targets.cpu.dot.types import dot_spec, dtype_key
from tilewright.targets.cpu.ops import (
    AMX_UNITS,
    SPLIT_AMX_UNIT,
    UNIT_2X2,
    DotOp,
    PackOp,
    unit_of,
)
from tilewright.targets.cpu.rules import CPU_RULES
from tilewright.targets.cpu.services import CpuServices


def services(ctx: EmitContext) -> CpuServices:
    """The CPU's services of a context."""
    if not isinstance(ctx.target, CpuServices):
        raise InternalError("a CPU rule was reached through another target")
    return ctx.target


def pointee(value: SSAValue) -> Attribute:
    """The element type that a scalar pointer points to."""
    assert isinstance(value.type, ir.PointerType)
    return value.type.pointee


@CPU_RULES.register(DotOp)
def _dot(ctx: EmitContext, op: DotOp) -> None:
    cpu = services(ctx)
    shape = (op.m.value.data, op.n.value.data, op.k.value.data)
    # The packed operands of that unit are not what its products are of.
    is_split = unit_of(op) == SPLIT_AMX_UNIT
    spec = dot_spec(
        ir.f16 if is_split else pointee(op.a),
        ir.f16 if is_split else pointee(op.b if op.b_source is None else op.b_source),
        shape,
        cpu.features,
        cpu.vector_bytes,
        op.zero_init is not None,
    )
    next_b = None
    if op.next_b is not None:
        next_b = SourceTile(op.k.value.data, ir.storage_bytes(pointee(op.next_b)))
    spec = replace(
        spec,
        a_in_place=op.a_stride is not None,
        next_b=next_b,
        packs_b=op.b_source is not None and op.transposed_b is None,
        transposed_b=op.transposed_b is not None,
        is_amx=unit_of(op) in AMX_UNITS,
        is_2x2=unit_of(op) == UNIT_2X2,
        is_limited=op.depth is not None,
        has_row_limit=op.rows is not None and op.depth is None,
        has_target=op.target is not None,
        target_dtype=_target_dtype(op),
        ldc=None if op.acc_stride is None else op.acc_stride.value.data,
    )
    function = emit_dot(ctx.module, spec)
    operands = ", ".join(ctx.typed(v) for v in op.operands)
    ctx.fn.emit(f"call void {function}({operands})")


def _target_dtype(op: DotOp) -> str | None:
    """The element type to which a sum is rounded; None where it is as it is added up."""
    if op.target is None or pointee(op.target) == pointee(op.acc):
        return None
    return dtype_key(pointee(op.target))


@CPU_RULES.register(PackOp)
def _pack(ctx: EmitContext, op: PackOp) -> None:
    cpu = services(ctx)
    role: Literal["a", "b"] = "a" if op.role.data == "a" else "b"
    source = pointee(op.src)
    spec = _operand_spec(cpu, source, role, op.rows.value.data, op.columns.value.data)
    spec = replace(spec, is_amx=unit_of(op) in AMX_UNITS, is_2x2=unit_of(op) == UNIT_2X2)
    copy = spec.pack_spec(role, op.transposed is not None)
    function = emit_pack(ctx.module, replace(copy, is_limited=op.num_rows is not None))
    stride = ctx.value(op.stride)
    if ir.width_bits(op.stride.type) < 64:
        stride = ctx.fn.value(f"sext {ctx.typed(op.stride)} to i64")
    pairs = ((op.num_rows, op.num_columns), (op.filled_rows, op.filled_columns))
    # The copy is told of the rows of A or the columns of B, then of k.
    ordered = (limit for pair in pairs for limit in (pair if role == "a" else pair[::-1]))
    limits = (ctx.typed(limit) for limit in ordered if limit is not None)
    arguments = ", ".join((ctx.typed(op.src), f"i64 {stride}", ctx.typed(op.dst), *limits))
    ctx.fn.emit(f"call void {function}({arguments})")


def _operand_spec(
    cpu: CpuServices, source: Attribute, role: str, rows: int, columns: int
) -> DotSpec:
    """A dot that reads this operand; the other operand's extent does not matter for packing."""
    shape = (rows, 1, columns) if role == "a" else (1, columns, rows)
    return dot_spec(source, source, shape, cpu.features, cpu.vector_bytes)
