"""Which instruction computes each matrix product, and how warps share it."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute

from tilewright.ir import types as ir
from tilewright.machine.mma import MMA, WGMMA
from tilewright.machine.model import MachineModel
from tilewright.ops.matmul import DotOp
from tilewright.support.dataclass import dataclass
from tilewright.support.options import INPUT_PRECISIONS

WARP_GROUP = WGMMA.warps
"""The warps that issue a wgmma together."""
_FLOAT8 = (ir.f8e4m3fn, ir.f8e5m2)


@dataclass(frozen=True)
class ProductPlan:
    """How one product is computed.

    `instruction` is `wgmma`, `mma` or `fma`; `warps` share the rows and the columns; `depth`
    is K of one instruction and `columns` its N; `reason` says why not the faster one.
    """

    instruction: str
    warps: tuple[int, int]
    columns: int
    depth: int
    reason: str = ""


def input_precision(op: DotOp) -> str:
    """The precision in which float32 operands enter a product."""
    return "ieee" if op.input_precision is None else INPUT_PRECISIONS[op.input_precision.value.data]


def plan_product(op: DotOp, machine: MachineModel, num_warps: int) -> ProductPlan:
    """The instruction for a product: the fastest whose shapes and dtypes fit."""
    *batch, rows, depth = ir.shape_of(op.a.type)
    columns = ir.shape_of(op.b.type)[-1]
    step = _instruction_depth(op)
    if batch:
        return _by_threads(num_warps, "batched products run on the FMA units")
    if step is None:
        return _by_threads(num_warps, f"no matrix instruction takes {_dtypes(op)}")
    reason = _no_wgmma(machine, num_warps, (rows, columns, depth), step)
    if not reason:
        return _wgmma(num_warps, rows, columns, step)
    if rows % MMA.rows or columns % MMA.column_step or depth % step or not machine.has_mma:
        return _by_threads(num_warps, f"{rows}x{columns}x{depth} is no multiple of 16x8x{step}")
    return _mma(num_warps, rows, step, reason)


def _dtypes(op: DotOp) -> str:
    return f"{ir.element_of(op.a.type)} x {ir.element_of(op.b.type)} ({input_precision(op)})"


def _instruction_depth(op: DotOp) -> int | None:
    """K of one matrix instruction: 32 bytes of each operand; None where there is none."""
    a, b, c = (ir.element_of(value.type) for value in (op.a, op.b, op.c))
    if a in _FLOAT8 and b in _FLOAT8:
        return 32 if c in (ir.f32, ir.f16) else None
    if a != b:
        return None
    if a in (ir.f16, ir.bf16):
        return 16 if c == ir.f32 or (a == ir.f16 and c == ir.f16) else None
    if a == ir.f32:
        return 8 if input_precision(op) == "tf32" else None
    return 32 if _is_integer(a, 8) and _is_integer(c, 32) else None


def _is_integer(type_: Attribute, width: int) -> bool:
    return isinstance(type_, IntegerType) and type_.width.data == width


def _no_wgmma(machine: MachineModel, num_warps: int, shape: tuple[int, int, int], step: int) -> str:
    rows, columns, depth = shape
    if not machine.has_wgmma:
        return "the machine has no wgmma"
    if num_warps % WARP_GROUP:
        return f"{num_warps} warps are no whole warp groups"
    if rows % WGMMA.rows:
        return f"{rows} rows are no multiple of 64"
    if columns % MMA.column_step or depth % step:
        return f"{columns} columns and depth {depth} are no multiples of 8 and {step}"
    groups = num_warps // WARP_GROUP
    _, across = _share_groups(num_warps, rows)
    if columns % (across * MMA.column_step):
        return f"{groups} warp groups do not share {rows}x{columns} evenly"
    return ""


def _share_groups(num_warps: int, rows: int) -> tuple[int, int]:
    """How many warp groups stand along the rows and along the columns.

    As many along the rows as share them evenly: one that finds no rows of its own would
    compute those of another, and the rows that it was counted for would be nobody's.
    """
    groups = num_warps // WARP_GROUP
    down = math.gcd(groups, rows // WGMMA.rows)
    return down, groups // down


def _wgmma(num_warps: int, rows: int, columns: int, step: int) -> ProductPlan:
    down, across = _share_groups(num_warps, rows)
    width = columns // across
    limit = min(width, WGMMA.max_columns)
    # Groups side by side take turns along N, which only powers of two can.
    widest = next(
        n
        for n in range(limit, 0, -MMA.column_step)
        if width % n == 0 and (across == 1 or n & (n - 1) == 0)
    )
    return ProductPlan("wgmma", (WARP_GROUP * down, across), widest, step)


def _mma(num_warps: int, rows: int, step: int, reason: str) -> ProductPlan:
    down = math.gcd(num_warps, rows // MMA.rows)
    # Warps beyond the columns hold copies.
    across = num_warps // down
    return ProductPlan("mma", (down, across), MMA.column_step, step, reason)


def _by_threads(num_warps: int, reason: str) -> ProductPlan:
    return ProductPlan("fma", (num_warps, 1), 1, 1, reason)
