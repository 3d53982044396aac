"""Where the ops of a parsed module stand in its text."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Mapping

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr
from xdsl.ir import Operation

from tilewright.ir.locations import is_known
from tilewright.support.source import Span

# An op in generic form, or what may hold something that looks like one.
_TOKEN = re.compile(r'//[^\n]*|"(?P<name>[\w.]+)"(?=\()|"(?:[^"\\\n]|\\.)*"')


def op_spans(module: ModuleOp, text: str, file: str) -> dict[Operation, Span]:
    """The name of each op that stands in `text` in generic form; others are left out.

    The walk over a module meets the ops of one name in the order of the text.
    """
    spans: defaultdict[str, deque[Span]] = defaultdict(deque)
    line, start_of_line, position = 1, 0, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", position, match.start())
        position = match.start()
        start_of_line = text.rfind("\n", 0, position) + 1
        if match["name"]:
            column = position - start_of_line + 1
            spans[match["name"]].append(Span(file, line, column, column + len(match[0])))
    return {op: spans[op.name].popleft() for op in module.walk() if spans[op.name]}


def locate(module: ModuleOp, text: str, file: str) -> None:
    """Let each op without a known location point to where it stands in `text`."""
    for op, span in op_spans(module, text, file).items():
        if not is_known(op.location):
            place = (StringAttr(span.file), IntAttr(span.line), IntAttr(span.column))
            op.location = FileLineColLoc(*place)


def line_of(text: str, span: Span) -> str:
    """The line of a text that a span stands in."""
    lines: Mapping[int, str] = dict(enumerate(text.split("\n"), 1))
    return lines.get(span.line, "")
