"""How often the sources ask for concrete classes of ops, where a facet would serve more ops."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import tilewright

SOURCES = Path(tilewright.__file__).parent
# Where a class is what a function is for: ops, their rules, and the passes named for them.
_OF_ONE_OP = ("rules", "ops", "passes", "tma", "partition", "interpret")
MOST = 54
"""How many there are: lower it with each that goes, never raise it."""


@cache
def facets() -> frozenset[str]:
    """Bases that declare a facet: classes of ops that are no ops themselves."""
    return frozenset(
        node.name
        for path in sorted(SOURCES.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and node.name.endswith("Op") and not _is_an_op(node)
    )


def _is_an_op(node: ast.ClassDef) -> bool:
    """Whether a class is declared as an op, or has an op's name."""
    decorators = [d.id for d in node.decorator_list if isinstance(d, ast.Name)]
    targets = [t for part in node.body if isinstance(part, ast.Assign) for t in part.targets]
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    return "irdl_op_definition" in decorators or "name" in names


def is_of_one_op(path: Path) -> bool:
    """Whether a file is about single ops: their definition, their rules, their passes."""
    parts = path.relative_to(SOURCES).with_suffix("").parts
    return any(part in _OF_ONE_OP or part.endswith("_ops") for part in parts)


def questions(tree: ast.AST) -> Iterator[str]:
    """The op classes that a file asks for, once for each question; assertions ask nothing."""
    asserted = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert)
        for inner in ast.walk(node.test)
    }
    for node in ast.walk(tree):
        if id(node) in asserted or not isinstance(node, ast.Call) or len(node.args) != 2:
            continue
        if isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            names = [n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)]
            names += [n.attr for n in ast.walk(node.args[1]) if isinstance(n, ast.Attribute)]
            asked = [name for name in names if name.endswith("Op") and name not in facets()]
            if asked:
                yield asked[0]


def count_by_file() -> Counter[str]:
    """The questions of each file outside of ops and rules."""
    found: Counter[str] = Counter()
    for path in sorted(SOURCES.rglob("*.py")):
        if not is_of_one_op(path):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found[str(path.relative_to(SOURCES))] = sum(1 for _ in questions(tree))
    return +found


def test_fewer_and_fewer_places_ask_for_concrete_ops() -> None:
    found = count_by_file()
    total = found.total()
    most = "\n".join(f"{count:4} {name}" for name, count in found.most_common(12))
    assert total <= MOST, f"{total} questions for concrete ops, {MOST} before:\n{most}"
    assert total > MOST - 40, f"set MOST to {total}: the ratchet goes with what was won"


def test_what_counts_as_a_question() -> None:
    text = "isinstance(x, LoadOp | StoreOp)\nassert isinstance(x, LoadOp)\nisinstance(x, TileOp)"
    assert list(questions(ast.parse(text))) == ["LoadOp"]
