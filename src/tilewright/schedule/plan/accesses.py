"""Decides how memory is accessed, on T0: along which dim, and how many elements at once.

    %v = tt.load %p
    ⇒ %v = tt.load %p {tw.access = #tw.access<"vector 8, order 1 0">}

What the axis facts prove, and what a thread has a share of, bounds a vector. An access that is
annotated already keeps its plan where the facts prove it. The facts also say which neighbours of
an integer tile are equal, such as the masks of one access: one of them is computed, which is
noted as `equal_runs`.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Operation

from tilewright.analysis.facts import MAX_ACCESS_BYTES, AxisFacts
from tilewright.analysis.trusted_runs import TrustedRuns
from tilewright.ir.annotations import annotate, annotated
from tilewright.ir.effects import global_access
from tilewright.ir.locations import span_of
from tilewright.ir.op import ElementwiseOp
from tilewright.ir.passes import Pass
from tilewright.ir.plans import AccessAttr, AccessPlan
from tilewright.ir.types import PointerType, element_of, is_integer, shape_of, storage_bytes
from tilewright.machine.gpus import SM_90A
from tilewright.machine.model import MachineModel
from tilewright.ops.function import find_kernel
from tilewright.schedule.annotations import set_equal_runs
from tilewright.schedule.partition.warps import warps_of_tiles
from tilewright.schedule.plan.anchors import kind_of
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import PlanRefused

# Source: PTX ISA 8.8, cp.async: the least that one instruction of a lane copies.
LEAST_COPY_BYTES = 4
_PROMISE = "say what is known, as in tl.multiple_of(stride, 8), or take shorter vectors"


@dataclass(frozen=True)
class DecideAccesses(Pass):
    """Annotate every access to global memory with its plan; see the module.

    *Raises*: PlanRefused for an annotation that the facts do not prove.
    """

    machine: MachineModel = SM_90A
    num_warps: int = 4
    name = "decide-accesses"
    requires = "T0r"
    produces = "T0r"

    def apply(self, module: ModuleOp) -> None:
        """Decide the accesses of the kernel."""
        kernel = find_kernel(module)
        facts, trusted = AxisFacts(kernel), TrustedRuns()
        num_threads = warps_of_tiles(kernel, self.num_warps) * self.machine.lanes
        for op in kernel.walk():
            if isinstance(op, ElementwiseOp):
                _note_runs(op, facts, trusted)
            elif is_planned(op):
                given = annotated(op, AccessAttr)
                if given is None:
                    annotate(op, AccessAttr(_plan(op, facts, num_threads)))
                else:
                    require_access(op, given, facts)


def _plan(op: Operation, facts: AxisFacts, num_threads: int) -> AccessPlan:
    pointers = op.operands[0]
    shape, order = shape_of(pointers.type), facts.coalesce_order(pointers)
    share = max(_least_share(op), prod(shape) // num_threads)
    limit = min(MAX_ACCESS_BYTES // element_bytes(op), shape[order[0]], share)
    limit = 1 << (max(1, limit).bit_length() - 1)
    width = facts.vector_width(op, limit, order[0])
    return AccessPlan(width, order, _is_scattered(op, facts))


def _least_share(op: Operation) -> int:
    """The elements that a thread takes although there are fewer for each.

    A row that a loop of products loads (scales, zeros) may come ahead as copies of 4 bytes a lane.
    """
    block, shape = op.parent, shape_of(op.operands[0].type)
    is_row = kind_of(op) == "load" and max(shape) == prod(shape)
    if not is_row or block is None or (loop := block.parent_op()) is None:
        return 1
    multiplies = kind_of(loop) == "for" and any(kind_of(other) == "dot" for other in block.ops)
    return max(1, LEAST_COPY_BYTES // element_bytes(op)) if multiplies else 1


def is_planned(op: Operation) -> bool:
    """Whether an op accesses global memory through a tile of pointers."""
    access = global_access(op)
    pointers = None if access is None else access.value
    return pointers is not None and isinstance(pointers.type, TensorType)


def element_bytes(op: Operation) -> int:
    """The bytes of an element of an access."""
    pointer = element_of(op.operands[0].type)
    assert isinstance(pointer, PointerType)
    return storage_bytes(pointer.pointee)


def require_access(op: Operation, plan: AccessPlan, facts: AxisFacts | None = None) -> None:
    """Check the plan of an access; with `facts` also that they prove it.

    *Raises*: PlanRefused.
    """
    reason, hint = _refusal(op, plan), ""
    if not reason and facts is not None:
        reason, hint = _unproven(op, plan, facts), _PROMISE
    if reason:
        span, chain = span_of(op)
        raise PlanRefused(
            f"{op.name.partition('.')[2]}: the plan `{plan}` is refused: {reason}",
            types={"pointers": _tile_text(op.operands[0].type)},
            hint=hint,
            span=span,
            chain=chain,
        )


def _refusal(op: Operation, plan: AccessPlan) -> str:
    """Why no access can have a plan; '' where one can."""
    rank, size = len(shape_of(op.operands[0].type)), element_bytes(op)
    if sorted(plan.order) != list(range(rank)):
        return f"the order does not name each of {rank} dims once"
    if plan.vector < 1 or plan.vector & (plan.vector - 1):
        return f"{plan.vector} elements are no power of two"
    if plan.vector * size > MAX_ACCESS_BYTES:
        return f"{plan.vector * size} bytes are more than {MAX_ACCESS_BYTES} at once"
    return ""


def _unproven(op: Operation, plan: AccessPlan, facts: AxisFacts) -> str:
    dim = plan.order[0]
    known = facts.vector_width(op, shape_of(op.operands[0].type)[dim], dim)
    if known >= plan.vector:
        return ""
    return (
        f"along dim {dim}, {known} element(s) are known to be adjacent, aligned and under one "
        "value of the mask"
    )


def _is_scattered(op: Operation, facts: AxisFacts) -> bool:
    """Whether no two addresses of an access are known to be adjacent or equal."""
    known = facts.of(op.operands[0])
    return prod(known.kind.shape) > 1 and max(*known.contiguity, *known.constancy) == 1


def _note_runs(op: ElementwiseOp, facts: AxisFacts, trusted: TrustedRuns) -> None:
    """Note how many neighbours of an integer tile are equal, where any are for certain."""
    if not op.results or not isinstance(op.results[0].type, TensorType):
        return
    runs = facts.of(op.results[0]).constancy
    is_found = is_integer(op.results[0].type) and max(runs) > 1
    if is_found and all(trusted.of_number(op.results[0], dim) for dim in range(len(runs))):
        set_equal_runs(op, runs)


def _tile_text(type_: Attribute) -> str:
    extents = "x".join(map(str, shape_of(type_)))
    pointer = element_of(type_)
    assert isinstance(pointer, PointerType)
    return f"tile<{extents}x*{pointer.pointee}>"
