"""The text of functions as syntax trees: definitions, the names they read, where parameters are."""

from __future__ import annotations

import ast
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from types import FunctionType
from typing import TypeGuard

from tilewright.frontend.program import FunctionSource
from tilewright.support.errors import SourceNotAvailable, TilewrightError
from tilewright.support.source import Span, function_text, loaded_lines


def text_of(function: FunctionType, lines: list[str] | None = None) -> tuple[str, int]:
    """The source text of a live function and the number of its first line.

    `lines` are those of its file when it was loaded; None reads them now.
    Raises: SourceNotAvailable.
    """
    found = function_text(function, loaded_lines(function) if lines is None else lines)
    if found is None:
        raise SourceNotAvailable(f"Python keeps no source text for `{function.__qualname__}`")
    return found


def lambda_text(function: FunctionType) -> str:
    """A lambda as the text of a definition that returns its value.

    Raises: SourceNotAvailable where the lines of the lambda hold none, or several that differ.
    """
    file, first = function.__code__.co_filename, function.__code__.co_firstlineno
    lines = loaded_lines(function)
    try:
        module = ast.parse("".join(lines), file)
    except SyntaxError:
        module = ast.Module([], [])
    found = {
        ast.unparse(node): node
        for node in ast.walk(module)
        if isinstance(node, ast.Lambda) and node.lineno == first
    }
    if len(found) != 1:
        raise SourceNotAvailable(f"a lambda in line {first} of {file} has no text of its own")
    (node,) = found.values()
    return f"def function({ast.unparse(node.args)}):\n    return {ast.unparse(node.body)}\n"


def parse_function(source: FunctionSource) -> ast.FunctionDef:
    """The AST of a function with line and column numbers as in its file.

    Raises: SourceNotAvailable when the text is not a function definition.
    """
    node = _parse(source.text, source.first_line, source.indent)
    if node is None:
        raise SourceNotAvailable(f"`{source.name}` is not written as an ordinary `def`")
    return node


@lru_cache(maxsize=512)
def _parse(text: str, first_line: int, indent: int) -> ast.FunctionDef | None:
    """The definition that `text` holds; nobody changes the tree."""
    # Text from a nested definition keeps its indentation (columns stay true), so that it needs
    # a statement around it.
    prefix = "if True:\n" if indent else ""
    try:
        module = ast.parse(prefix + text)
    except SyntaxError:
        return None
    outer = module.body[0] if module.body else None
    node = outer.body[0] if isinstance(outer, ast.If) else outer
    if not isinstance(node, ast.FunctionDef):
        return None
    ast.increment_lineno(node, first_line - (2 if prefix else 1))
    return node


def global_chains(node: ast.FunctionDef) -> list[tuple[str, ...]]:
    """The dotted names that the body reads from outside, each once, in order of appearance."""
    nodes = _body_nodes(node)
    local = _local_names(node)
    inner = {id(n.value) for n in nodes if isinstance(n, ast.Attribute)}
    chains = [chain_of(n) for n in nodes if id(n) not in inner]
    chains += [_looked_up(n) for n in nodes]
    found = dict.fromkeys(c for c in chains if c and c[0] not in local)
    return sorted(found)


def looked_up_by_name(node: ast.FunctionDef) -> list[tuple[str, ...]]:
    """The dotted names in which the body looks up members by a computed name, each once."""
    calls = (n for n in _body_nodes(node) if _is_look_up(n))
    chains = (chain_of(n.args[0]) for n in calls if not isinstance(n.args[1], ast.Constant))
    local = _local_names(node)
    return sorted(dict.fromkeys(chain for chain in chains if chain and chain[0] not in local))


def _body_nodes(node: ast.FunctionDef) -> list[ast.AST]:
    return [n for statement in node.body for n in ast.walk(statement)]


def _local_names(node: ast.FunctionDef) -> set[str]:
    """The parameters of a function and the names that it assigns."""
    stored = {
        n.id
        for n in _body_nodes(node)
        if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)
    }
    return stored | {a.arg for a in _arguments(node.args)}


def _is_look_up(node: ast.AST) -> TypeGuard[ast.Call]:
    """Whether a node is a call `getattr(x, name, …)` or `hasattr(x, name)`."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        return False
    return node.func.id in ("getattr", "hasattr") and len(node.args) >= 2


def _looked_up(node: ast.AST) -> tuple[str, ...] | None:
    """`x.name` for `getattr(x, "name")`, as a chain of names."""
    if not _is_look_up(node) or not isinstance(node.args[1], ast.Constant):
        return None
    chain, name = chain_of(node.args[0]), node.args[1].value
    return (*chain, name) if chain and isinstance(name, str) else None


def _arguments(arguments: ast.arguments) -> Iterator[ast.arg]:
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    yield from (a for a in (arguments.vararg, arguments.kwarg) if a is not None)


def chain_of(node: ast.AST) -> tuple[str, ...] | None:
    """The names of `a.b.c`, or None for any other expression."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return (node.id, *reversed(names))


@contextmanager
def located_at_parameters(functions: Mapping[str, FunctionSource], kernel: str) -> Generator[None]:
    """Give an error about an argument of a launch the place of the parameter in the `def`."""
    try:
        yield
    except TilewrightError as error:
        if error.argument is not None and error.span is None:
            _place_at_parameter(error, functions[kernel])
        raise


def _place_at_parameter(error: TilewrightError, source: FunctionSource) -> None:
    parameters = _arguments(parse_function(source).args)
    node = next((p for p in parameters if p.arg == error.argument), None)
    if node is None:
        return
    line = source.text.splitlines()[node.lineno - source.first_line]
    offsets = (node.col_offset, node.end_col_offset or 0)
    start, end = (len(line.encode()[:offset].decode()) for offset in offsets)
    error.span = Span(source.file, node.lineno, start + 1, end + 1, source.name)
    error.source = line
    error.is_about_parameter = True
