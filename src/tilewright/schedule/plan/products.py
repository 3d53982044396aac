"""Decides how each matrix product is computed, on T0: instruction, warps, where operands are.

    %d = tt.dot %a, %b, %c
    ⇒ %d = tt.dot %a, %b, %c {tw.product = #tw.product<"wgmma 64x128x16, warps 4x1, a shared, …">}

A product that is annotated already keeps its plan; `verify-plan` refuses one that cannot be.
Everything after reads the annotation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerType, ModuleOp, TensorType
from xdsl.ir import Attribute, OpResult, SSAValue

from tilewright.ir import types as ir
from tilewright.ir.annotations import annotate, annotated
from tilewright.ir.op import AccumulatingOp
from tilewright.ir.passes import Pass
from tilewright.ir.plans import REGISTERS, SHARED, ProductAttr, ProductPlan
from tilewright.ir.regions import sources_of
from tilewright.machine.gpus import SM_90A
from tilewright.machine.mma import MMA, WGMMA
from tilewright.machine.model import MachineModel
from tilewright.ops.function import find_kernel
from tilewright.ops.matmul.ir import ProductOp
from tilewright.ops.roles import role_around
from tilewright.schedule.partition.warps import warps_of_tiles
from tilewright.support.dataclass import dataclass, replace
from tilewright.support.options import INPUT_PRECISIONS
from tilewright.support.powers_of_two import is_power_of_two, power_of_two_part

WARP_GROUP = WGMMA.warps
"""The warps that issue a wgmma together."""
# Registers of a thread beside the sums of a wgmma. Source: ptxas 13.0, 154 for 64x256 of f32.
_BESIDE_SUMS = 26
# Of a row of a panel of an operand; of the elements that wgmma reads along either dim. Source: PTX
# ISA 8.8, 9.7.15.5.1, "Swizzling Modes" and "Matrix-descriptor format".
_PANEL_BYTES, _TRANSPOSED_BYTES = 128, 2
_FLOAT8 = (ir.f8e4m3fn, ir.f8e5m2)


@dataclass(frozen=True)
class DecideProducts(Pass):
    """Annotate every product that is not annotated yet with its plan; see the module."""

    machine: MachineModel = SM_90A
    num_warps: int = 4
    name = "decide-products"
    requires = "T0r"
    produces = "T0r"

    def apply(self, module: ModuleOp) -> None:
        """Decide the products of the kernel."""
        kernel = find_kernel(module)
        num_warps = warps_of_tiles(kernel, self.num_warps)
        for op in kernel.walk():
            if isinstance(op, ProductOp) and annotated(op, ProductAttr) is None:
                plan = plan_product(op, self.machine, num_warps, _is_computed(op.a))
                annotate(op, ProductAttr(plan))


def _is_computed(value: SSAValue) -> bool:
    """Whether a value comes from a matrix product, whatever hands it on."""
    pending, seen = [value], {value}
    for current in pending:
        if isinstance(current, OpResult) and isinstance(current.op, AccumulatingOp):
            return True
        new = [source for source in _sources(current) if source not in seen]
        seen.update(new)
        pending += new
    return False


def _sources(value: SSAValue) -> Sequence[SSAValue]:
    handed_on = sources_of(value)
    if handed_on is not None:
        return handed_on if isinstance(value.type, TensorType) else ()
    return value.op.operands if isinstance(value, OpResult) else ()


def input_precision(op: ProductOp) -> str:
    """The precision in which float32 operands enter a product."""
    return "ieee" if op.input_precision is None else INPUT_PRECISIONS[op.input_precision.value.data]


def plan_product(
    op: ProductOp, machine: MachineModel, num_warps: int, is_computed: bool = False
) -> ProductPlan:
    """The plan of a product: the fastest instruction whose shapes and dtypes fit.

    `is_computed` says that A was computed from another product.
    """
    *batch, rows, depth = ir.shape_of(op.a.type)
    columns = ir.shape_of(op.b.type)[-1]
    step = instruction_depth(op)
    if batch:
        return _by_threads(num_warps, "batched products run on the FMA units")
    if step is None:
        return _by_threads(num_warps, f"no matrix instruction takes {dtypes_of(op)}")
    reason = _no_wgmma(machine, num_warps, (rows, columns, depth), step)
    if not reason:
        most, panel = most_columns(op, machine), panel_columns(op)
        plan = _wgmma(num_warps, (rows, columns), step, most, panel)
        return replace(plan, a=REGISTERS) if is_computed and _stays(op, plan) else plan
    if rows % MMA.rows or columns % MMA.column_step or depth % step or not machine.has_mma:
        return _by_threads(num_warps, f"{rows}x{columns}x{depth} is no multiple of 16x8x{step}")
    return _mma(num_warps, rows, step, reason)


def _stays(op: ProductOp, plan: ProductPlan) -> bool:
    """Whether elements of A sit in an accumulator where a wgmma takes them from registers.

    Those of 16 bits do, unless warp groups side by side share the columns: each would need those
    of the others. What does not is faster through shared memory.
    """
    return ir.width_bits(op.a.type) == 16 and plan.warps[1] == 1


def dtypes_of(op: ProductOp) -> str:
    """The dtypes and the precision of a product, for messages."""
    return f"{ir.element_of(op.a.type)} x {ir.element_of(op.b.type)} ({input_precision(op)})"


def instruction_depth(op: ProductOp) -> int | None:
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


def is_matrix_of_words(value: SSAValue) -> bool:
    """Whether `mma` finds a tile in shared memory in whatever order it lies there.

    Matrix loads take 16-bit elements along either dim; those of 32 bits are a load each.
    """
    return len(ir.shape_of(value.type)) == 2 and ir.storage_bytes(value.type) in (2, 4)


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


def most_columns(op: ProductOp, machine: MachineModel) -> int:
    """The columns of a wgmma whose sums a thread holds as the program starts.

    Roles begin with equal shares of the registers, whatever they get later; ptxas refuses an
    instruction that does not fit its share.
    """
    around = role_around(op)
    if around is None:
        return WGMMA.max_columns
    warps = sum(role.warps * role.replicas for role in around[0].described())
    share = machine.registers_per_sm // (machine.lanes * warps)
    sums = (share - _BESIDE_SUMS) * WARP_GROUP * machine.lanes
    return min(WGMMA.max_columns, sums // WGMMA.rows // MMA.column_step * MMA.column_step)


def panel_columns(op: ProductOp) -> int:
    """The columns of a panel of B in shared memory; 1 where its rows lie along the summed dim."""
    size = ir.storage_bytes(op.b.type)
    if size != _TRANSPOSED_BYTES:
        return 1
    return min(_PANEL_BYTES // size, power_of_two_part(ir.shape_of(op.b.type)[-1]))


def are_whole_panels(columns: int, panel: int) -> bool:
    """Whether instructions of so many columns start and end where panels do, or inside of one."""
    return columns % panel == 0 or panel % columns == 0


def _wgmma(
    num_warps: int, extents: tuple[int, int], step: int, most: int, panel: int
) -> ProductPlan:
    rows, columns = extents
    down, across = _share_groups(num_warps, rows)
    width = columns // across
    limit = min(width, most)
    # Groups side by side take turns along N, which only powers of two can.
    widest = next(
        n
        for n in range(limit, 0, -MMA.column_step)
        if width % n == 0 and (across == 1 or is_power_of_two(n)) and are_whole_panels(n, panel)
    )
    shape = (WGMMA.rows, widest, step)
    return ProductPlan("wgmma", shape, (WARP_GROUP * down, across), SHARED, SHARED)


def _mma(num_warps: int, rows: int, step: int, reason: str) -> ProductPlan:
    down = math.gcd(num_warps, rows // MMA.rows)
    # Warps beyond the columns hold copies.
    across = num_warps // down
    shape = (MMA.rows, MMA.column_step, step)
    return ProductPlan("mma", shape, (down, across), REGISTERS, REGISTERS, reason)


def _by_threads(num_warps: int, reason: str) -> ProductPlan:
    return ProductPlan("fma", (1, 1, 1), (num_warps, 1), SHARED, SHARED, reason)
