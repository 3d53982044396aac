"""How the commands show things: a kernel's title, a diff, sizes, tables."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text
from xdsl.dialects.builtin import ModuleOp

from tilewright.compiler.request import CompileRequest
from tilewright.frontend.program import TypeTree

_DIFF_COLORS = {"+": "green", "-": "red", "@": "cyan"}


def title(request: CompileRequest) -> str:
    """A kernel with what it is specialised for, on one line."""
    specialization = request.specialization
    parts: list[str] = []
    for name, type_ in specialization.signature:
        shown = _type_text(type_)
        if shown == "constexpr":
            parts.append(f"{name}={specialization.constants.get((name,))!r}")
            continue
        multiple = specialization.divisibility.get((name,))
        parts.append(f"{name}: {shown}" + (f":{multiple}" if multiple else ""))
    return f"{request.name}({', '.join(parts)})"


def _type_text(type_: TypeTree) -> str:
    if isinstance(type_, str):
        return type_
    return f"({', '.join(_type_text(item) for item in type_.items)})"


class ValueNames:
    """Names for values that have none, which they keep from stage to stage.

    Without them a printer counts values, and one new value renames all that stand behind it.
    """

    def __init__(self) -> None:
        self._count = 0

    def give(self, module: ModuleOp) -> None:
        """Name the values of a module that have no name yet, in order."""
        for op in module.walk():
            blocks = (block for region in op.regions for block in region.blocks)
            for value in (*op.results, *(a for block in blocks for a in block.args)):
                if value.name_hint is None:
                    value.name_hint = f"v{self._count}"
                    self._count += 1


def echo_diff(before: str, after: str, from_name: str, to_name: str) -> None:
    """Print what changed between two texts as a unified diff."""
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), from_name, to_name, lineterm=""
    )
    is_same = True
    for line in lines:
        is_same = False
        click.secho(line, fg=_DIFF_COLORS.get(line[:1]))
    if is_same:
        click.echo(f"{to_name} changes nothing")


def size_text(num_bytes: int) -> str:
    """A size in bytes with a unit.

    *Example*

    >>> size_text(1536)
    '1.5 KiB'
    """
    size, unit = float(num_bytes), "B"
    for larger in ("KiB", "MiB", "GiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"


def echo_table(header: Sequence[str], rows: Sequence[Sequence[str]], heading: str = "") -> None:
    """Print a table; cells are plain text, whatever brackets they hold."""
    table = Table(title=heading or None, title_justify="left", box=None, pad_edge=False)
    for name in header:
        table.add_column(name, overflow="fold", no_wrap=name == header[0])
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console(highlight=False).print(table)


def count_text(count: int, noun: str) -> str:
    """A number of things in words.

    *Example*

    >>> count_text(1, "barrier"), count_text(2, "barrier")
    ('1 barrier', '2 barriers')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
