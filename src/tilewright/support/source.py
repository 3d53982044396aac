"""Source spans and how they are shown: file, line, columns, caret, call chain."""

from __future__ import annotations

import inspect
import linecache
import sys
import unicodedata
from types import FunctionType

from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class Span:
    """A stretch of one source line; columns count from 1, `end_column` is exclusive.

    `definition` is the line of the `def` of the function around it and the columns that it is
    indented by, where they are known.
    """

    file: str
    line: int
    column: int = 1
    end_column: int = 0
    function: str = ""
    definition: tuple[int, int] | None = None

    def position(self) -> str:
        """`file:line, col a-b, in function` as shown in messages."""
        columns = f"col {self.column}"
        if self.end_column > self.column + 1:
            columns = f"col {self.column}-{self.end_column - 1}"
        where = f", in {self.function}" if self.function else ""
        return f"{self.file}:{self.line}, {columns}{where}"


def loaded_lines(function: FunctionType) -> list[str]:
    """The lines of the file that a function is defined in, as they are now; [] without one.

    Asked for where the function is made: its file may hold another text at the first launch.
    """
    written = inspect.unwrap(function)
    if not inspect.isfunction(written):
        return []
    file = written.__code__.co_filename
    # Files by their status on disk: another module may have read an older text.
    linecache.checkcache(file)
    return linecache.getlines(file, written.__globals__)


def definition_span(thing: object) -> Span | None:
    """Where a function or a class of Python is defined; None for any other object.

    *Example*

    >>> definition_span(len) is None
    True
    """
    if isinstance(thing, type):
        try:
            return Span(inspect.getfile(thing), inspect.getsourcelines(thing)[1])
        except (OSError, TypeError):
            return None
    written = inspect.unwrap(thing) if callable(thing) else thing
    if not isinstance(written, FunctionType):
        return None
    code = written.__code__
    return Span(code.co_filename, code.co_firstlineno)


def calling_span(depth: int = 1) -> Span:
    """The line that calls the function that calls this one; `depth` callers further up."""
    frame = sys._getframe(depth + 1)  # pyright: ignore[reportPrivateUsage]
    return Span(frame.f_code.co_filename, frame.f_lineno)


def function_text(function: FunctionType, lines: list[str]) -> tuple[str, int] | None:
    """The text of a function in the lines of its file, with the number of its first line."""
    if not lines:
        return None
    first_line: int = inspect.unwrap(function).__code__.co_firstlineno
    block = inspect.getblock(lines[first_line - 1 :])
    return ("".join(block), first_line) if block else None


def display_width(text: str) -> int:
    """Terminal columns that `text` takes: wide characters count two, combining ones none."""
    width = 0
    for character in text:
        if unicodedata.combining(character):
            continue
        width += 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return width


def source_line(file: str, line: int) -> str:
    """The text of one source line without its newline, or '' when it cannot be read."""
    return linecache.getline(file, line).rstrip("\n")


def caret_excerpt(span: Span, text: str | None = None, indent: str = "        ") -> str:
    """The source line of `span` with carets under its columns, or '' without source."""
    raw = source_line(span.file, span.line) if text is None else text
    if not raw.strip():
        return ""
    leading = len(raw) - len(raw.lstrip())
    end = span.end_column if span.end_column > span.column else span.column + 1
    start = max(span.column - 1, leading)
    marked = raw[start : min(end - 1, len(raw))]
    padding = " " * display_width(raw[leading:start])
    carets = "^" * max(1, display_width(marked))
    return f"{indent}{raw[leading:]}\n{indent}{padding}{carets}"
