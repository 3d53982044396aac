"""The parser of inline PTX: instructions, predicates, operands, labels, register names."""

from __future__ import annotations

import re
import struct
from dataclasses import field
from typing import TypeAlias

from tilewright.support.dataclass import dataclass
from tilewright.support.errors import UnsupportedError

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_LABEL = re.compile(r"^([\w$]+)\s*:(?!:)")
_DECLARATION = re.compile(r"^\.reg\s+\.(\w+)\s+(.*)$", re.DOTALL)
_RANGE = re.compile(r"^(.*)<(\d+)>$")
_INSTRUCTION = re.compile(r"^(?:@(!?)\s*([%\w$]+)\s+)?([\w.:]+)\s*(.*)$", re.DOTALL)
_OPERAND = re.compile(r"[\[\]{},|+!-]|[^\s\[\]{},|+!-]+")


@dataclass(frozen=True)
class Register:
    """A register of the block or, as `$N`, an operand of the call; `_` takes what is unused."""

    name: str


@dataclass(frozen=True)
class Immediate:
    """A literal: an integer, or the bits of a float with `float_bits` 32 or 64."""

    value: int
    float_bits: int = 0


@dataclass(frozen=True)
class Group:
    """Operands in braces, or a predicate pair `p|q`."""

    members: tuple[PtxOperand, ...]


@dataclass(frozen=True)
class Address:
    """`[base+offset]`, or `[base, {coordinates}]` of a tensor."""

    base: PtxOperand
    offset: int = 0
    coordinates: tuple[PtxOperand, ...] = ()


@dataclass(frozen=True)
class Not:
    """`!p`."""

    operand: PtxOperand


PtxOperand: TypeAlias = "Register | Immediate | Group | Address | Not"


@dataclass(frozen=True)
class PtxInstruction:
    """One instruction; `opcode` is split at its dots."""

    opcode: tuple[str, ...]
    operands: tuple[PtxOperand, ...]
    text: str
    predicate: str = ""
    is_negated: bool = False


@dataclass(frozen=True)
class PtxLabel:
    """A place that branches of the block name."""

    name: str


@dataclass
class PtxBlock:
    """A parsed block: what it holds in order, and the registers that it declares."""

    items: list[PtxInstruction | PtxLabel] = field(default_factory=list)
    registers: dict[str, str] = field(default_factory=dict)

    def has_labels(self) -> bool:
        """Whether control flow can leave the straight line."""
        return any(isinstance(item, PtxLabel) for item in self.items)


def parse_ptx(template: str) -> PtxBlock:
    """Parse the template of an inline assembly call."""
    text = template.replace("${:uid}", "__uid").replace("$$", "\0")
    text = _COMMENT.sub(" ", text)
    block = PtxBlock()
    # Braces that open a scope stand at the start of a statement; those of operands do not.
    for part in text.split(";"):
        statement = part.strip()
        while statement[:1] in ("{", "}"):
            statement = statement[1:].strip()
        while (label := _LABEL.match(statement)) is not None:
            block.items.append(PtxLabel(label[1]))
            statement = statement[label.end() :].strip()
            while statement[:1] in ("{", "}"):
                statement = statement[1:].strip()
        if statement:
            _parse_statement(statement, block)
    return block


def _parse_statement(statement: str, block: PtxBlock) -> None:
    declaration = _DECLARATION.match(statement)
    if declaration is not None:
        for name in declaration[2].split(","):
            block.registers.update(dict.fromkeys(_names(name.strip()), declaration[1]))
        return
    found = _INSTRUCTION.match(statement)
    if found is None or found[3].startswith("."):
        raise UnsupportedError(f"the simulator does not know the PTX statement '{statement}'")
    operands = _Operands(found[4]).all()
    block.items.append(
        PtxInstruction(
            tuple(found[3].split(".")),
            operands,
            " ".join(statement.split()),
            found[2] or "",
            found[1] == "!",
        )
    )


def _names(declared: str) -> list[str]:
    many = _RANGE.match(declared)
    return [declared] if many is None else [f"{many[1]}{i}" for i in range(int(many[2]))]


class _Operands:
    """A position in the operands of one instruction."""

    def __init__(self, text: str) -> None:
        self.tokens = _OPERAND.findall(text)
        self.at = 0

    def all(self) -> tuple[PtxOperand, ...]:
        operands: list[PtxOperand] = []
        while self.at < len(self.tokens):
            operands.append(self.one())
            self._accept(",")
        return tuple(operands)

    def _accept(self, token: str) -> bool:
        if self.at < len(self.tokens) and self.tokens[self.at] == token:
            self.at += 1
            return True
        return False

    def one(self) -> PtxOperand:
        token = self.tokens[self.at]
        self.at += 1
        if token == "{":
            return Group(self._until("}"))
        if token == "[":
            return self._address()
        if token == "!":
            return Not(self.one())
        if token == "-":
            number = self.one()
            assert isinstance(number, Immediate)
            return Immediate(-number.value)
        operand = _scalar(token)
        if self._accept("|"):
            return Group((operand, self.one()))
        return operand

    def _until(self, closing: str) -> tuple[PtxOperand, ...]:
        members: list[PtxOperand] = []
        while not self._accept(closing):
            members.append(self.one())
            self._accept(",")
        return tuple(members)

    def _address(self) -> Address:
        base = self.one()
        offset, coordinates = 0, tuple[PtxOperand, ...]()
        while not self._accept("]"):
            if self._accept(","):
                group = self.one()
                coordinates = group.members if isinstance(group, Group) else (group,)
                continue
            sign = -1 if self._accept("-") else 1
            self._accept("+")
            sign = -sign if self._accept("-") else sign
            number = self.one()
            assert isinstance(number, Immediate)
            offset += sign * number.value
        return Address(base, offset, coordinates)


def _scalar(token: str) -> Register | Immediate:
    if re.fullmatch(r"0[fF][0-9A-Fa-f]{8}", token):
        return Immediate(int(token[2:], 16), 32)
    if re.fullmatch(r"0[dD][0-9A-Fa-f]{16}", token):
        return Immediate(int(token[2:], 16), 64)
    if re.fullmatch(r"0[xX][0-9A-Fa-f]+U?", token):
        return Immediate(int(token.rstrip("U"), 16))
    if re.fullmatch(r"\d+U?", token):
        return Immediate(int(token.rstrip("U")))
    if re.fullmatch(r"\d+\.\d*", token):
        return Immediate(struct.unpack("<Q", struct.pack("<d", float(token)))[0], 64)
    return Register(token)
