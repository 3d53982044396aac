"""Decides how elements change threads, on T1: by registers, shuffles or shared memory (T1 to T1).

    %y = ttg.convert_layout %x
    ⇒ %y = ttg.convert_layout %x {tw.exchange = #tw.exchange<"memory, bytes 4096">}

Each family of ops registers what it can do, the best first, and what its ops ask of a plan. An
op that is annotated already keeps its plan, completed, where that is one of those. Barriers,
shared memory, emission, both interpreters and `explain` read the annotation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TypeVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilewright.ir.annotations import annotate, annotated, decided
from tilewright.ir.locations import span_of
from tilewright.ir.passes import Pass
from tilewright.ir.plans import ExchangeAttr, ExchangePlan
from tilewright.ops.function import find_kernel
from tilewright.support.dataclass import dataclass, replace
from tilewright.support.errors import PlanRefused
from tilewright.support.rules import RuleTable

ChoiceRule = Callable[[Operation], Iterator[ExchangePlan]]
CHOICES: RuleTable[ChoiceRule] = RuleTable("exchanges")
"""What each family can do, the best first; made one by one, as the first is mostly taken."""

CheckRule = Callable[[Operation, ExchangePlan], str]
CHECKS: RuleTable[CheckRule] = RuleTable("checks of exchanges")
"""Why an op cannot take a plan, '' where it can; says what is asked for, not how plans are made."""

SizeRule = TypeVar("SizeRule", bound=Callable[..., int])
# Chosen, not measured: so many lines of a message are read; it changes no code.
_NAMED_CHOICES = 4


def register_scratch(*classes: type) -> Callable[[SizeRule], SizeRule]:
    """Register ops with one way to go, which takes the bytes of shared memory that a rule says."""

    def register(rule: SizeRule) -> SizeRule:
        @CHOICES.register(*classes)
        def _only(op: Operation) -> Iterator[ExchangePlan]:
            size = rule(op)
            yield ExchangePlan("memory", size) if size else ExchangePlan("registers")

        @CHECKS.register(*classes)
        def _enough(op: Operation, plan: ExchangePlan) -> str:
            size = rule(op)
            if plan.method != ("memory" if size else "registers"):
                return f"it goes through {'memory' if size else 'registers'} alone"
            return too_few_bytes(plan, size)

        return rule

    return register


def may_exchange(op: Operation) -> bool:
    """Whether an op is one of those that have such a plan."""
    return CHOICES.find(type(op)) is not None


def too_few_bytes(plan: ExchangePlan, needed: int) -> str:
    """What to say of a plan with fewer bytes than are needed; '' where there are enough."""
    found = plan.num_passes * plan.scratch_bytes
    return f"{found} bytes do not hold the {needed} that go through them" * (found < needed)


@dataclass(frozen=True)
class DecideExchanges(Pass):
    """Annotate every op that moves elements between threads with its plan; see the module.

    *Raises*: PlanRefused for one that was annotated and cannot be.
    """

    name = "decide-exchanges"
    requires = "T1"
    produces = "T1"
    after = ("assign-layouts", "stage-tensor-maps", "copy-async")

    def apply(self, module: ModuleOp) -> None:
        """Decide the ops of the kernel."""
        for op in find_kernel(module).walk():
            choices = CHOICES.find(type(op))
            if choices is not None:
                given = annotated(op, ExchangeAttr)
                plan = next(choices(op)) if given is None else _obeyed(op, given, choices(op))
                annotate(op, ExchangeAttr(plan))


def _obeyed(op: Operation, given: ExchangePlan, choices: Iterator[ExchangePlan]) -> ExchangePlan:
    """The choice that an annotation means."""
    seen: list[ExchangePlan] = []
    for choice in choices:
        if _fits(given, choice):
            return replace(choice, reason=given.reason)
        seen.append(choice)
    reason = _reason(op, replace(given, scratch_bytes=given.scratch_bytes or 1 << 30))
    raise _refused(op, given, reason or "its numbers are not those of a plan", seen)


def _fits(given: ExchangePlan, choice: ExchangePlan) -> bool:
    """Whether a choice is what is given, where something is."""
    return (
        given.method == choice.method
        and given.num_passes in (1, choice.num_passes)
        and given.scratch_bytes in (0, choice.scratch_bytes)
        and given.position_bits in (0, choice.position_bits)
    )


@dataclass(frozen=True)
class VerifyExchanges(Pass):
    """Check how elements change threads, whoever decided it; the module stays as it is.

    *Raises*: PlanRefused, with the line, the reason and what would do instead.
    """

    name = "verify-exchanges"
    requires = "T1"
    produces = "T1"
    after = ("decide-exchanges",)

    def apply(self, module: ModuleOp) -> None:
        """Check the kernel."""
        for op in find_kernel(module).walk():
            choices = CHOICES.find(type(op))
            if choices is not None:
                plan = decided(op, ExchangeAttr)
                reason = _reason(op, plan)
                if reason:
                    raise _refused(op, plan, reason, list(islice(choices(op), 2 * _NAMED_CHOICES)))


def _reason(op: Operation, plan: ExchangePlan) -> str:
    check = CHECKS.find(type(op))
    assert check is not None, f"{op.name} has choices and no check"
    return check(op, plan)


def _refused(
    op: Operation, plan: ExchangePlan, reason: str, others: list[ExchangePlan]
) -> PlanRefused:
    span, chain = span_of(op)
    distinct = list(dict.fromkeys(map(str, others)))[:_NAMED_CHOICES]
    named = " or ".join(f"`{other}`" for other in distinct)
    return PlanRefused(
        f"{op.name.partition('.')[2]}: the plan `{plan}` is refused: {reason}",
        hint=f"take {named}, or no annotation",
        span=span,
        chain=chain,
    )
