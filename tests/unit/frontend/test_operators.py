"""What type checkers are told of operators and methods is what kernels have."""

from __future__ import annotations

import ast
from pathlib import Path

from tilewright.language import constexpr, methods, operators, tensor
from tilewright.ops.library import MEMBERS


def declared(name: str) -> set[str]:
    """The names that a class of the two modules declares."""
    texts = (Path(module.__file__).read_text(encoding="utf-8") for module in (operators, methods))
    nodes = (node for text in texts for node in ast.parse(text).body)
    (cls,) = (node for node in nodes if isinstance(node, ast.ClassDef) and node.name == name)
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
    for cls in (operators.Operators, operators.Indexed, methods.Methods):
        assert not declared(cls.__name__) & set(vars(cls))
    assert not hasattr(tensor, "__add__")
    assert not hasattr(tensor, "__index__")
