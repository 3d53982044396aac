"""What a target does with an op: it runs it, it refuses it in a sentence, or it has no rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from xdsl.ir import Operation

from tilewright.ops.debug.ir import BreakpointOp
from tilewright.ops.function import CallOp
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import DuplicateRegistration, InvalidOption
from tilewright.support.source import calling_span


@dataclass(frozen=True)
class Gap:
    """What an op lacks on a target: the part in words, and the code that would register it.

    `remedy` has `{op}` where the name of the op's class belongs.
    """

    part: str
    remedy: str


@dataclass(frozen=True)
class Coverage:
    """The ops of one target: `find_gap` says what one lacks; `reasons` are the refused ones.

    `title` is how messages call the target. `reasons` maps the names of ops to what the user
    reads: what is wrong, and what would work.
    """

    target: str
    title: str
    find_gap: Callable[[Operation], Gap | None]
    reasons: dict[str, tuple[str, str]] = field(default_factory=dict)

    def unsupported(self, op: type[Operation], summary: str, hint: str = "") -> None:
        """Refuse an op on this target: `summary` is the sentence that the user reads.

        Raises: DuplicateRegistration for an op that is refused already.
        """
        if op.name in self.reasons:
            raise DuplicateRegistration(
                f"{op.name} is unsupported on {self.title} already: {self.reasons[op.name][0]}",
                span=calling_span(),
            )
        self.reasons[op.name] = (summary, hint)

    def refuse_everywhere(self) -> None:
        """Refuse what no target runs."""
        self.unsupported(
            CallOp,
            f"a call of another function cannot be lowered for {self.title}",
            "inline the function, as the frontend does with the jit functions that a kernel calls",
        )
        self.unsupported(
            BreakpointOp,
            f"breakpoint(): the debugger does not stop on {self.title}",
            "run the kernel in the interpreter: kernel.interpret[grid](…)",
        )

    def is_covered(self, op: Operation) -> bool:
        """Whether an op runs or is refused: the only two things that may happen to it."""
        return op.name in self.reasons or self.find_gap(op) is None


_COVERAGES: dict[str, Coverage] = {}


def covers(target: str, title: str, find_gap: Callable[[Operation], Gap | None]) -> Coverage:
    """Declare what a target covers, so that passes find it by the target's name."""
    _COVERAGES[target] = coverage = Coverage(target, title, find_gap)
    coverage.refuse_everywhere()
    return coverage


def coverage_of(target: str) -> Coverage:
    """What a target that is loaded covers. Raises: InvalidOption for another name."""
    if target not in _COVERAGES:
        raise InvalidOption(
            f"there is no target `{target}`", hint=f"there are {', '.join(sorted(_COVERAGES))}"
        )
    return _COVERAGES[target]
