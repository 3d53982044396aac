"""The parser of LLVM assembly as our builder writes it: one instruction a line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from tilewright.interp.simt import types as t
from tilewright.interp.simt.reader import Reader, tokens_of, unquote
from tilewright.interp.simt.syntax import (
    Block,
    Function,
    GlobalVariable,
    InlineAssembly,
    Instruction,
    Local,
    Module,
    Operand,
    Parameter,
    Site,
)
from tilewright.interp.simt.types import LlvmType
from tilewright.support.errors import MalformedText

_LABEL = re.compile(r"""^(?:"([^"]*)"|([\w.$-]+)):""")
_LOCATION = re.compile(r"^!(\d+) = (?:distinct )?!DILocation\(line: (\d+), column: (\d+)")
_DEBUG = re.compile(r", !dbg !(\d+)")
_ORDERINGS = frozenset(("unordered", "monotonic", "acquire", "release", "acq_rel", "seq_cst"))
_Lines = Iterator[tuple[int, str]]
_Parse = Callable[[Reader, str, str, Site], Instruction]


def parse_module(text: str) -> Module:
    """Parse a module; declarations, attributes and metadata but `!DILocation` are skipped."""
    lines = text.split("\n")
    locations = _locations(lines)
    module = Module()
    numbered = iter(enumerate(lines, 1))
    for number, line in numbered:
        if line.startswith("define"):
            function = _parse_function(number, line, numbered, locations)
            module.functions[function.name] = function
        elif line.startswith("@"):
            variable = _parse_global(Reader(tokens_of(line), number))
            module.globals[variable.name] = variable
    return module


def _locations(lines: list[str]) -> dict[str, tuple[int, int]]:
    found = (_LOCATION.match(line) for line in lines if line.startswith("!"))
    return {m[1]: (int(m[2]), int(m[3])) for m in found if m is not None}


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
    align = _alignment(reader) or t.alignment_bytes(type_)
    return GlobalVariable(name, type_, space, initializer, is_external, "constant" in words, align)


def _alignment(reader: Reader) -> int:
    """The `align N` that follows, 0 for none."""
    tokens = reader.tokens
    for index in range(reader.at, len(tokens) - 1):
        if tokens[index] == "align":
            return int(tokens[index + 1])
    return 0


def _parse_function(
    number: int, header: str, lines: _Lines, locations: dict[str, tuple[int, int]]
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
        block.instructions.append(_parse_line(number, stripped, locations))
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


def _parse_line(number: int, text: str, locations: dict[str, tuple[int, int]]) -> Instruction:
    found = _DEBUG.search(text)
    site = Site(number, text, locations.get(found[1]) if found is not None else None)
    reader = Reader(tokens_of(text), number)
    result = ""
    if len(reader.tokens) > 1 and reader.tokens[1] == "=":
        result = reader.name()
        reader.expect("=")
    while reader.peek() in ("tail", "musttail", "notail"):
        reader.at += 1
    opcode = reader.next()
    parse = _PARSERS.get(opcode)
    if parse is None:
        raise MalformedText(f"LLVM line {number}: unknown instruction '{opcode}'")
    return parse(reader, opcode, result, site)


def _words(reader: Reader) -> tuple[str, ...]:
    """The flags in front of a type, such as `nsw` or `fast`."""
    words: list[str] = []
    while not reader.at_type():
        word = reader.next()
        if not word:
            raise reader.fail("a type")
        words.append(word)
        if reader.peek() == "(":
            reader.skip_group()
    return tuple(words)


def _binary(reader: Reader, opcode: str, result: str, site: Site) -> Instruction:
    words = _words(reader)
    left = reader.typed_operand()
    reader.expect(",")
    right = reader.operand(left.type)
    return Instruction(opcode, result, left.type, (left, right), site, words)


def _unary(reader: Reader, opcode: str, result: str, site: Site) -> Instruction:
    words = _words(reader)
    operand = reader.typed_operand()
    return Instruction(opcode, result, operand.type, (operand,), site, words)


def _compare(reader: Reader, opcode: str, result: str, site: Site) -> Instruction:
    """`words` ends with the predicate."""
    words = _words(reader)
    left = reader.typed_operand()
    reader.expect(",")
    right = reader.operand(left.type)
    type_ = t.VectorType(left.type.count, t.I1) if isinstance(left.type, t.VectorType) else t.I1
    return Instruction(opcode, result, type_, (left, right), site, words)


def _cast(reader: Reader, opcode: str, result: str, site: Site) -> Instruction:
    words = _words(reader)
    operand = reader.typed_operand()
    reader.expect("to")
    return Instruction(opcode, result, reader.type(), (operand,), site, words)


def _select(reader: Reader, opcode: str, result: str, site: Site) -> Instruction:
    _words(reader)
    operands = _operand_list(reader)
    return Instruction(opcode, result, operands[1].type, operands, site)


def _operand_list(reader: Reader) -> tuple[Operand, ...]:
    operands = [reader.typed_operand()]
    while reader.peek() == "," and not reader.tokens[reader.at + 1].startswith("!"):
        reader.at += 1
        if not reader.at_type():
            reader.at -= 1
            break
        operands.append(reader.typed_operand())
    return tuple(operands)


def _phi(reader: Reader, opcode: str, result: str, site: Site) -> Instruction:
    """One operand per incoming edge; `labels` are the blocks that they come from."""
    _words(reader)
    type_ = reader.type()
    operands: list[Operand] = []
    labels: list[str] = []
    while reader.accept("["):
        operands.append(reader.operand(type_))
        reader.expect(",")
        labels.append(reader.name())
        reader.expect("]")
        reader.accept(",")
    return Instruction(opcode, result, type_, tuple(operands), site, labels=tuple(labels))


def _branch(reader: Reader, opcode: str, result: str, site: Site) -> Instruction:
    if reader.accept("label"):
        return Instruction(opcode, "", t.VOID, (), site, labels=(reader.name(),))
    condition = reader.typed_operand()
    labels: list[str] = []
    while reader.accept(",", "label"):
        labels.append(reader.name())
    return Instruction(opcode, "", t.VOID, (condition,), site, labels=tuple(labels))


def _switch(reader: Reader, opcode: str, result: str, site: Site) -> Instruction:
    """`labels` starts with the default, and `indices` are the values of the others."""
    value = reader.typed_operand()
    reader.expect(",")
    reader.expect("label")
    labels, cases = [reader.name()], list[int]()
    reader.expect("[")
    while not reader.accept("]"):
        reader.type()
        cases.append(reader.integer())
        reader.expect(",")
        reader.expect("label")
        labels.append(reader.name())
    return Instruction(
        opcode, "", t.VOID, (value,), site, labels=tuple(labels), indices=tuple(cases)
    )


def _return(reader: Reader, opcode: str, result: str, site: Site) -> Instruction:
    if reader.accept("void"):
        return Instruction(opcode, "", t.VOID, (), site)
    operand = reader.typed_operand()
    return Instruction(opcode, "", operand.type, (operand,), site)


def _plain(reader: Reader, opcode: str, result: str, site: Site) -> Instruction:
    return Instruction(opcode, "", t.VOID, (), site)


def _address(reader: Reader, opcode: str, result: str, site: Site) -> Instruction:
    """`element` is the type that the indices step over."""
    _words(reader)
    element = reader.type()
    reader.expect(",")
    operands = _operand_list(reader)
    return Instruction(opcode, result, operands[0].type, operands, site, element=element)


def _ordering(reader: Reader) -> tuple[str, ...]:
    """The orderings and the scope behind an atomic operation, as `scope:NAME`."""
    words: list[str] = []
    while reader.peek() in _ORDERINGS or reader.peek() == "syncscope":
        word = reader.next()
        if word == "syncscope":
            reader.expect("(")
            word = "scope:" + unquote(reader.next()).decode()
            reader.expect(")")
        words.append(word)
    return tuple(words)


def _load(reader: Reader, opcode: str, result: str, site: Site) -> Instruction:
    words = _words(reader)
    type_ = reader.type()
    reader.expect(",")
    operand = reader.typed_operand()
    words += _ordering(reader)
    return Instruction(opcode, result, type_, (operand,), site, words, align=_alignment(reader))


def _store(reader: Reader, opcode: str, result: str, site: Site) -> Instruction:
    words = _words(reader)
    operands = _operand_list(reader)
    words += _ordering(reader)
    return Instruction(opcode, "", t.VOID, operands, site, words, align=_alignment(reader))


def _atomic_update(reader: Reader, opcode: str, result: str, site: Site) -> Instruction:
    """`words` starts with the operation."""
    words = tuple(word for word in _words(reader) if word != "volatile")
    operands = _operand_list(reader)
    words += _ordering(reader)
    return Instruction(
        opcode, result, operands[1].type, operands, site, words, align=_alignment(reader)
    )


def _compare_exchange(reader: Reader, opcode: str, result: str, site: Site) -> Instruction:
    _words(reader)
    operands = _operand_list(reader)
    type_ = t.StructType((operands[1].type, t.I1))
    words = _ordering(reader)
    return Instruction(opcode, result, type_, operands, site, words, align=_alignment(reader))


def _fence(reader: Reader, opcode: str, result: str, site: Site) -> Instruction:
    return Instruction(opcode, "", t.VOID, (), site, _ordering(reader))


def _allocate(reader: Reader, opcode: str, result: str, site: Site) -> Instruction:
    """`element` is the type of one element; the count must be constant."""
    type_ = reader.type()
    operands: tuple[Operand, ...] = ()
    space = t.GENERIC
    while reader.accept(","):
        if reader.at_type():
            operands = (reader.typed_operand(),)
        elif reader.accept("addrspace", "("):
            space = reader.integer()
            reader.expect(")")
        else:
            break
    pointer = t.PointerType(space)
    return Instruction(
        opcode, result, pointer, operands, site, element=type_, align=_alignment(reader)
    )


def _extract_element(reader: Reader, opcode: str, result: str, site: Site) -> Instruction:
    operands = _operand_list(reader)
    vector = operands[0].type
    assert isinstance(vector, t.VectorType)
    return Instruction(opcode, result, vector.element, operands, site)


def _insert_element(reader: Reader, opcode: str, result: str, site: Site) -> Instruction:
    operands = _operand_list(reader)
    return Instruction(opcode, result, operands[0].type, operands, site)


def _shuffle(reader: Reader, opcode: str, result: str, site: Site) -> Instruction:
    operands = _operand_list(reader)
    first, mask = operands[0].type, operands[2].type
    assert isinstance(first, t.VectorType) and isinstance(mask, t.VectorType)
    type_ = t.VectorType(mask.count, first.element)
    return Instruction(opcode, result, type_, operands, site)


def _indices(reader: Reader) -> tuple[int, ...]:
    indices: list[int] = []
    while reader.peek() == "," and reader.tokens[reader.at + 1].isdigit():
        reader.at += 1
        indices.append(reader.integer())
    return tuple(indices)


def member_type(type_: LlvmType, indices: tuple[int, ...]) -> LlvmType:
    """The type of a member of an aggregate."""
    for index in indices:
        if isinstance(type_, t.StructType):
            type_ = type_.fields[index]
        else:
            assert isinstance(type_, t.ArrayType)
            type_ = type_.element
    return type_


def _extract_value(reader: Reader, opcode: str, result: str, site: Site) -> Instruction:
    operand = reader.typed_operand()
    indices = _indices(reader)
    type_ = member_type(operand.type, indices)
    return Instruction(opcode, result, type_, (operand,), site, indices=indices)


def _insert_value(reader: Reader, opcode: str, result: str, site: Site) -> Instruction:
    operands = _operand_list(reader)
    indices = _indices(reader)
    return Instruction(opcode, result, operands[0].type, operands, site, indices=indices)


def _call(reader: Reader, opcode: str, result: str, site: Site) -> Instruction:
    """`callee` is a function's name, inline assembly, or a pointer."""
    words = _words(reader)
    type_ = reader.type()
    if reader.peek() == "(":
        reader.skip_group()  # the function's type, for variable arguments
    callee = _callee(reader)
    reader.expect("(")
    operands: list[Operand] = []
    while not reader.accept(")"):
        operands.append(_argument(reader))
        reader.accept(",")
    return Instruction(opcode, result, type_, tuple(operands), site, words, callee=callee)


def _callee(reader: Reader) -> str | InlineAssembly | Operand:
    token = reader.peek()
    if token.startswith("@"):
        return reader.name()
    if token.startswith("%"):
        return Local(t.PointerType(), reader.name())
    reader.expect("asm")
    while not reader.peek().startswith('"'):
        reader.at += 1
    template = unquote(reader.next()).decode()
    reader.expect(",")
    return InlineAssembly(template, unquote(reader.next()).decode())


def _argument(reader: Reader) -> Operand:
    if reader.peek() == "metadata":
        raise reader.fail("an argument that is no metadata")
    type_ = reader.type()
    while reader.peek() in _ARGUMENT_WORDS:
        if reader.next() == "align":
            reader.at += 1
    return reader.operand(type_)


_ARGUMENT_WORDS = frozenset(
    ("align", "noundef", "nonnull", "signext", "zeroext", "noalias", "nocapture", "readonly")
)
_BINARY = [
    "add",
    "sub",
    "mul",
    "udiv",
    "sdiv",
    "urem",
    "srem",
    "shl",
    "lshr",
    "ashr",
    "and",
    "or",
    "xor",
    "fadd",
    "fsub",
    "fmul",
    "fdiv",
    "frem",
]
_CAST = [
    "trunc",
    "zext",
    "sext",
    "fptrunc",
    "fpext",
    "fptoui",
    "fptosi",
    "uitofp",
    "sitofp",
    "ptrtoint",
    "inttoptr",
    "bitcast",
    "addrspacecast",
]
_PARSERS: dict[str, _Parse] = {
    **dict.fromkeys(_BINARY, _binary),
    **dict.fromkeys(_CAST, _cast),
    **dict.fromkeys(("fneg", "freeze"), _unary),
    **dict.fromkeys(("icmp", "fcmp"), _compare),
    "select": _select,
    "phi": _phi,
    "br": _branch,
    "switch": _switch,
    "ret": _return,
    "unreachable": _plain,
    "getelementptr": _address,
    "load": _load,
    "store": _store,
    "atomicrmw": _atomic_update,
    "cmpxchg": _compare_exchange,
    "fence": _fence,
    "alloca": _allocate,
    "extractelement": _extract_element,
    "insertelement": _insert_element,
    "shufflevector": _shuffle,
    "extractvalue": _extract_value,
    "insertvalue": _insert_value,
    "call": _call,
}
