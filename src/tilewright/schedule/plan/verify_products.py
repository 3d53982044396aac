"""Checks the plan of each matrix product, whoever annotated it, before anything is rewritten.

Written from what the instructions ask for and not from how a plan is made, so that it also
checks `plan/products.py`.

*Source*: PTX ISA 8.8, 9.7.14.5 "mma" and 9.7.15 "wgmma": shapes, types, where operands are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from types import MappingProxyType

from tilewright.ir import types as ir
from tilewright.ir.annotations import decided
from tilewright.ir.locations import span_of
from tilewright.ir.plans import REGISTERS, SHARED, ProductAttr, ProductPlan
from tilewright.machine.mma import MMA, WGMMA
from tilewright.machine.model import MachineModel
from tilewright.ops.function import FuncOp
from tilewright.ops.matmul.ir import ProductOp
from tilewright.schedule.plan.products import (
    are_whole_panels,
    dtypes_of,
    instruction_depth,
    panel_columns,
    plan_product,
)
from tilewright.support.errors import PlanRefused


def verify_products(kernel: FuncOp, machine: MachineModel, num_warps: int) -> None:
    """Check the plan of every product. *Raises*: PlanRefused, with the plan that would do."""
    for op in kernel.walk():
        if isinstance(op, ProductOp):
            plan = decided(op, ProductAttr)
            reason = refusal(op, plan, machine, num_warps)
            if reason:
                raise _refused(op, plan, reason, plan_product(op, machine, num_warps))


def refusal(op: ProductOp, plan: ProductPlan, machine: MachineModel, num_warps: int) -> str:
    """Why a plan cannot compute a product; '' where it can."""
    if plan.instruction not in _RULES:
        return f"there is no instruction `{plan.instruction}`, but {', '.join(_RULES)}"
    down, across = plan.warps
    if down * across != num_warps:
        return f"{down}x{across} warps are not the {num_warps} of the program"
    return _RULES[plan.instruction](op, plan, machine)


_Rule = Callable[[ProductOp, ProductPlan, MachineModel], str]


def _wgmma(op: ProductOp, plan: ProductPlan, machine: MachineModel) -> str:
    if not machine.has_wgmma:
        return f"{machine.arch} has no wgmma"
    if plan.b != SHARED:
        return "wgmma reads B from shared memory"
    down, across = plan.warps
    if down % WGMMA.warps:
        return f"{down} warps along the rows are no whole warp groups of {WGMMA.warps}"
    if plan.columns > WGMMA.max_columns:
        return f"wgmma has at most {WGMMA.max_columns} columns"
    if across > 1 and plan.columns & (plan.columns - 1):
        return f"warp groups side by side take powers of two of columns, not {plan.columns}"
    reason = _matrix(op, plan, (WGMMA.rows, WGMMA.column_step), WGMMA.rows * down // WGMMA.warps)
    panel = panel_columns(op)
    if not reason and not are_whole_panels(plan.columns, panel):
        return f"{plan.columns} columns end inside of a panel of {panel}"
    return reason


def _mma(op: ProductOp, plan: ProductPlan, machine: MachineModel) -> str:
    if not machine.has_mma:
        return f"{machine.arch} has no mma.sync"
    if (plan.a, plan.b) != (REGISTERS, REGISTERS):
        return "mma.sync reads both operands from registers"
    if plan.columns != MMA.max_columns:
        return f"mma.sync has {MMA.max_columns} columns, not {plan.columns}"
    # Warps that find no columns of their own hold copies.
    alone = ProductPlan(plan.instruction, plan.shape, (plan.warps[0], 1), plan.a, plan.b)
    return _matrix(op, alone, (MMA.rows, MMA.column_step), MMA.rows * plan.warps[0])


def _matrix(op: ProductOp, plan: ProductPlan, atom: tuple[int, int], rows_of_warps: int) -> str:
    """What every matrix instruction asks for; `rows_of_warps` are those of one step of all."""
    *batch, rows, depth = ir.shape_of(op.a.type)
    columns = ir.shape_of(op.b.type)[-1]
    if batch:
        return "no matrix instruction takes a batch"
    step = instruction_depth(op)
    if step is None:
        return f"no matrix instruction takes {dtypes_of(op)}"
    if plan.shape[0] != atom[0]:
        return f"{plan.instruction} has {atom[0]} rows, not {plan.shape[0]}"
    if plan.depth != step:
        return f"{plan.instruction} has depth {step} for {dtypes_of(op)}, not {plan.depth}"
    if plan.columns < 1 or plan.columns % atom[1]:
        return f"{plan.columns} columns are no multiple of {atom[1]}"
    columns_of_warps = plan.columns * plan.warps[1]
    extents = (("rows", rows, rows_of_warps), ("columns", columns, columns_of_warps))
    for name, extent, unit in (*extents, ("K", depth, step)):
        if extent % unit:
            return f"{extent} {name} of the product are no multiple of {unit}"
    return ""


def _fma(op: ProductOp, plan: ProductPlan, _: MachineModel) -> str:
    if (plan.a, plan.b) != (SHARED, SHARED):
        return "fma reads both operands from shared memory"
    if prod(plan.shape) != 1 or plan.warps[1] != 1:
        return "fma is 1x1x1, and all its warps stand along the rows"
    return ""


_RULES: Mapping[str, _Rule] = MappingProxyType({"wgmma": _wgmma, "mma": _mma, "fma": _fma})


def _refused(op: ProductOp, plan: ProductPlan, reason: str, other: ProductPlan) -> PlanRefused:
    span, chain = span_of(op)
    return PlanRefused(
        f"dot(): the plan `{plan}` is refused: {reason}",
        types={name: _tile_text(value.type) for name, value in (("a", op.a), ("b", op.b))},
        hint=f"take `{other}`, or no annotation",
        span=span,
        chain=chain,
    )


def _tile_text(type_: ir.Attribute) -> str:
    extents = "x".join(map(str, ir.shape_of(type_)))
    return f"tile<{extents}x{ir.element_of(type_)}>"
