"""Which instruction computes each matrix product, and how warps share it."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute

from tilewright.ir import types as ir
from tilewright.ops.matmul import INPUT_PRECISIONS, DotOp
from tilewright.support.dataclass import dataclass

WARP_GROUP = 4
"""The warps that issue a wgmma together."""
_WGMMA_ROWS, _WGMMA_MAX_COLUMNS = 64, 256
_MMA_ROWS, _MMA_COLUMNS = 16, 8
_FLOAT8 = (ir.f8e4m3fn, ir.f8e5m2)


@dataclass(frozen=True)
class MatrixMachine:
    """What the planner must know of a machine: its warps and its matrix instructions."""

    num_warps: int
    has_wgmma: bool = True
    has_mma: bool = True
    num_lanes: int = 32


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


def plan_product(op: DotOp, machine: MatrixMachine) -> ProductPlan:
    """The instruction for a product: the fastest whose shapes and dtypes fit."""
    *batch, rows, depth = ir.shape_of(op.a.type)
    columns = ir.shape_of(op.b.type)[-1]
    step = _instruction_depth(op)
    if batch:
        return _by_threads(machine, "batched products run on the FMA units")
    if step is None:
        return _by_threads(machine, f"no matrix instruction takes {_dtypes(op)}")
    reason = _no_wgmma(machine, rows, columns, depth, step)
    if not reason:
        return _wgmma(machine, rows, columns, step)
    if rows % _MMA_ROWS or columns % _MMA_COLUMNS or depth % step or not machine.has_mma:
        return _by_threads(machine, f"{rows}x{columns}x{depth} is no multiple of 16x8x{step}")
    return _mma(machine, rows, step, reason)


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


def _no_wgmma(machine: MatrixMachine, rows: int, columns: int, depth: int, step: int) -> str:
    if not machine.has_wgmma:
        return "the machine has no wgmma"
    if machine.num_warps % WARP_GROUP:
        return f"{machine.num_warps} warps are no whole warp groups"
    if rows % _WGMMA_ROWS:
        return f"{rows} rows are no multiple of 64"
    if columns % _MMA_COLUMNS or depth % step:
        return f"{columns} columns and depth {depth} are no multiples of 8 and {step}"
    groups = machine.num_warps // WARP_GROUP
    _, across = _share_groups(machine, rows)
    if columns % (across * _MMA_COLUMNS):
        return f"{groups} warp groups do not share {rows}x{columns} evenly"
    return ""


def _share_groups(machine: MatrixMachine, rows: int) -> tuple[int, int]:
    """How many warp groups stand along the rows and along the columns.

    As many along the rows as share them evenly: one that finds no rows of its own would
    compute those of another, and the rows that it was counted for would be nobody's.
    """
    groups = machine.num_warps // WARP_GROUP
    down = math.gcd(groups, rows // _WGMMA_ROWS)
    return down, groups // down


def _wgmma(machine: MatrixMachine, rows: int, columns: int, step: int) -> ProductPlan:
    down, across = _share_groups(machine, rows)
    width = columns // across
    limit = min(width, _WGMMA_MAX_COLUMNS)
    # Groups side by side take turns along N, which only powers of two can.
    widest = next(
        n
        for n in range(limit, 0, -_MMA_COLUMNS)
        if width % n == 0 and (across == 1 or n & (n - 1) == 0)
    )
    return ProductPlan("wgmma", (WARP_GROUP * down, across), widest, step)


def _mma(machine: MatrixMachine, rows: int, step: int, reason: str) -> ProductPlan:
    down = math.gcd(machine.num_warps, rows // _MMA_ROWS)
    # Warps beyond the columns hold copies.
    across = machine.num_warps // down
    return ProductPlan("mma", (down, across), _MMA_COLUMNS, step, reason)


def _by_threads(machine: MatrixMachine, reason: str) -> ProductPlan:
    return ProductPlan("fma", (machine.num_warps, 1), 1, 1, reason)
