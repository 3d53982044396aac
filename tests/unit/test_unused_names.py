"""Code without a caller goes: what no source uses is what tests, documents or programs ask for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import tilewright

SOURCES = Path(tilewright.__file__).parent
REPOSITORY = Path(__file__).parents[2]
CALLED_FROM_OUTSIDE = ("_alias", "language")
"""Rooms whose names are for programs; so are those of `surface.py` beside each family of ops."""
OVERRIDES = frozenset(
    ("parse_parameter", "print_parameter", "parse_parameters", "print_parameters")  # xDSL's
    + ("get_stack",)  # of the debugger of the standard library
    + ("user_defined_post_hook",)  # what Triton's autotuner tells programs
)
"""Methods that others call by the name that they gave them."""


def words_used(tree: ast.AST) -> Iterator[str]:
    """Every name that a file reads, and texts that are one word: they may name something."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from [node.value] if node.value.isidentifier() else ()


def functions_made(tree: ast.AST) -> Iterator[str]:
    """The functions and classes that a file defines and does not hand to a decorator."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("__"):
            decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
            if not any("(" in text or text.startswith("irdl") for text in decorators):
                yield node.name


@cache
def trees() -> dict[Path, ast.Module]:
    """The sources, parsed."""
    found = sorted(SOURCES.rglob("*.py"))
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in found}


@cache
def words_beside() -> frozenset[str]:
    """The words of the tests, benchmarks, examples and documents."""
    paths = [
        path
        for room in ("tests", "benchmarks", "examples", "docs")
        for path in (REPOSITORY / room).rglob("*.*")
        if path.suffix in (".py", ".md") and path != Path(__file__)
    ]
    texts = (path.read_text(encoding="utf-8") for path in paths)
    return frozenset(word for text in texts for word in re.findall(r"\w+", text))


def is_internal(path: Path) -> bool:
    """Whether only our sources call what a file defines."""
    parts = path.relative_to(SOURCES).parts
    return parts[0] not in CALLED_FROM_OUTSIDE and path.stem != "surface"


def unused() -> list[str]:
    """Functions and classes that nobody names."""
    used = {word for tree in trees().values() for word in words_used(tree)}
    known = used | words_beside() | OVERRIDES
    return [
        f"{path.relative_to(SOURCES)}: {name}"
        for path, tree in trees().items()
        if is_internal(path)
        for name in functions_made(tree)
        if name not in known
    ]


def test_everything_that_is_defined_is_used() -> None:
    assert not unused()


def test_a_name_in_a_call_a_text_or_a_keyword_counts_as_used() -> None:
    tree = ast.parse("f(x.g, h=1)\ngetattr(x, 'i')\n'no name'")
    assert {"f", "g", "h", "i"} <= set(words_used(tree))


def test_what_a_decorator_takes_counts_as_used() -> None:
    tree = ast.parse("@rule(Op)\ndef f(): ...\n@property\ndef g(): ...\nclass C: ...")
    assert list(functions_made(tree)) == ["g", "C"]
