"""The Python constructs that kernels do not have, each with what to write in its place."""

from __future__ import annotations

import ast

from tilewright.support.errors import UnsupportedConstruct

# Syntax class -> (what it is called, what to do).
_REJECTED: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lambda: ("a lambda", "define a function with @tilewright.jit"),
    ast.FunctionDef: ("nested functions", "define it outside, with @tilewright.jit"),
    ast.AsyncFunctionDef: ("an async function", "kernels run to their end without waiting"),
    ast.ClassDef: ("nested classes", "define a NamedTuple class outside"),
    ast.Try: ("try", "test the condition with `if`, or use tl.device_assert"),
    ast.TryStar: ("try", "test the condition with `if`, or use tl.device_assert"),
    ast.Raise: ("raise", "use tl.static_assert or tl.device_assert"),
    ast.Import: ("import", "import the module at the top of the file"),
    ast.ImportFrom: ("import", "import the module at the top of the file"),
    ast.Delete: ("del", "leave it out: values are dropped when nothing reads them"),
    ast.Dict: ("a dictionary", "use a tuple or a NamedTuple"),
    ast.DictComp: ("a dictionary", "use a tuple or a NamedTuple"),
    ast.Set: ("a set", "use a tuple"),
    ast.SetComp: ("a set", "use a tuple"),
    ast.GeneratorExp: ("a generator", "write a list comprehension over a tuple"),
    ast.Yield: ("yield", "store results through pointers, or return them"),
    ast.YieldFrom: ("yield", "store results through pointers, or return them"),
    ast.Await: ("await", "kernels run to their end without waiting"),
    ast.AsyncFor: ("async for", "use `for`"),
    ast.AsyncWith: ("async with", "leave it out"),
    ast.Global: ("global", "pass the value as an argument"),
    ast.Nonlocal: ("nonlocal", "pass the value as an argument and return the new one"),
    ast.Match: ("match", "use `if` and `elif`"),
    ast.With: (
        "with",
        "leave it out: kernels have tl.stage and tl.async_task only",
    ),
    ast.Starred: ("a starred expression", "name each element"),
    ast.MatMult: ("the operator @", "use tl.dot(a, b)"),
    ast.In: ("the operator in", "compare with == and combine with `or`"),
    ast.NotIn: ("the operator not in", "compare with != and combine with `and`"),
}


def reject(node: ast.AST) -> UnsupportedConstruct:
    """The error for a construct that no rule lowers."""
    what, remedy = _REJECTED.get(
        type(node), (f"the construct {type(node).__name__}", "use the subset of the language")
    )
    return UnsupportedConstruct(f"kernels do not have {what}", hint=remedy)


def reject_as(what: str, remedy: str) -> UnsupportedConstruct:
    """The error for a particular form of a construct that otherwise exists."""
    return UnsupportedConstruct(f"kernels do not have {what}", hint=remedy)


def starred_target() -> UnsupportedConstruct:
    """The error for `a, *rest = values`."""
    return UnsupportedConstruct(
        "kernels do not have starred targets: starred assignment targets are not supported",
        hint="name each element",
    )
