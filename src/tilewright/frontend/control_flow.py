"""Blocks, `if`, and leaving them early: `return`, `break` and `continue`.

Structured IR has no jumps. A branch that surely leaves pushes the rest of its block into the
other branch, which costs nothing. Where only some paths of a branch leave, a flag (`%return`,
`%break`, `%continue`) tells at run time, and the rest is guarded by it; a flag that is known at
compile time emits no op.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from xdsl.ir import Block, Region

from tilewright.frontend.frame import FALLS, LEAVES, Exit, Frame
from tilewright.frontend.lanes import is_divergent, off_path, on_path, splice, spread
from tilewright.frontend.liveness import NONE, Names
from tilewright.frontend.lowering_state import Scope
from tilewright.frontend.phi import Mismatch, fill, join, materialize, stand_in
from tilewright.frontend.values import is_constant, plain, type_text
from tilewright.language.core import constexpr, int1, tensor
from tilewright.ops.builder import ir_type, ssa
from tilewright.ops.casting import convert
from tilewright.ops.control_flow import IfOp, YieldOp
from tilewright.ops.creation.ir import constant_of
from tilewright.ops.creation.surface import item
from tilewright.ops.elementwise.logical import logical_not
from tilewright.ops.elementwise.operators import binary
from tilewright.ops.elementwise.surface import select
from tilewright.support.dataclass import dataclass
from tilewright.support.deep_calls import with_room
from tilewright.support.errors import (
    BranchTypeMismatch,
    ConditionNotBoolean,
    ConditionNotScalar,
    ReturnTypeMismatch,
    TilewrightError,
)
from tilewright.support.source import Span

RETURN, BREAK, CONTINUE, VALUE = "%return", "%break", "%continue", "%value"
FLAGS = (RETURN, BREAK, CONTINUE)
NOT_SET, SET = constexpr(False), constexpr(True)
# Why a name was lost on a path on which nothing reads it: any value may stand in there.
DEAD = "it is assigned in a branch and not read after it"


@dataclass
class Branch:
    """One lowered path: its block, the variables at its end, and how it ends."""

    block: Block
    scope: Scope
    exit: Exit

    @property
    def variables(self) -> dict[str, object]:
        """The variables at its end."""
        return self.scope.variables

    @property
    def has_returned(self) -> bool:
        """Whether every path through it returned, so that nothing reads its variables."""
        return is_set(self.variables.get(RETURN))


def is_set(flag: object) -> bool:
    """Whether a flag is known to be set."""
    return isinstance(flag, constexpr) and bool(flag.value)


def may_be_set(flag: object) -> bool:
    """Whether a flag is set on some path."""
    return flag is not None and not (isinstance(flag, constexpr) and not flag.value)


def lower_block(frame: Frame, statements: Sequence[ast.stmt]) -> Exit:
    """Lower statements in order, each only where no earlier one left the block."""
    exit_ = with_room(lambda: _lower_statements(frame, statements))
    possible = [flag for flag in FLAGS if may_be_set(frame.variables.get(flag))]
    if exit_.leaves and len(possible) == 1:
        frame.variables[possible[0]] = SET  # all paths leave in the one way that there is
    return exit_


def _lower_statements(frame: Frame, statements: Sequence[ast.stmt]) -> Exit:
    for index, statement in enumerate(statements):
        flag = pending(frame)
        if flag is not None:
            rest = statements[index:]
            live = frame.code.liveness.after[id(rest[-1])]
            return lower_guarded(frame, statement, flag, lambda: lower_block(frame, rest), live)  # noqa: B023 - called at once
        if isinstance(statement, ast.If):
            exit_, is_done = _lower_if(frame, statement, statements[index + 1 :])
            if is_done:
                return exit_
        else:
            exit_ = frame.execute(statement)
        if exit_.leaves:
            return LEAVES
    return FALLS


def pending(frame: Frame) -> tensor | None:
    """Whether control already left the block, where only run time knows."""
    flags = [f for f in map(frame.variables.get, FLAGS) if isinstance(f, tensor)]
    if not flags:
        return None
    result = flags[0]
    for flag in flags[1:]:
        result = binary(frame.builder, "BitOr", result, flag)
    return result


def lower_guarded(
    frame: Frame, node: ast.AST, flag: tensor, body: Callable[[], Exit], live: Names
) -> Exit:
    """Run `body` only where `flag` is not set."""
    goes_on = logical_not(frame.at(node), flag)
    block = Block()
    with frame.on_path(on_path(frame.builder, goes_on)), frame.branch(block) as scope:
        for name in FLAGS:
            if isinstance(frame.variables.get(name), tensor):
                frame.variables[name] = NOT_SET
        then = Branch(block, scope, body())
    other = Branch(Block(), frame.scope.copy(), LEAVES)
    _merge(frame, node, goes_on, then, other, live)
    return then.exit


def condition(frame: Frame, node: ast.expr) -> bool | tensor:
    """The value of a test: known now, or a scalar int1 at run time.

    Raises: ConditionNotScalar, ConditionNotBoolean.
    """
    return truth(frame, node, frame.evaluate(node))


def truth(frame: Frame, node: ast.expr, value: object) -> bool | tensor:
    """Whether `value` holds: known now, or a scalar int1 at run time."""
    if isinstance(value, tensor):
        return _runtime_truth(frame, node, value)
    if is_constant(value):
        known = plain(value)
        if known is None or isinstance(known, bool | int | float | str | tuple):
            return bool(known)
    raise ConditionNotBoolean(
        f"{type_text(value)} has no truth value",
        span=frame.span(node),
        source=frame.code.line(node.lineno),
    )


def _runtime_truth(frame: Frame, node: ast.expr, value: tensor) -> tensor:
    b = frame.at(node)
    if value.static_shape and not is_divergent(b, value):
        if any(extent != 1 for extent in value.static_shape):
            raise ConditionNotScalar(
                f"the condition is a {value.type}, which has no single truth value",
                span=frame.span(node),
                source=frame.code.line(node.lineno),
            )
        value = item(b, value)
    return value if value.dtype.is_bool() else convert(b, value, int1)


def lower_branch(frame: Frame, statements: Sequence[ast.stmt], lanes: tensor | None) -> Branch:
    """Lower statements into a block of their own, starting from the current variables."""
    block = Block()
    with frame.on_path(lanes), frame.branch(block) as scope:
        return Branch(block, scope, lower_block(frame, statements))


def _lower_if(frame: Frame, node: ast.If, rest: Sequence[ast.stmt]) -> tuple[Exit, bool]:
    """Lower an `if`; the second result says that `rest` was lowered too."""
    test = _known(condition(frame, node.test))
    if isinstance(test, bool):
        return lower_block(frame, node.body if test else node.orelse), False
    b = frame.at(node)
    here, elsewhere = on_path(b, test), off_path(b, test)
    then = lower_branch(frame, node.body, here)
    is_done = False
    if then.exit.leaves:
        other, is_done = lower_branch(frame, [*node.orelse, *rest], elsewhere), True
    else:
        other = lower_branch(frame, node.orelse, elsewhere)
        if other.exit.leaves and rest:
            is_done = True
            with frame.on_path(here), frame.branch(then.block, then.scope):
                then = Branch(then.block, then.scope, lower_block(frame, rest))
    last = rest[-1] if is_done and rest else node
    try:
        _merge(frame, node, test, then, other, frame.code.liveness.after[id(last)])
    except TilewrightError as error:
        frame.place(error, node)
        raise
    return Exit(then.exit.leaves and other.exit.leaves), is_done


def _known(test: bool | tensor) -> bool | tensor:
    """The truth of a condition that is a constant of the IR, as functions return constexprs.

    A combine function with a branch that is never taken would keep a reduction from vectors.
    """
    if isinstance(test, bool):
        return test
    known = constant_of(ssa(test))
    return test if known is None else bool(known)


def _merge(
    frame: Frame, node: ast.AST, test: tensor, then: Branch, other: Branch, live: Names
) -> None:
    """Emit the branching op and bind every live variable to what both branches agree on."""
    trees, pairs = _join_variables(frame, node, then, other, live)
    left = side_values(frame, node, then.block, [a for a, _ in pairs])
    right = side_values(frame, node, other.block, [b_ for _, b_ in pairs])
    names = _names_of_pairs(trees, len(pairs))
    for name, x, y in zip(names, left, right, strict=True):
        if x.type != y.type:
            raise _type_error(frame, name, (x, y), then, other)
    results = emit_branch(frame, node, test, (then.block, left), (other.block, right))
    for name, tree in trees.items():
        frame.variables[name] = fill(tree, results.__getitem__)
        lines = (branch.scope.assigned_at.get(name, 0) for branch in (then, other))
        frame.scope.assigned_at[name] = max(lines)


def side_values(
    frame: Frame, node: ast.AST, block: Block, leaves: Sequence[object]
) -> list[tensor]:
    """The leaves of one side as runtime values, made at the end of its block."""
    b = frame.at(node)
    with b.inside(block):
        return [spread(b, materialize(b, leaf)) for leaf in leaves]


def emit_branch(
    frame: Frame,
    node: ast.AST,
    test: tensor,
    then: tuple[Block, Sequence[tensor]],
    other: tuple[Block, Sequence[tensor]],
) -> list[tensor]:
    """What a branch gives of two sides, each a block with the values that it gives."""
    b = frame.at(node)
    if is_divergent(b, test):
        for block, _ in (then, other):
            splice(b, block)
        return [select(b, test, x, y) for x, y in zip(then[1], other[1], strict=True)]
    for block, values in (then, other):
        with b.inside(block):
            b.emit(YieldOp, [ssa(value) for value in values])
    types = [ir_type(x.type) for x in then[1]]
    regions = [Region(then[0]), Region(other[0])]
    op = b.emit(IfOp, [ssa(test)], types, None, regions)
    return [tensor(r, x.type) for r, x in zip(op.results, then[1], strict=True)]


def _names_of_pairs(trees: dict[str, object], count: int) -> list[str]:
    """The variable that each pair belongs to."""
    names = [""] * count
    for name, tree in trees.items():
        fill(tree, lambda index, name=name: names.__setitem__(index, name))
    return names


def _join_variables(
    frame: Frame, node: ast.AST, then: Branch, other: Branch, live: Names
) -> tuple[dict[str, object], list[tuple[object, object]]]:
    """The trees of all variables after the branches, and the pairs of leaves that differ."""
    trees: dict[str, object] = {}
    pairs: list[tuple[object, object]] = []
    live = live | _live_at_jumps(frame, then) | _live_at_jumps(frame, other)
    for name in dict.fromkeys((*then.variables, *other.variables)):
        a, b = then.variables.get(name), other.variables.get(name)
        if a is b:
            frame.variables[name] = a
            continue
        if name.startswith("%"):
            a, b = _internal_pair(name, a, b)
        elif name not in live or (then.has_returned and other.has_returned):
            frame.lose(name, DEAD)
            continue
        elif then.has_returned or then.scope.lost.get(name) == DEAD:
            a = stand_in(b, a)
        elif other.has_returned or other.scope.lost.get(name) == DEAD:
            b = stand_in(a, b)
        if a is None and b is None:
            reading = other if then.has_returned else then
            frame.lose(name, reading.scope.lost.get(name, DEAD))
            continue
        if a is None or b is None:
            _lose_one_sided(frame, node, name, a is None, then, other)
            continue
        try:
            trees[name] = join(a, b, pairs)
        except Mismatch as mismatch:
            sides = (mismatch.left, mismatch.right)
            raise _type_error(frame, name, sides, then, other) from None
    return trees, pairs


def _live_at_jumps(frame: Frame, branch: Branch) -> Names:
    """What a branch passes on when it leaves by `break` or `continue`."""
    jumps = any(may_be_set(branch.variables.get(flag)) for flag in (BREAK, CONTINUE))
    return frame.loop.carried if jumps and frame.loop is not None else NONE


def _internal_pair(name: str, a: object, b: object) -> tuple[object, object]:
    """The two sides of a flag or of the returned value where one side did not set it."""
    if name in FLAGS:
        return NOT_SET if a is None else a, NOT_SET if b is None else b
    return (
        stand_in(b) if a is None else a,
        stand_in(a) if b is None else b,
    )


def _lose_one_sided(
    frame: Frame, node: ast.AST, name: str, is_then: bool, then: Branch, other: Branch
) -> None:
    missing, present = (then, other) if is_then else (other, then)
    if present.exit.leaves:  # then control never comes here with a value: the other side decides
        reason = missing.scope.lost.get(name, "it was never assigned on this path")
    else:
        line = present.scope.assigned_at.get(name, 0)
        start = getattr(node, "lineno", 0)
        reason = missing.scope.lost.get(name) or (
            f"only the branch at line {line} of the `if` at line {start} assigns it"
        )
    frame.lose(name, reason)


def _type_error(
    frame: Frame, name: str, sides: tuple[object, object], then: Branch, other: Branch
) -> BranchTypeMismatch | ReturnTypeMismatch:
    a, b = sides
    lines = [branch.scope.assigned_at.get(name, 0) for branch in (then, other)]
    if name == VALUE:
        return ReturnTypeMismatch(
            f"the `return` at line {lines[0]} gives {type_text(a)}, "
            f"the one at line {lines[1]} gives {type_text(b)}",
            hint="return one type on every path, for example with .to(dtype)",
            span=_return_span(frame, max(lines)),
            source=frame.code.line(max(lines)),
            known_as=f"Inconsistent return types: {type_text(a)} and {type_text(b)}",
        )
    texts = [
        f"{type_text(value)} (line {line})" if line else type_text(value)
        for value, line in zip((a, b), lines, strict=True)
    ]
    return BranchTypeMismatch(
        f"`{name}` is {texts[0]} after one branch and {texts[1]} after the other",
        known_as=f"Mismatched type for {name} between then block ({type_text(a)}) "
        f"and else block ({type_text(b)})",
    )


def _return_span(frame: Frame, line: int) -> Span | None:
    """The place of the `return` in a line; None where the line is not known."""
    nodes = (node for node in ast.walk(frame.code.node) if isinstance(node, ast.Return))
    return next((frame.span(node) for node in nodes if node.lineno == line), None)
