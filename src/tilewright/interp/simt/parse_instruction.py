"""The parser of single LLVM instructions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from tilewright.interp.simt import types as t
from tilewright.interp.simt.reader import Reader, tokens_of, unquote
from tilewright.interp.simt.syntax import InlineAssembly, Instruction, Local, Operand, Site
from tilewright.interp.simt.types import LlvmType
from tilewright.support.errors import MalformedText
from tilewright.support.source import Span

_DEBUG = re.compile(r", !dbg !(\d+)")
_ORDERINGS = frozenset(("unordered", "monotonic", "acquire", "release", "acq_rel", "seq_cst"))
_Parse = Callable[[Reader, str, str, Site], Instruction]


def alignment_of(reader: Reader) -> int:
    """The `align N` that follows, 0 for none."""
    tokens = reader.tokens
    for index in range(reader.at, len(tokens) - 1):
        if tokens[index] == "align":
            return int(tokens[index + 1])
    return 0


def parse_instruction(number: int, text: str, locations: Mapping[str, Span]) -> Instruction:
    """One instruction, given the line that it stands on and the module's debug locations."""
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
    return Instruction(opcode, result, type_, (operand,), site, words, align=alignment_of(reader))


def _store(reader: Reader, opcode: str, result: str, site: Site) -> Instruction:
    words = _words(reader)
    operands = _operand_list(reader)
    words += _ordering(reader)
    return Instruction(opcode, "", t.VOID, operands, site, words, align=alignment_of(reader))


def _atomic_update(reader: Reader, opcode: str, result: str, site: Site) -> Instruction:
    """`words` starts with the operation."""
    words = tuple(word for word in _words(reader) if word != "volatile")
    operands = _operand_list(reader)
    words += _ordering(reader)
    return Instruction(
        opcode, result, operands[1].type, operands, site, words, align=alignment_of(reader)
    )


def _compare_exchange(reader: Reader, opcode: str, result: str, site: Site) -> Instruction:
    _words(reader)
    operands = _operand_list(reader)
    type_ = t.StructType((operands[1].type, t.I1))
    words = _ordering(reader)
    return Instruction(opcode, result, type_, operands, site, words, align=alignment_of(reader))


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
        opcode, result, pointer, operands, site, element=type_, align=alignment_of(reader)
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
