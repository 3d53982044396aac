"""Tokens, types and operands of LLVM assembly."""

from __future__ import annotations

import re
import struct
from functools import cache

import ml_dtypes
import numpy as np

from tilewright.interp.simt import types as t
from tilewright.interp.simt.syntax import Constant, Expression, Global, Local, Operand, Undefined
from tilewright.interp.simt.types import LlvmType
from tilewright.support.errors import MalformedText

_TOKEN = re.compile(
    r"""c?"(?:[^"\\]|\\.)*"        # strings, with LLVM's \xx escapes
      | [%@](?:"[^"]*"|[\w.$-]+)   # names
      | ;.*                        # a comment takes the rest of the line
      | ![\w.]*                    # metadata
      | \#\d+
      | 0x[HRKLM]?[0-9A-Fa-f]+
      | [+-]?\d+\.\d*(?:[eE][+-]?\d+)?
      | -?\d+(?![\w.])
      | [\w.$]+
      | \.\.\.
      | [][(){}<>,=*:|]""",
    re.VERBOSE,
)
_SIMPLE: dict[str, LlvmType] = {
    "void": t.VOID,
    "half": t.HALF,
    "bfloat": t.BFLOAT,
    "float": t.FLOAT,
    "double": t.DOUBLE,
    **{f"i{bits}": t.IntType(bits) for bits in range(1, 129)},
}
_CASTS = frozenset(("inttoptr", "ptrtoint", "bitcast", "addrspacecast", "trunc"))


@cache
def _struct_of_scalars(text: str) -> t.StructType | None:
    """A struct by the names of its fields; products have hundreds of them on every line."""
    names = text.split(" , ") if text else []
    if any(name not in _SIMPLE for name in names):
        return None
    return t.StructType(tuple(_SIMPLE[name] for name in names))


def tokens_of(line: str) -> list[str]:
    """The tokens of one line, without its comment."""
    found = _TOKEN.findall(line)
    return found[:-1] if found and found[-1][0] == ";" else found


def unquote(token: str) -> bytes:
    """The bytes of a quoted token, with or without the leading `c`."""
    body = token[token.index('"') + 1 : -1].encode()
    return re.sub(rb"\\([0-9A-Fa-f]{2}|\\)", _unescape, body)


def _unescape(found: re.Match[bytes]) -> bytes:
    text = found[1]
    return b"\\" if text == b"\\" else bytes([int(text, 16)])


class Reader:
    """A position in the tokens of one line."""

    def __init__(self, tokens: list[str], line: int) -> None:
        self.tokens = tokens
        self.line = line
        self.at = 0

    def fail(self, what: str) -> MalformedText:
        """The error that what is expected is not here."""
        rest = " ".join(self.tokens[self.at : self.at + 8])
        return MalformedText(f"LLVM line {self.line}: expected {what} at '{rest}'")

    def peek(self) -> str:
        """The next token, empty at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def next(self) -> str:
        """Take the next token."""
        token = self.peek()
        self.at += 1
        return token

    def accept(self, *tokens: str) -> bool:
        """Take the next tokens if they are these."""
        if tuple(self.tokens[self.at : self.at + len(tokens)]) != tokens:
            return False
        self.at += len(tokens)
        return True

    def expect(self, token: str) -> None:
        """Take a token that must be here."""
        if self.next() != token:
            self.at -= 1
            raise self.fail(f"'{token}'")

    def integer(self) -> int:
        """Take an integer."""
        return int(self.next())

    def name(self) -> str:
        """Take a `%name` or `@name`, and give it without its sign and quotes."""
        return self.next()[1:].strip('"')

    def skip_group(self) -> None:
        """Take a balanced group in parentheses, its opening one being the next token."""
        depth = 0
        while self.at < len(self.tokens):
            token = self.next()
            depth += (token == "(") - (token == ")")
            if depth == 0:
                return
        raise self.fail("')'")

    def type(self) -> LlvmType:
        """Take a type."""
        token = self.next()
        simple = _SIMPLE.get(token)
        if simple is not None:
            return simple
        if token == "ptr":
            return t.PointerType(self._space())
        if token in ("<", "["):
            return self._sequence_type(token)
        if token == "{":
            return self._struct_type()
        self.at -= 1
        raise self.fail("a type")

    def at_type(self) -> bool:
        """Whether a type comes next."""
        return self.peek() in _SIMPLE or self.peek() in ("ptr", "<", "[", "{")

    def _space(self) -> int:
        if not self.accept("addrspace", "("):
            return t.GENERIC
        space = self.integer()
        self.expect(")")
        return space

    def _sequence_type(self, opening: str) -> LlvmType:
        count = self.integer()
        self.expect("x")
        element = self.type()
        self.expect(">" if opening == "<" else "]")
        return (t.VectorType if opening == "<" else t.ArrayType)(count, element)

    def _struct_type(self) -> LlvmType:
        end = self.tokens.index("}", self.at)
        known = _struct_of_scalars(" ".join(self.tokens[self.at : end]))
        if known is not None:
            self.at = end + 1
            return known
        fields: list[LlvmType] = []
        while not self.accept("}"):
            fields.append(self.type())
            self.accept(",")
        return t.StructType(tuple(fields))

    def typed_operand(self) -> Operand:
        """Take a type and a value of it."""
        return self.operand(self.type())

    def operand(self, type_: LlvmType) -> Operand:
        """Take a value of a known type."""
        token = self.peek()
        if token[:1] == "%":
            return Local(type_, self.name())
        if token[:1] == "@":
            return Global(type_, self.name())
        if token in ("undef", "poison"):
            self.at += 1
            return Undefined(type_)
        if token in _CASTS or token == "getelementptr":
            return self._expression(type_)
        return Constant(type_, self._literal(type_))

    def _literal(self, type_: LlvmType) -> object:
        token = self.next()
        if token in ("null", "zeroinitializer", "none"):
            return None
        if token in ("true", "false"):
            return token == "true"
        if token == "splat":
            self.expect("(")
            element = self.typed_operand()
            self.expect(")")
            assert isinstance(type_, t.VectorType)
            return (element,) * type_.count
        if token in ("<", "[", "{"):
            return self._aggregate({"<": ">", "[": "]", "{": "}"}[token])
        if token.startswith('c"'):
            return unquote(token)
        return self._number(type_, token)

    def _aggregate(self, closing: str) -> tuple[Operand, ...]:
        elements: list[Operand] = []
        while not self.accept(closing):
            elements.append(self.typed_operand())
            self.accept(",")
        return tuple(elements)

    def _number(self, type_: LlvmType, token: str) -> object:
        try:
            if isinstance(type_, t.IntType):
                return int(token, 0) if token.startswith("0x") else int(token)
            if isinstance(type_, t.FloatType):
                return float_literal(token)
        except (ValueError, struct.error):
            pass
        self.at -= 1
        raise self.fail(f"a constant of type {type_}")

    def _expression(self, type_: LlvmType) -> Operand:
        opcode = self.next()
        while self.peek() != "(":
            self.at += 1
        self.expect("(")
        if opcode == "getelementptr":
            element = self.type()
            self.expect(",")
            operands = [self.typed_operand()]
            while self.accept(","):
                operands.append(self.typed_operand())
            self.expect(")")
            return Expression(type_, opcode, tuple(operands), element)
        operand = self.typed_operand()
        self.expect("to")
        self.type()
        self.expect(")")
        return Expression(type_, opcode, (operand,))


def float_literal(token: str) -> float:
    """The value of a float literal: decimal, the bits of a double, or `0xH`, `0xR` bits."""
    if token.startswith("0xH"):
        return float(np.uint16(int(token[3:], 16)).view(np.float16))
    if token.startswith("0xR"):
        return float(np.array(int(token[3:], 16), np.uint16).view(ml_dtypes.bfloat16))
    if token.startswith("0x"):
        return struct.unpack("<d", struct.pack("<Q", int(token[2:], 16)))[0]
    return float(token)
