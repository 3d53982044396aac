"""Operators of tiles called by the names of their methods: `x.__lshift__(4)` is `x << 4`."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from tilewright.frontend.expressions import apply_binary, apply_comparison, apply_unary
from tilewright.frontend.frame import Frame
from tilewright.frontend.values import OperatorMethod
from tilewright.support.errors import MissingArgument, UnexpectedArgument


def call_operator(
    frame: Frame,
    node: ast.AST,
    method: OperatorMethod,
    positional: Sequence[object],
    keywords: Mapping[str, object],
) -> object:
    """The value of the operator that `method` names, on its tile and the argument.

    Raises: MissingArgument, UnexpectedArgument.
    """
    count = 0 if issubclass(method.operator, ast.unaryop) else 1
    takes = "one argument" if count else "no argument"
    if keywords:
        raise UnexpectedArgument(f"`{method.name}` takes no argument by name: `{min(keywords)}`")
    if len(positional) > count:
        raise UnexpectedArgument(f"`{method.name}` takes {takes}, {len(positional)} are given")
    if len(positional) < count:
        raise MissingArgument(f"`{method.name}` takes {takes}, none is given")
    operator = method.operator()
    if isinstance(operator, ast.unaryop):
        return apply_unary(frame, node, operator, method.receiver)
    lhs, rhs = method.receiver, positional[0]
    if method.is_reflected:
        lhs, rhs = rhs, lhs
    if isinstance(operator, ast.cmpop):
        return apply_comparison(frame, node, operator, lhs, rhs)
    return apply_binary(frame, node, operator, lhs, rhs)
