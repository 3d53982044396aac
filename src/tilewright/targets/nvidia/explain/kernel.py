"""The account of one kernel: accesses, conversions, products, shared memory, barriers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from xdsl.ir import Operation

from tilewright.ir.effects import Effect, Order, Resource, Wait, own_effects
from tilewright.ir.encoding import SharedType
from tilewright.ir.locations import describe
from tilewright.ir.plans import SHARED
from tilewright.ir.types import element_of, shape_of
from tilewright.ops.debug.ir import BarrierOp
from tilewright.ops.function import FuncOp
from tilewright.ops.staging import LaidOutDotOp, LocalBarrierOp
from tilewright.schedule.placed_accesses import PlacedAccess
from tilewright.schedule.shared_barriers import BarrierReason, OrderingReport
from tilewright.schedule.shared_memory import SharedPlan
from tilewright.support.dataclass import dataclass
from tilewright.support.options import INPUT_PRECISIONS
from tilewright.support.rules import RuleTable
from tilewright.targets.nvidia.explain.accesses import AccessSummary, explain_accesses
from tilewright.targets.nvidia.explain.conversions import (
    ConversionSummary,
    StagingSummary,
    explain_conversions,
    explain_staging,
)


@dataclass(frozen=True)
class ProductSummary:
    """One matrix product: its instruction, how warps share it, where operands are, and why.

    `shape` is M, N, K of the product; `reason` says why it is not a faster instruction.
    """

    line: str
    instruction: str
    shape: tuple[int, ...]
    warps: tuple[int, ...]
    operands: str
    reason: str = ""


@dataclass(frozen=True)
class BarrierSummary:
    """One barrier between warps, and the two accesses that it orders."""

    line: str
    why: str


@dataclass(frozen=True)
class SharedSummary:
    """One piece of shared memory: what it holds, where, and while which ops run."""

    line: str
    what: str
    size_bytes: int
    offset_bytes: int
    live: tuple[int, int]


@dataclass(frozen=True)
class KernelSummary:
    """What was decided for a kernel, in the kernel's own lines."""

    accesses: tuple[AccessSummary, ...]
    conversions: tuple[ConversionSummary, ...]
    staging: tuple[StagingSummary, ...]
    products: tuple[ProductSummary, ...]
    shared: tuple[SharedSummary, ...]
    barriers: tuple[BarrierSummary, ...]
    num_fences: int


def explain_kernel(kernel: FuncOp, shared: SharedPlan, ordering: OrderingReport) -> KernelSummary:
    """The account of a T2 kernel and of the decisions that led to it."""
    return KernelSummary(
        explain_accesses(kernel),
        explain_conversions(kernel),
        explain_staging(kernel),
        tuple(_product(op) for op in kernel.walk() if isinstance(op, LaidOutDotOp)),
        tuple(
            SharedSummary(
                describe(b.op), b.what, b.size_bytes, b.offset_bytes, (b.live.start, b.live.end)
            )
            for b in shared.buffers
        ),
        tuple(_barriers(kernel, ordering)),
        sum(map(_is_fence, kernel.walk())),
    )


# --- products ---


def _product(op: LaidOutDotOp) -> ProductSummary:
    *batch, rows, columns = shape_of(op.c.type)
    depth = (op.a.type.extents() if isinstance(op.a.type, SharedType) else shape_of(op.a.type))[-1]
    plan = op.product.data
    a, b = ("shared memory" if place == SHARED else place for place in (plan.a, plan.b))
    places = f"both in {a}" if a == b else f"A in {a}, B in {b}"
    shape = (*batch, rows, columns, depth)
    return ProductSummary(describe(op), _instruction(op), shape, plan.warps, places, plan.reason)


def _instruction(op: LaidOutDotOp) -> str:
    plan = op.product.data
    element = op.a.type.element if isinstance(op.a.type, SharedType) else element_of(op.a.type)
    if plan.instruction == "fma":
        return f"fused multiply-adds of {element}"
    m, n, k = plan.shape
    kind = str(element)
    if kind == "f32" and op.input_precision is not None:
        kind = INPUT_PRECISIONS[op.input_precision.value.data]
    return f"{plan.instruction} m{m}n{n}k{k} {kind}"


# --- barriers ---


Reasons = dict[Operation, BarrierReason]
_WHY: RuleTable[Callable[[Operation, Reasons], str]] = RuleTable("reasons of barriers")


def _barriers(kernel: FuncOp, ordering: OrderingReport) -> Iterator[BarrierSummary]:
    """Every barrier op of the kernel with its reason, in order."""
    reasons: Reasons = {}
    for reason in ordering.barriers:
        reasons.setdefault(reason.op, reason)
    for op in kernel.walk():
        rule = _WHY.find(type(op))
        if rule is not None:
            yield BarrierSummary(describe(op), rule(op, reasons))


@_WHY.register(BarrierOp)
def _asked_for(op: BarrierOp, reasons: Reasons) -> str:
    return "the author's barrier"


@_WHY.register(LocalBarrierOp)
def _needed(op: LocalBarrierOp, reasons: Reasons) -> str:
    known = reasons.get(op.next_op) if op.next_op is not None else None
    if known is not None:
        return _why(known)
    before = op.prev_op
    if before is not None and any(map(_ends_stores, own_effects(before))):
        return "the end of earlier stores by the copy engine, then writes over what they read"
    if before is not None and _is_fence(before):
        return "writes of a tile, then its store by the copy engine"
    return "accesses to global memory by other threads"


def _is_fence(op: Operation) -> bool:
    """Whether asynchronous units see behind an op what was written to shared memory before."""
    return Order.FENCE in own_effects(op)


def _ends_stores(effect: Effect) -> bool:
    """Whether asynchronous accesses to global memory are waited for."""
    return isinstance(effect, Wait) and effect.resource is Resource.GLOBAL


def _why(reason: BarrierReason) -> str:
    return f"{_access(reason.earlier)}, then {_access(reason.later)}"


def _access(placed: PlacedAccess) -> str:
    access = placed.access
    unit = "asynchronous " if access.is_async else ""
    verb = "write" if access.is_write else "read"
    name = access.op.name.partition(".")[2]
    return f"{unit}{verb} of {name} at {describe(access.op).rpartition('/')[2]}"
