"""Rules of functions that the simulator knows, found by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field
from typing import TypeVar

from tilewright.interp.simt.machine import Machine
from tilewright.interp.simt.syntax import Constant, Instruction, Site
from tilewright.interp.simt.types import LlvmType
from tilewright.interp.simt.values import Value
from tilewright.interp.simt.waited_ring import Awaited, WaitedTurn
from tilewright.ir.op import Array
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import UnsupportedError

Compute = Callable[[], "Value | None"]


@dataclass
class Call:
    """A call that a rule turns into what computes its value.

    A rule sets `is_suspension` when threads may wait in the call; what it returns then runs
    after the threads were sent to the instruction behind.
    """

    machine: Machine
    name: str
    instruction: Instruction
    slots: list[int] = field(default_factory=list)
    # What a wait says of itself: its ring, and the slot of the phase that it means.
    ring: Awaited | None = None
    phase: int = 0
    # The turns that a wait at a named barrier is for.
    turn: WaitedTurn | None = None
    is_suspension: bool = False

    @property
    def site(self) -> Site:
        """Where the call stands."""
        return self.instruction.site

    @property
    def type(self) -> LlvmType:
        """The type of the result."""
        return self.instruction.type

    def argument_type(self, index: int) -> LlvmType:
        """The type of an argument."""
        return self.instruction.operands[index].type

    def array(self, index: int) -> Array:
        """The current value of an argument that is no aggregate."""
        return self.machine.read(self.slots[index])

    def constant(self, index: int) -> int:
        """The value of an argument that must be an integer constant."""
        operand = self.instruction.operands[index]
        if not isinstance(operand, Constant):
            raise UnsupportedError(f"argument {index} of {self.name} must be constant")
        return int(operand.value or 0)  # pyright: ignore[reportArgumentType]


CallRule = Callable[[Call], Compute]
_AnyRule = TypeVar("_AnyRule", bound=CallRule)
_RULES: dict[str, tuple[CallRule, frozenset[str]]] = {}
_TYPE = re.compile(r"(v\d+)?(i|f|bf|p)\d+p?|[fd]")


def intrinsic(*names: str, words: str = "") -> Callable[[_AnyRule], _AnyRule]:
    """Decorate a function as the rule of intrinsics, by the beginnings of their names.

    What follows must be types or be among `words`; any other name is not known.
    """

    def register(rule: _AnyRule) -> _AnyRule:
        for name in names:
            assert name not in _RULES, f"second rule for {name}"
            _RULES[name] = (rule, frozenset(words.split()))
        return rule

    return register


def find_rule(name: str) -> CallRule | None:
    """The rule of a function, None when it is not known."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        found = _RULES.get(".".join(parts[:count]))
        if found is not None:
            rule, words = found
            is_known = all(part in words or _TYPE.fullmatch(part) for part in parts[count:])
            return rule if is_known else None
    return None
