"""What type checkers are told of operators and methods is what kernels have."""

from __future__ import annotations

import ast
from pathlib import Path

from tilewright.language import constexpr, operators, tensor
from tilewright.ops.library import MEMBERS

TREE = ast.parse(Path(operators.__file__).read_text(encoding="utf-8"))


def declared(name: str) -> set[str]:
    """The names that a class of the module declares."""
    (cls,) = (node for node in TREE.body if isinstance(node, ast.ClassDef) and node.name == name)
    found = set[str]()
    for node in ast.walk(cls):
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            found.add(ast.unparse(node.target))
    return found


def test_the_declared_methods_are_those_of_tiles() -> None:
    assert declared("Methods") == {"T", *MEMBERS}


def test_the_declared_operators_are_those_of_constants() -> None:
    assert declared("Operators") - {"__matmul__"} <= set(vars(constexpr))


def test_nothing_that_is_declared_exists_when_a_program_runs() -> None:
    for name in ("Operators", "Indexed", "Methods"):
        assert not declared(name) & set(vars(getattr(operators, name)))
    assert not hasattr(tensor, "__add__")
    assert not hasattr(tensor, "__index__")
