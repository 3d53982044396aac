"""What `explain` says of a product."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import Block

from tilewright.ir.types import shape_of
from tilewright.ops.matmul.ir import DotOp
from tilewright.support.dataclass import replace
from tilewright.targets.cpu.dot.spec import DotSpec
from tilewright.targets.cpu.dot.units import choose_unit
from tilewright.targets.cpu.estimate import product_time
from tilewright.targets.cpu.report import ProductSummary, line_of
from tilewright.targets.cpu.schedule.lowering import Lowering
from tilewright.targets.cpu.schedule.materialization import is_direct


def summary_of(lowering: Lowering, op: DotOp, spec: DotSpec) -> ProductSummary:
    """The summary of a product that is about to be emitted."""
    bufferization = lowering.bufferization
    packed = [
        form.role.upper()
        for form in bufferization.operands[op]
        if not (bufferization.is_in_place(form) or is_direct(form, spec, bufferization))
    ]
    in_place = [
        form.role.upper() for form in bufferization.operands[op] if bufferization.is_in_place(form)
    ]
    # What the choice was made from: a spec that is no unit's yet.
    choice = choose_unit(replace(spec, is_amx=False, is_2x2=False))
    beside = _packed_beside(lowering, op, packed)
    count = prod(shape_of(op.results[0].type)[:-2])
    return ProductSummary(
        line_of(op.location),
        (spec.m, spec.n, spec.k),
        (spec.a_dtype, spec.b_dtype),
        choice.name,
        " and ".join(packed),
        " and ".join(in_place),
        (spec.b_layout.num_panels(spec.n), spec.b_layout.columns),
        op in lowering.direct,
        "" if spec.unit.is_arm else choice.why_not_amx,
        lowering.report.loop_of(op),
        product_time(choice.spec, beside, tuple(in_place), count),
        count,
        not lowering.kept.isdisjoint(bufferization.operands[op]),
    )


def _packed_beside(lowering: Lowering, op: DotOp, packed: Sequence[str]) -> tuple[str, ...]:
    """The packed operands that are packed in the product's loop, not before it."""
    loop_of, beside = lowering.report.loop_of, []
    for form in lowering.bufferization.operands[op]:
        made = form.value.owner
        is_beside = isinstance(made, Block) or loop_of(made) == loop_of(op)
        if form.role.upper() in packed and is_beside:
            beside.append(form.role.upper())
    return tuple(beside)
