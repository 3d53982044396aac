"""Shrinking a failing program: delete statements, empty blocks, shrink sizes, keep the failure."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

from tests.fuzz.program import Assign, Effect, Nested, Node, Program

Fails = Callable[[Program], bool]


class Reducer:
    """Makes a program smaller as long as `fails` says that it still fails.

    `budget` is how often `fails` may be asked.
    """

    def __init__(self, program: Program, fails: Fails, budget: int) -> None:
        self.best = program
        self.fails = fails
        self.budget = budget

    def run(self) -> Program:
        """The smallest program found."""
        is_smaller = True
        while is_smaller and self.budget > 0:
            is_smaller = self.remove_runs()
            is_smaller |= self.try_all(_smaller_sizes)
            is_smaller |= self.try_all(_smaller_statements)
        return self.best

    def accept(self, candidate: Program) -> bool:
        """Whether the candidate fails too; then it is the best so far."""
        if self.budget <= 0:
            return False
        self.budget -= 1
        if not self.fails(candidate):
            return False
        self.best = candidate
        return True

    def remove_runs(self) -> bool:
        """Remove runs of statements, long ones first, or make constants of what they define."""
        size, is_smaller = len(self.best.body), False
        while size > 0:
            start = 0
            while start < len(self.best.body):
                if self.remove(start, size):
                    is_smaller = True
                else:
                    start += size
            size //= 2
        return is_smaller

    def remove(self, start: int, size: int) -> bool:
        """Try to do without the statements [start, start + size)."""
        body = list(self.best.body)
        run = body[start : start + size]
        if self.accept(self.best.with_body(body[:start] + body[start + size :])):
            return True
        constants = [_neutral(node) or node for node in run if isinstance(node, Assign)]
        constants = [node for node in constants if _is_constant(node)]
        if constants == run:
            return False
        return self.accept(self.best.with_body(body[:start] + constants + body[start + size :]))

    def try_all(self, candidates: Callable[[Program], Iterator[Program]]) -> bool:
        """Try candidates one after another, each a change of the best so far."""
        is_smaller, skip = False, 0
        while self.budget > 0:
            candidate = next(islice(candidates(self.best), skip, None), None)
            if candidate is None:
                break
            if self.accept(candidate):
                is_smaller = True
            else:
                skip += 1
        return is_smaller


def reduce(program: Program, fails: Fails, budget: int = 300) -> Program:
    """The smallest program found that still fails; `fails` is called at most `budget` times."""
    return Reducer(program, fails, budget).run()


def _smaller_statements(program: Program) -> Iterator[Program]:
    body = list(program.body)
    for path in _paths(body):
        for change in (_delete, _flatten):
            changed = _changed(body, path, change)
            if changed is not None:
                yield program.with_body(changed)
    for path in _paths(body):
        for number in range(len(_simpler(_at(body, path)))):
            changed = _changed(body, path, lambda node, n=number: [_simpler(node)[n]])
            assert changed is not None
            yield program.with_body(changed)


def _is_constant(node: Node) -> bool:
    return isinstance(node, Assign) and node.kind is not None and node.text == node.kind.one()


def _smaller_sizes(program: Program) -> Iterator[Program]:
    if program.grid > 1:
        yield replace(program, grid=1)
    if program.rows > 1:
        yield replace(program, rows=program.rows // 2)
    if program.columns > 1:
        yield replace(program, columns=program.columns // 2)


def _paths(body: list[Node], prefix: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Every statement, the last first: position, and for nested ones (block, position)."""
    for position in reversed(range(len(body))):
        node = body[position]
        yield (*prefix, position)
        if isinstance(node, Nested):
            for block, statements in enumerate((node.body, node.orelse)):
                yield from _paths(statements, (*prefix, position, block))


def _at(body: list[Node], path: tuple[int, ...]) -> Node:
    """The statement at a path."""
    node = body[path[0]]
    for block, position in zip(path[1::2], path[2::2], strict=True):
        assert isinstance(node, Nested)
        node = (node.body, node.orelse)[block][position]
    return node


def _changed(
    body: list[Node], path: tuple[int, ...], change: Callable[[Node], list[Node] | None]
) -> list[Node] | None:
    """A copy of the body with the statement at `path` replaced, or None for no change."""
    result = copy.deepcopy(body)
    statements = result
    for step in range(0, len(path) - 1, 2):
        node = statements[path[step]]
        assert isinstance(node, Nested)
        statements = (node.body, node.orelse)[path[step + 1]]
    new = change(statements[path[-1]])
    if new is None:
        return None
    statements[path[-1] : path[-1] + 1] = new
    return result


def _delete(node: Node) -> list[Node] | None:
    """Without the statement; a definition that others may need becomes a constant."""
    if _counts(node):
        return None
    neutral = _neutral(node)
    if neutral is None:
        return []
    return [neutral]


def _counts(node: Node) -> bool:
    """Whether a statement brings a `while` nearer to its end."""
    return isinstance(node, Effect) and re.fullmatch(r"(w\d+) = \1 \+ 1", node.text) is not None


def _neutral(node: Node) -> Node | None:
    """The definition with a constant for its value; None for what can go or is constant."""
    if isinstance(node, Assign) and node.kind is not None and node.text != node.kind.one():
        return Assign(node.name, node.kind.one(), node.kind)
    return None


def _flatten(node: Node) -> list[Node] | None:
    """The body of a branch in place of the branch."""
    if isinstance(node, Nested) and node.header.startswith("if "):
        return node.body
    return None


def _simpler(node: Node) -> list[Node]:
    """The statement with one expression in it replaced by a part of that expression."""
    text = node.header + " pass" if isinstance(node, Nested) else node.text
    if _counts(node) or (isinstance(node, Nested) and not text.startswith("if ")):
        return []
    tree = ast.parse(text)
    found = []
    for number, outer in enumerate(ast.walk(tree)):
        for part in _parts(outer):
            copied = _Replace(number, part, copy.deepcopy(tree)).text()
            if isinstance(node, Nested):
                header = copied.partition(":\n")[0] + ":"
                found.append(Nested(header, node.body, node.orelse))
            else:
                found.append(replace(node, text=copied))
    return found


def _parts(outer: ast.AST) -> list[ast.expr]:
    """What may stand for an expression: an operand, an argument, the call without keywords."""
    if isinstance(outer, ast.BinOp):
        return [outer.left, outer.right]
    if isinstance(outer, ast.UnaryOp):
        return [outer.operand]
    if isinstance(outer, ast.Call):
        plain = ast.Call(outer.func, outer.args, [])
        shorter: list[ast.expr] = [plain] if outer.keywords else []
        inner = outer.func.value if isinstance(outer.func, ast.Attribute) else None
        is_method = inner is not None and not isinstance(inner, ast.Name)
        return [*shorter, *outer.args, *([inner] if is_method and inner is not None else [])]
    return []


class _Replace(ast.NodeTransformer):
    """Puts `part` in the place of the expression that comes `number`-th in `ast.walk`."""

    def __init__(self, number: int, part: ast.expr, tree: ast.AST) -> None:
        self.target = next(islice(ast.walk(tree), number, None))
        self.part = part
        self.tree = tree

    def visit(self, node: ast.AST) -> ast.AST:
        """The part for the target, all else as it is."""
        return self.part if node is self.target else super().visit(node)

    def text(self) -> str:
        """The changed statement as source."""
        return ast.unparse(self.visit(self.tree))
