"""Rules of PTX instructions, found by the first words of their opcodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TypeVar

import numpy as np

from tilewright.interp.simt.in_flight import InFlight
from tilewright.interp.simt.kinds import is_kind
from tilewright.interp.simt.machine import Machine
from tilewright.interp.simt.ptx.parse import Address, Group, Immediate, PtxInstruction, PtxOperand
from tilewright.interp.simt.ptx.registers import Read, Registers
from tilewright.interp.simt.syntax import Site
from tilewright.ir.op import Array
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import UnsupportedError

Compute = Callable[[], "Sequence[Array | InFlight] | None"]


@dataclass
class PtxCall:
    """An instruction that a rule turns into what computes the values of its destinations.

    A rule names the registers that it writes with `writes`. It sets `is_suspension` when
    threads may wait in it.
    """

    machine: Machine
    registers: Registers
    instruction: PtxInstruction
    site: Site
    destinations: list[int] = field(default_factory=list)
    is_suspension: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """The modifiers behind the first word of the opcode."""
        return self.instruction.opcode[1:]

    @property
    def operands(self) -> tuple[PtxOperand, ...]:
        """The operands as they are written."""
        return self.instruction.operands

    def immediate(self, index: int) -> int:
        """The integer that is written as an operand."""
        operand = self.operands[index]
        assert isinstance(operand, Immediate)
        return operand.value

    def has(self, word: str) -> bool:
        """Whether a modifier is there."""
        return word in self.instruction.opcode

    def kinds(self) -> list[str]:
        """The types among the modifiers, in order."""
        return [word for word in self.words if is_kind(word)]

    def one_of(self, *words: str, default: str = "") -> str:
        """The modifier among `words` that is there."""
        return next((word for word in self.words if word in words), default)

    def writes(self, *operands: PtxOperand) -> None:
        """Say which registers take the values that the computation returns."""
        self.destinations = [self.registers.slot(operand) for operand in operands]

    def read(self, index: int, kind: str) -> Read:
        """What reads operand `index` as a type."""
        return self.registers.reader(self.operands[index], kind)

    def members(self, index: int) -> tuple[PtxOperand, ...]:
        """The members of operand `index`, one when it is no group."""
        operand = self.operands[index]
        return operand.members if isinstance(operand, Group) else (operand,)

    def address(self, index: int) -> tuple[Read, Address]:
        """What reads the 64-bit address in operand `index`, offset included."""
        operand = self.operands[index]
        if not isinstance(operand, Address):
            raise self.unknown()
        base = self.registers.reader(operand.base, "u64")
        offset = np.uint64(operand.offset % (1 << 64))
        return (base if operand.offset == 0 else lambda: base() + offset), operand

    def unknown(self) -> UnsupportedError:
        """The error that the simulator does not know this form."""
        return UnsupportedError(
            f"the simulator does not know the PTX instruction '{self.instruction.text}'"
        )


PtxRule = Callable[[PtxCall], Compute]
_AnyRule = TypeVar("_AnyRule", bound=PtxRule)
_RULES: dict[str, tuple[PtxRule, frozenset[str] | None]] = {}


def ptx(*names: str, words: str | None = "") -> Callable[[_AnyRule], _AnyRule]:
    """Decorate a function as the rule of instructions, by the first words of their opcodes.

    What follows must be types or be among `words`, else the instruction is not known; a rule
    with `words` None looks for itself.
    """

    def register(rule: _AnyRule) -> _AnyRule:
        for name in names:
            assert name not in _RULES, f"second rule for {name}"
            _RULES[name] = (rule, None if words is None else frozenset(words.split()))
        return rule

    return register


def find_ptx_rule(opcode: tuple[str, ...]) -> PtxRule | None:
    """The rule of an opcode, None when it is not known."""
    for count in range(len(opcode), 0, -1):
        found = _RULES.get(".".join(opcode[:count]))
        if found is not None:
            rule, words = found
            if words is None or all(w in words or is_kind(w) for w in opcode[count:]):
                return rule
            return None
    return None
