"""Remarks on what is slow in a scheduled kernel and could be otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from xdsl.ir import Operation

from tilewright.ir.annotations import annotated
from tilewright.ir.locations import describe
from tilewright.ir.plans import AccessAttr
from tilewright.ir.regions import loops_around
from tilewright.ir.schedule_attributes import pipelining_of
from tilewright.layout.convert import SharedRoundTrip
from tilewright.ops.function import FuncOp
from tilewright.ops.staging import ConvertLayoutOp, LaidOutDotOp
from tilewright.schedule.conversions import conversion_of
from tilewright.support.rules import RuleTable


def schedule_remarks(kernel: FuncOp) -> tuple[str, ...]:
    """What is slow in a T2 kernel, each with its line, in the order of the text."""
    return tuple(dict.fromkeys(remark for op in kernel.walk() for remark in _remarks(op)))


REMARKS: RuleTable[Callable[[Operation], Iterator[str]]] = RuleTable("remarks")


def _remarks(op: Operation) -> Iterator[str]:
    rule = REMARKS.find(type(op))
    if rule is not None:
        yield from rule(op)
    elif (account := pipelining_of(op)).startswith("not "):
        yield f"{describe(op)}: the loop is {account}"
    elif (plan := annotated(op, AccessAttr)) is not None and plan.is_scattered:
        name = op.name.partition(".")[2]
        yield f"{describe(op)}: the addresses of the {name} are not known to be adjacent"


@REMARKS.register(LaidOutDotOp)
def _slow_product(op: LaidOutDotOp) -> Iterator[str]:
    plan = op.product.data
    if plan.reason:
        name = {"fma": "the FMA units", "mma": "mma.sync"}.get(plan.instruction, "wgmma")
        yield f"{describe(op)}: the product runs on {name}: {plan.reason}"


@REMARKS.register(ConvertLayoutOp)
def _dear_conversion(op: ConvertLayoutOp) -> Iterator[str]:
    if isinstance(conversion_of(op), SharedRoundTrip) and is_in_loop(op):
        yield f"{describe(op)}: a tile changes threads through shared memory in a loop"


def is_in_loop(op: Operation) -> bool:
    """Whether an op stands in a loop of the kernel."""
    return next(loops_around(op), None) is not None
