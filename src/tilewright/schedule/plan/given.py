"""Annotates a kernel with the decisions that its author gives as text, on T0, before all others.

    matmul[grid](…, plan='''
        dot#0 product wgmma 64x128x16, warps 4x1, a shared, b shared
        load#1 copy registers
        op:total exchange axis order
    ''')

A line names an op as schedules do, then the decision, then its text as the attribute has it. The
passes that decide leave alone what is annotated, or refuse it with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilewright.ir.annotations import annotate, no_plan
from tilewright.ir.locations import span_of
from tilewright.ir.passes import Pass
from tilewright.ir.plans import AccessAttr, CopyAttr, ExchangeAttr, ProductAttr
from tilewright.ir.schedule_attributes import annotate_schedule
from tilewright.ir.schedule_text import parse_schedule
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.schedule.exchanges import may_exchange
from tilewright.schedule.layout.annotations import LayoutPlanAttr
from tilewright.schedule.plan.accesses import is_planned
from tilewright.schedule.plan.anchors import anchors_of, kind_of
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import PlanRefused

_Attribute = (
    type[ProductAttr]
    | type[AccessAttr]
    | type[CopyAttr]
    | type[ExchangeAttr]
    | type[LayoutPlanAttr]
)
_SCHEDULE = ["kernel", "schedule"]
_EXAMPLE = "dot#0 product wgmma 64x128x16, warps 4x1, a shared, b shared"


@dataclass(frozen=True)
class AnnotatePlan(Pass):
    """The pass; see the module.

    *Raises*: PlanRefused for a line that cannot be read or names what is not there,
    MalformedSchedule for a schedule that cannot be read.
    """

    text: str = ""
    name = "annotate-plan"

    def apply(self, module: ModuleOp) -> None:
        """Annotate the kernel."""
        kernel = find_kernel(module)
        named = {str(anchor): op for anchor, op in anchors_of(kernel).items()}
        for line in filter(None, map(str.strip, self.text.splitlines())):
            words = line.split(None, 2)
            if len(words) < 3:
                raise _refused(kernel, f"`{line}` is no line of a plan", f"such as `{_EXAMPLE}`")
            if words[:2] == _SCHEDULE:
                annotate_schedule(kernel, parse_schedule(words[2]))
            else:
                _annotate(kernel, named, *words)


def _annotate(
    kernel: FuncOp, named: Mapping[str, Operation], anchor: str, decision: str, text: str
) -> None:
    """Write one line on the op that it names."""
    op = named.get(anchor)
    if op is None:
        raise _refused(
            kernel,
            f"the plan names `{anchor}`, which `{kernel.sym_name.data}` does not have",
            f"there are {', '.join(_alike(anchor, named))}",
        )
    attribute = _DECISIONS.get(decision)
    if attribute is None or not _TAKES[attribute](op):
        fitting = [name for name, other in _DECISIONS.items() if _TAKES[other](op)]
        hint = f"its decisions are {', '.join(fitting)}" if fitting else "nothing is decided of it"
        raise _refused(op, f"the plan has a `{decision}` of `{anchor}`, which takes none", hint)
    plan = attribute.plan.read(text)
    if plan is None:
        raise _refused(op, no_plan(attribute.plan, text), "write it as the attribute has it")
    annotate(op, attribute(plan))  # type: ignore[arg-type]  # the plan of this attribute


def _alike(anchor: str, named: Mapping[str, Operation]) -> list[str]:
    """The names of ops of the same kind, or all numbered ones where there are none."""
    kind = anchor.partition("#")[0].partition(":")[0]
    numbered = [name for name in named if "#" in name]
    return [name for name in named if name.startswith((f"{kind}#", f"{kind}:"))] or numbered


_DECISIONS: Mapping[str, _Attribute] = MappingProxyType(
    {
        "product": ProductAttr,
        "access": AccessAttr,
        "copy": CopyAttr,
        "exchange": ExchangeAttr,
        "layout": LayoutPlanAttr,
    }
)
_TAKES: Mapping[_Attribute, Callable[[Operation], bool]] = MappingProxyType(
    {
        ProductAttr: lambda op: kind_of(op) == "dot",
        AccessAttr: is_planned,
        CopyAttr: lambda op: kind_of(op) == "load" and is_planned(op),
        ExchangeAttr: may_exchange,
        LayoutPlanAttr: lambda op: kind_of(op) != "dot",
    }
)


def _refused(op: Operation, message: str, hint: str) -> PlanRefused:
    span, chain = span_of(op)
    return PlanRefused(message, argument="plan", hint=hint, span=span, chain=chain)
