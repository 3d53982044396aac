"""The parser of LLVM assembly as our builder writes it: one instruction a line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tilewright.interp.simt import types as t
from tilewright.interp.simt.debug_locations import debug_locations
from tilewright.interp.simt.parse_instruction import alignment_of, parse_instruction
from tilewright.interp.simt.reader import Reader, tokens_of
from tilewright.interp.simt.ring_waits import ring_names
from tilewright.interp.simt.syntax import (
    Block,
    Function,
    GlobalVariable,
    Module,
    Parameter,
)
from tilewright.support.source import Span

_LABEL = re.compile(r"""^(?:"([^"]*)"|([\w.$-]+)):""")
_Lines = Iterator[tuple[int, str]]


def parse_module(text: str) -> Module:
    """Parse a module; declarations, attributes and metadata are skipped but for
    source locations and the names of rings."""
    lines = text.split("\n")
    locations = debug_locations(lines)
    module = Module(rings=ring_names(lines))
    numbered = iter(enumerate(lines, 1))
    for number, line in numbered:
        if line.startswith("define"):
            function = _parse_function(number, line, numbered, locations)
            module.functions[function.name] = function
        elif line.startswith("@"):
            variable = _parse_global(Reader(tokens_of(line), number))
            module.globals[variable.name] = variable
    return module


def _parse_global(reader: Reader) -> GlobalVariable:
    name = reader.name()
    reader.expect("=")
    space, words = 0, set[str]()
    while not reader.at_type():
        word = reader.next()
        words.add(word)
        if word == "addrspace":
            reader.expect("(")
            space = reader.integer()
            reader.expect(")")
    type_ = reader.type()
    is_external = bool(words & {"external", "extern_weak"})
    initializer = None
    if not is_external and reader.peek() not in ("", ","):
        initializer = reader.operand(type_)
    align = alignment_of(reader) or t.alignment_bytes(type_)
    return GlobalVariable(name, type_, space, initializer, is_external, "constant" in words, align)


def _parse_function(
    number: int, header: str, lines: _Lines, locations: Mapping[str, Span]
) -> Function:
    while "{" not in header.rsplit(")", 1)[-1]:
        header += " " + next(lines)[1]
    function = _parse_header(Reader(tokens_of(header), number), header)
    block = Block("entry")
    for number, line in lines:
        stripped = line.strip()
        if stripped == "}":
            break
        if not stripped or stripped[0] == ";":
            continue
        label = _LABEL.match(stripped)
        if label is not None:
            if block.instructions or function.blocks:
                function.blocks.append(block)
            block = Block(label[1] or label[2])
            continue
        while stripped.startswith("switch") and "]" not in stripped:
            stripped += " " + next(lines)[1].strip()
        block.instructions.append(parse_instruction(number, stripped, locations))
    function.blocks.append(block)
    return function


def _parse_header(reader: Reader, text: str) -> Function:
    while not reader.peek().startswith("@"):
        start = reader.at
        if reader.at_type():
            result = reader.type()
            if reader.peek().startswith("@"):
                break
            continue
        reader.at = start + 1
        if reader.peek() == "(":
            reader.skip_group()
    else:
        raise reader.fail("a result type")
    name = reader.name()
    reader.expect("(")
    parameters: list[Parameter] = []
    while not reader.accept(")"):
        parameters.append(_parse_parameter(reader))
        reader.accept(",")
    return Function(name, result, tuple(parameters), attributes=text[text.rindex(")") + 1 :])


def _parse_parameter(reader: Reader) -> Parameter:
    type_ = reader.type()
    pointee = None
    while not reader.peek().startswith("%"):
        word = reader.next()
        if word == "byval":
            reader.expect("(")
            pointee = reader.type()
            reader.expect(")")
        elif reader.peek() == "(":
            reader.skip_group()
    return Parameter(type_, reader.name(), pointee)
