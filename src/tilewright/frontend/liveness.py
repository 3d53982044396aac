"""Which variables may still be read after each statement of a function.

Branches and loops only merge or carry live variables, so that a temporary may change its type
from one use to the next. Over-approximation is harmless; every set is of names.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from tilewright.support.dataclass import dataclass
from tilewright.support.deep_calls import with_room

Names = frozenset[str]
NONE: Names = frozenset()


@dataclass(frozen=True)
class Liveness:
    """The live names after each statement and at the head of each loop, by `id` of the node."""

    after: dict[int, Names]
    header: dict[int, Names]


@dataclass(frozen=True)
class _Targets:
    """What is live where `break` and `continue` go."""

    leave: Names = NONE
    repeat: Names = NONE


def analyze(function: ast.FunctionDef) -> Liveness:
    """The liveness of the local variables of `function`."""
    result = Liveness({}, {})
    _block(function.body, NONE, _Targets(), result)
    return result


def reads(node: ast.AST | None) -> Names:
    """The names that evaluating `node` may read."""
    return NONE if node is None else frozenset(_names(node, ast.Load))


def assigned(nodes: Iterable[ast.AST]) -> Names:
    """The names that `nodes` may assign, at any depth."""
    return frozenset(name for node in nodes for name in _names(node, ast.Store))


def _names(node: ast.AST, context: type[ast.expr_context]) -> list[str]:
    """The names below `node` in one context; `ast.walk` takes three times as long."""
    found: list[str] = []
    stack: list[ast.AST] = [node]
    while stack:
        current = stack.pop()
        if type(current) is ast.Name:
            if type(current.ctx) is context:
                found.append(current.id)
            continue
        for name in current._fields:
            value = getattr(current, name, None)
            if isinstance(value, ast.AST):
                stack.append(value)
            elif type(value) is list:
                stack.extend(item for item in value if isinstance(item, ast.AST))
    return found


def leaves_loop(statements: Iterable[ast.stmt]) -> bool:
    """Whether the body of a loop may leave it early: a `break` of its own, or any `return`."""
    pending = [(statement, True) for statement in statements]
    while pending:
        node, is_own_loop = pending.pop()
        if isinstance(node, ast.Return) or (isinstance(node, ast.Break) and is_own_loop):
            return True
        is_own_loop = is_own_loop and not isinstance(node, ast.For | ast.While)
        children = (child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt))
        pending += ((child, is_own_loop) for child in children)
    return False


def _block(body: Sequence[ast.stmt], after: Names, targets: _Targets, result: Liveness) -> Names:
    """The names live before `body`, given those live after it."""
    live = after
    for statement in reversed(body):
        result.after[id(statement)] = live
        live = _statement(statement, live, targets, result)
    return live


def _statement(node: ast.stmt, after: Names, targets: _Targets, result: Liveness) -> Names:
    match node:
        case ast.Return():
            return reads(node.value)
        case ast.Break():
            return targets.leave
        case ast.Continue():
            return targets.repeat
        case ast.If():
            branches = _block(node.body, after, targets, result)
            # An `elif` is an `if` in the `else` of another: there may be many.
            other = with_room(lambda: _block(node.orelse, after, targets, result))
            return branches | other | reads(node.test)
        case ast.For() | ast.While():
            return _loop(node, after, result)
        case ast.With():
            return _block(node.body, after, targets, result) | reads(node)
        case ast.AugAssign():
            return after | reads(node.value) | assigned([node.target])
        case _:
            return (after - assigned([node])) | reads(node)


def _loop(node: ast.For | ast.While, after: Names, result: Liveness) -> Names:
    """Iterate to the fixed point: what the head needs flows around the loop."""
    if isinstance(node, ast.For):
        own, once, test = assigned([node.target]), reads(node.iter), NONE
    else:
        own, once, test = NONE, NONE, reads(node.test)
    # A loop around this one comes here again with more names, and the same ones stay live.
    header = after | test | result.header.get(id(node), NONE)
    while True:
        targets = _Targets(leave=after, repeat=header)
        grown = header | (_block(node.body, header, targets, result) - own)
        if grown == header:
            break
        header = grown
    result.header[id(node)] = header
    return header | once
