"""Modules as text: what `print_module` writes, `parse_module` reads back unchanged.

The text is MLIR's generic form, so it is also what `triton-opt -mlir-print-op-generic` writes;
the custom forms of the published dialects are not read. The reader evens out before it parses
what xDSL's parser does not take as it is meant:

* aliases of locations may stand after the module and refer to later ones;
* integer ops may carry `overflowFlags`, a promise that we do not use;
* fused locations may carry metadata, which is dropped;
* a float of a dense literal may be written as its bits (infinities and NaNs are), which xDSL 0.74
  reads as an integer's value.

xDSL's parser and printer are loaded when they are used: most compiles show no text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from io import StringIO

from xdsl.context import Context
from xdsl.dialects.builtin import AnyFloat, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import ParseError, VerifyException

from tilewright.ir.text_places import line_of, op_spans
from tilewright.ir.types import FLOATS
from tilewright.support.errors import MalformedText
from tilewright.support.source import Span

_ALIAS = re.compile(r"^(#loc\w*)\s*=\s*(loc\(.*\))[ \t]*$", re.MULTILINE)
_ALIAS_USE = re.compile(r"#loc\w*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
# Comments, the strings that the parser accepts, and what must not be left of a string. xDSL
# 0.74 matches strings with a pattern that takes 2^n steps on one that does not end.
_QUOTED = re.compile(r"""//[^\n]*+|"(?>[^"\\\n\v\f]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"|(?P<open>")""")
# Properties that promise something which we never ask for, with the comma on one side.
_PROMISES = re.compile(
    r"(?:overflowFlags = #arith\.overflow<[^>]*>|op_bundle_sizes = array<i32>)(?:, )?"
)
# A layout of registers, lanes and warps, or of offsets in shared memory.
_LAYOUT = re.compile(r'#ttg\.linear<"(?P<shared>offset)?[^"]*">')
_LEFTOVER_COMMA = re.compile(r", (?=\}>)")
# A dense literal of floats with one that is written as its bits.
_DENSE_BITS = re.compile(
    r"dense<(?P<elements>[^<>\"]*\b0x[^<>\"]*)>(?= : (?:tensor|vector)<(?:\d+x)*(?P<type>[\w]+))"
)
_FLOAT_NAMES = {type_.name: type_ for type_ in FLOATS if isinstance(type_, AnyFloat)}
# Messages of xDSL that point behind what they speak of.
_UNKNOWN_OP = re.compile(r"Operation (\S+) (?:is not registered|does not have a custom format\.)")
_UNDEFINED = re.compile(r"values used but not defined: \[(%[^,\]]+)")
_ELEMENT = re.compile(r"[^\s,\[\]]+")
_NUMBER = re.compile(r"0x[0-9A-Fa-f]+|-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?")
_FUSED_METADATA = re.compile(r"fused<[^>]*>(?=\[)")


def print_module(module: ModuleOp, *, locations: bool = False) -> str:
    """The module in generic form, one op a line, with source locations if asked for."""
    from xdsl.printer import Printer

    stream = StringIO()
    Printer(stream, print_generic_format=True, print_debuginfo=locations).print_op(module)
    return _name_layouts(stream.getvalue()) + "\n"


def _name_layouts(text: str) -> str:
    """The text with each layout written once, in front, and named where it is used."""
    names: dict[str, str] = {}

    def name(match: re.Match[str]) -> str:
        kind = "#shared" if match["shared"] else "#layout"
        return names.setdefault(match[0], f"{kind}{len(names)}")

    body = _LAYOUT.sub(name, text)
    return "".join(f"{short} = {layout}\n" for layout, short in names.items()) + body


def parse_module(text: str, context: Context, *, name: str = "<text>") -> ModuleOp:
    """Parse and verify a module in generic form.

    *Raises* MalformedText with the reason and the place when the text is no module, uses an op
    or attribute that `context` does not know, or breaks an op's own rules.
    """
    normal = normalize(text, name)
    _check_strings(normal, name)
    try:
        module = _parsed(context, normal, name)
        _verify(module, normal, name)
    except ParseError as error:
        start, end = _blamed(error, normal)
        raise _malformed(error.msg, normal, name, start, end) from error
    except (ValueError, OverflowError) as error:  # the parser's own reading of names and numbers
        raise MalformedText(f"{name}: {error}", hint=_GENERIC_FORM) from error
    except RecursionError as error:
        reason = "regions or attributes are nested too deeply"
        raise MalformedText(f"{name}: {reason}", hint=_GENERIC_FORM) from error
    return module


def _parsed(context: Context, text: str, name: str) -> ModuleOp:
    """The module of a text. *Raises*: MalformedText where an attribute breaks its own rules."""
    from xdsl.parser import Parser

    parser = Parser(context, text, name)
    try:
        return parser.parse_module()
    except (VerifyException, NotImplementedError) as error:  # of attributes
        reason = str(error).splitlines()[0]
        raise _malformed(reason, text, name, parser.pos, parser.pos) from error


_GENERIC_FORM = "modules are read in MLIR's generic form, as `tilewright ir` prints them"


def _blamed(error: ParseError, text: str) -> tuple[int, int]:
    """The stretch that is at fault."""
    unknown, undefined = _UNKNOWN_OP.fullmatch(error.msg), _UNDEFINED.match(error.msg)
    if unknown:
        start = text.rfind(unknown[1], 0, error.span.start)
        return start, start + len(unknown[1])
    use = undefined and re.search(rf"{re.escape(undefined[1])}\b", text)
    return use.span() if use else (error.span.start, error.span.end)


def _malformed(reason: str, text: str, name: str, start: int, end: int) -> MalformedText:
    """The error for text that is none of the language at a stretch of it."""
    line_start = text.rfind("\n", 0, start) + 1
    line = text.count("\n", 0, start) + 1
    end = min(end, start + len(text[start:].partition("\n")[0]))
    span = Span(name, line, start - line_start + 1, end - line_start + 1)
    return MalformedText(reason, hint=_GENERIC_FORM, span=span, source=line_of(text, span))


def _verify(module: ModuleOp, text: str, name: str) -> None:
    """Check every op by its own rules. *Raises*: MalformedText with the first that breaks them."""
    try:
        module.verify()
    except VerifyException as error:
        raise _invalid(module, text, name) or MalformedText(f"{name}: {error}") from error
    early = next(_early_uses(module), None)
    if early is not None:
        op, value = early
        span = op_spans(module, text, name).get(op)
        raise MalformedText(
            f"{op.name} takes %{value.name_hint or '…'}, which is computed by itself or behind it",
            hint="an op stands behind those whose results it takes",
            span=span,
            source=None if span is None else line_of(text, span),
        )


def _early_uses(module: ModuleOp) -> Iterator[tuple[Operation, SSAValue]]:
    """The ops of regions of one block that take what is not yet there, with what they take."""
    order = {op: number for number, op in enumerate(module.walk())}
    for op, number in order.items():
        for value in op.operands:
            owner = value.owner
            if not isinstance(owner, Operation) or owner.parent is None:
                continue
            region = owner.parent.parent
            is_line = region is not None and len(region.blocks) == 1
            if is_line and (order[owner] >= number or (owner.regions and owner.is_ancestor(op))):
                yield op, value


def _invalid(module: ModuleOp, text: str, name: str) -> MalformedText | None:
    """The error for the first op of a module that breaks its own rules, if one does."""
    spans = op_spans(module, text, name)
    for op in module.walk():
        try:
            op.verify(verify_nested_ops=False)
        except VerifyException as error:
            span = spans.get(op)
            rules = f"{type(op).__module__}.{type(op).__qualname__}"
            return MalformedText(
                str(error).strip(),
                hint=f"what {op.name} takes and gives is said at `{rules}`",
                span=span,
                source=None if span is None else line_of(text, span),
            )
    return None


def _check_strings(text: str, name: str) -> None:
    """Refuse text with a string that does not end in its line or has an unknown escape."""
    for match in _QUOTED.finditer(text):
        if match["open"]:
            place = match.start()
            raise _malformed("a string literal does not end", text, name, place, place + 1)


def normalize(text: str, name: str = "<text>") -> str:
    """Text from elsewhere in the form that the parser reads: location aliases first."""
    aliases = {match[1]: match[2] for match in _ALIAS.finditer(text)}
    body = _FUSED_METADATA.sub("fused", _LEFTOVER_COMMA.sub("", _PROMISES.sub("", text)))
    body = _DENSE_BITS.sub(lambda match: _as_bytes(match, name), body)
    if not aliases:
        return body
    # The lines stay, so that the parser's line numbers are those of the text.
    body = _ALIAS.sub("", body)
    plain = {alias: _FUSED_METADATA.sub("fused", value) for alias, value in aliases.items()}
    head = " ".join(f"{alias} = {plain[alias]}" for alias in _dependency_order(plain))
    return f"{head} {body}"


def _as_bytes(match: re.Match[str], name: str) -> str:
    """A dense literal of floats as the bytes of its elements, one for a splat."""
    type_ = _FLOAT_NAMES.get(match["type"])
    if type_ is None:
        return match[0]
    texts = _ELEMENT.findall(match["elements"])
    if not all(map(_NUMBER.fullmatch, texts)):
        return match[0]  # the parser says what is wrong
    try:
        elements = [_element_bytes(text, type_) for text in texts]
    except OverflowError as error:
        reason = f"{error}, but the element is {match['type']}"
        raise _malformed(reason, match.string, name, *match.span("elements")) from error
    return f'dense<"0x{b"".join(elements).hex()}">'


def _element_bytes(text: str, type_: AnyFloat) -> bytes:
    if not text.startswith("0x"):
        return type_.pack((float(text),))
    num_bytes = type_.compile_time_size
    if int(text, 16) >> 8 * num_bytes:
        raise OverflowError(f"{text} has more than {8 * num_bytes} bits")
    return int(text, 16).to_bytes(num_bytes, "little")


def _dependency_order(aliases: Mapping[str, str]) -> tuple[str, ...]:
    """Aliases, each after those that it refers to."""
    uses = {alias: _uses(definition, aliases) for alias, definition in aliases.items()}
    try:
        return tuple(TopologicalSorter(uses).static_order())
    except CycleError:
        return tuple(aliases)  # the parser says which alias is undefined


def _uses(definition: str, aliases: Mapping[str, str]) -> list[str]:
    return [alias for alias in _ALIAS_USE.findall(_STRING.sub("", definition)) if alias in aliases]
