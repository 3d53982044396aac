"""Every number that a cost, a threshold or a limit is made of says where it comes from."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

import pytest

import tilewright

SOURCES = Path(tilewright.__file__).parent
ROOMS = ("schedule", "targets")
"""Where decisions are taken by cost; `machine/` is data, with its sources at the top."""
GIVEN = re.compile(
    r"Measured on [^.]+?, \d{4}-\d{2}-\d{2}"  # a machine and a day
    r"|Source: \S+"  # a document
    r"|Chosen, not measured: \S+ \S+ \S+"  # and why that is safe
    r"|By definition: \S+ \S+"  # a format, an encoding: no choice at all
)
# Names of bit patterns, positions and the like in tables: structures, which tests compare.
_TABLES = ("_FIELDS",)


def is_number(value: ast.expr) -> bool:
    """Whether an expression is made of numbers alone, a mapping of numbers by anything."""
    if isinstance(value, ast.Dict):
        return bool(value.values) and all(map(is_number, value.values))
    if isinstance(value, ast.Tuple | ast.List):
        return bool(value.elts) and all(map(is_number, value.elts))
    if isinstance(value, ast.BinOp):
        return is_number(value.left) and is_number(value.right)
    if isinstance(value, ast.UnaryOp):
        return is_number(value.operand)
    return isinstance(value, ast.Constant) and type(value.value) in (int, float)


def is_class_with_limits(node: ast.AST) -> TypeGuard[ast.ClassDef]:
    """Whether a node is a class whose names in capitals are numbers for their own sake."""
    if not isinstance(node, ast.ClassDef):
        return False
    return not any(ast.unparse(base).endswith("Enum") for base in node.bases)


def numbers_of(tree: ast.Module) -> Iterator[tuple[str, ast.Assign | ast.AnnAssign]]:
    """The assignments of numbers to names of a module, and of a class to names in capitals."""
    bodies: list[tuple[list[ast.stmt], bool]] = [(tree.body, True)]
    bodies += [(n.body, False) for n in ast.walk(tree) if is_class_with_limits(n)]
    for body, of_module in bodies:
        for node in body:
            if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
            if not is_number(node.value) or not names or names[0].endswith(_TABLES):
                continue
            if of_module or names[0].isupper():
                yield ", ".join(names), node


def comments_of(text: str) -> dict[int, str]:
    """The comments of a text by line."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {t.start[0]: t.string for t in tokens if t.type == tokenize.COMMENT}


def unsourced(text: str) -> list[str]:
    """The names of numbers of a module beside which nothing says where they come from.

    A run of assignments without an empty line shares the comment above it.
    """
    tree, lines, comments = ast.parse(text), text.splitlines(), comments_of(text)
    after = dict(zip(tree.body, tree.body[1:], strict=False))
    missing: list[str] = []
    for names, node in numbers_of(tree):
        first = node.lineno
        while first > 1 and lines[first - 2].strip():
            first -= 1
        end = node.end_lineno or node.lineno
        said = [comments[i].lstrip("# ") for i in range(first, end + 1) if i in comments]
        doc = after.get(node)
        if isinstance(doc, ast.Expr) and isinstance(doc.value, ast.Constant):
            said.append(str(doc.value.value))
        if not GIVEN.search(" ".join(" ".join(said).split())):
            missing.append(names)
    return missing


def modules() -> list[Path]:
    return sorted(path for room in ROOMS for path in (SOURCES / room).rglob("*.py"))


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCES)))
def test_a_number_says_where_it_comes_from(path: Path) -> None:
    assert not unsourced(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "text",
    [
        "A = 3",
        "A: int = 1 << 4",
        "# As large as needed.\nA = 3",
        "# Measured.\nA = 3",
        "# Measured on an H200.\nA = 3",
        "# Chosen, not measured.\nA = 3",
        "# Source: here\n\nA = 3",
        "# Source: the other one.\n\n# Why.\nA = 3",
        'A = 3\nB = "x"\n"""Source: of another name."""',
        "A = {'x': 3}",
        "class C:\n    LIMIT = 3",
        'A = "# Source: a text."\n\nB = 3',
    ],
)
def test_a_number_without_a_source_is_found(text: str) -> None:
    assert unsourced(text)


@pytest.mark.parametrize(
    "text",
    [
        "# Measured on an H200, 2026-11-21: 3 is fastest.\nA = 3",
        "# Chosen, not measured: any value is right.\nA = 3\nB = 4",
        'A = 3\n"""A limit.\n\nSource: PTX ISA 8.8, 9.7."""',
        "A = OTHER * 2",
        "RING_FIELDS = {'x': 0}",
        "WORDS = {2: 'half'}",
        "class Order(IntEnum):\n    LATER = 3",
        "class C:\n    count: int = 3",
    ],
)
def test_a_number_with_a_source_is_fine(text: str) -> None:
    assert not unsourced(text)
