"""The source locations of a module's instructions, out of its debug metadata."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tilewright.support.source import Span

_NODE = re.compile(r"^!(\d+) = (?:distinct )?!(DI\w+)\((.*)\)$")
_FIELD = re.compile(r'(\w+): (?:"((?:[^"\\]|\\.)*)"|([^,]+))')
_ESCAPED = re.compile(rb"\\([0-9A-Fa-f]{2})")


def debug_locations(lines: Iterable[str]) -> Mapping[str, Span]:
    """The span of every `!DILocation` by its number, its file found through its scope."""
    nodes: dict[str, tuple[str, dict[str, str]]] = {}
    for line in lines:
        found = _NODE.match(line) if line.startswith("!") else None
        if found is not None:
            fields = {m[1]: m[2] if m[2] is not None else m[3] for m in _FIELD.finditer(found[3])}
            nodes[found[1]] = (found[2], fields)
    return {
        number: Span(_file(nodes, fields), int(fields["line"]), int(fields["column"]))
        for number, (kind, fields) in nodes.items()
        if kind == "DILocation"
    }


def _file(nodes: Mapping[str, tuple[str, dict[str, str]]], fields: Mapping[str, str]) -> str:
    """The path of the file that a location's scope stands in, '' where none is named."""
    _, scope = nodes.get(_reference(fields, "scope"), ("", {}))
    _, file = nodes.get(_reference(scope, "file"), ("", {}))
    folder, name = _unescaped(file.get("directory", "")), _unescaped(file.get("filename", ""))
    return f"{folder}/{name}" if folder else name


def _reference(fields: Mapping[str, str], name: str) -> str:
    return fields.get(name, "").removeprefix("!")


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda m: bytes((int(m[1], 16),)), text.encode()).decode()
