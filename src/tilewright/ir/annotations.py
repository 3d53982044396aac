"""Decisions of the schedule as attributes of the op that they are about: how one is written.

Each is decided once, by a pass that leaves alone what is annotated already, then verified, then
only read. `ir/plans.py` has the plans themselves; `docs/internals/gpu.md` lists them with who
decides and who reads.

    tw.product = #tw.product<"wgmma 64x128x16, warps 4x1, a shared, b shared">

A plan is a line of text in quotes; behind a comma a second one says why it is no better one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

from xdsl.ir import Data, Operation

from tilewright.ir.locations import span_of
from tilewright.support.errors import PlanMissing

if TYPE_CHECKING:  # a compile neither parses nor prints
    from typing import Self

    from xdsl.parser import AttrParser
    from xdsl.printer import Printer


class Plan(Protocol):
    """A decision, which its text says in full but for the reason.

    `WHAT` it decides, an `EXAMPLE` of its text, and the pass that it is `DECIDED_BY`.
    """

    WHAT: ClassVar[str]
    EXAMPLE: ClassVar[str]
    DECIDED_BY: ClassVar[str]

    @property
    def reason(self) -> str:
        """Why it is no better one; '' where nothing is to be said."""
        ...

    @classmethod
    def read(cls, text: str, reason: str = "") -> Self | None:
        """The plan that a text says; None where it says none."""
        ...


PlanT = TypeVar("PlanT", bound=Plan)


class PlanAttr(Data[PlanT]):
    """A plan as an attribute; `plan` is its class, and an op has it under the attribute's name."""

    plan: ClassVar[type[Plan]]

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> PlanT:
        """Read what stands behind the name."""
        with parser.in_angle_brackets():
            text = parser.parse_str_literal()
            has_reason = parser.parse_optional_punctuation(",") is not None
            reason = parser.parse_str_literal() if has_reason else ""
        plan = cls.plan.read(text, reason)
        if plan is None:
            parser.raise_error(no_plan(cls.plan, text))
        return plan  # type: ignore[return-value]  # the class that `plan` names

    def print_parameter(self, printer: Printer) -> None:
        """Write what stands behind the name."""
        with printer.in_angle_brackets():
            printer.print_string_literal(str(self.data))
            if self.data.reason:
                printer.print_string(", ")
                printer.print_string_literal(self.data.reason)


def no_plan(plan: type[Plan], text: str) -> str:
    """What to say of a text that is no plan of its kind."""
    return f"`{text}` is no plan of {plan.WHAT}, such as `{plan.EXAMPLE}`"


def annotated(op: Operation, attribute: type[PlanAttr[PlanT]]) -> PlanT | None:
    """The plan that is annotated on an op; None before it is decided, or where there is none."""
    found = op.attributes.get(attribute.name)
    return found.data if isinstance(found, attribute) else None


def decided(op: Operation, attribute: type[PlanAttr[PlanT]]) -> PlanT:
    """The plan of an op. *Raises*: PlanMissing before it is decided."""
    plan = annotated(op, attribute)
    if plan is None:
        hint = f"run `{attribute.plan.DECIDED_BY}` first, or annotate it"
        raise missing(op, f"it has no `{attribute.name}`", hint)
    return plan


def missing(op: Operation, what: str, hint: str) -> PlanMissing:
    """The error about an op that a pass reads before another pass has decided `what`."""
    span, chain = span_of(op)
    summary = f"{op.name} is rewritten before it is planned: {what}"
    return PlanMissing(summary, hint=hint, span=span, chain=chain)


def annotate(op: Operation, attribute: PlanAttr[PlanT]) -> None:
    """Write a plan on the op that it is about."""
    op.attributes[attribute.name] = attribute
