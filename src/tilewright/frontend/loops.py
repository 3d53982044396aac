"""Loops: `for` over ranges, `while`, and unrolled loops.

A variable is carried when the body may assign it, it has a value before the loop, and it is
read later (`carrying`). The body is lowered again when it changes what was thought constant.

    for i in range(n):          scf.for  %i … iter_args(x)
    for … with break/return:    scf.while (i, %break, x) { i < n and not %break } do { … }
    while test:                 scf.while (x) { test } do { … }
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from xdsl.dialects import scf
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.traits import is_side_effect_free

from tilewright.frontend.carrying import Carry
from tilewright.frontend.cleanup import discard
from tilewright.frontend.control_flow import (
    BREAK,
    CONTINUE,
    RETURN,
    SET,
    condition,
    is_set,
    lower_block,
    lower_guarded,
)
from tilewright.frontend.frame import FALLS, LEAVES, STATEMENTS, Exit, Frame, LoopContext
from tilewright.frontend.iteration import LoopRange, ValueRange, evaluate_iterator, loop_condition
from tilewright.frontend.liveness import assigned, leaves_loop
from tilewright.frontend.subset import reject_as
from tilewright.language.core import int1, tensor
from tilewright.ops.builder import ir_type
from tilewright.ops.operators import binary, logical_not


@STATEMENTS.register(ast.For)
def _for(frame: Frame, node: ast.For) -> Exit:
    if node.orelse:
        raise reject_as("`else` after a loop", "set a variable in the loop and test it")
    if not isinstance(node.target, ast.Name):
        raise reject_as("a loop over several targets", "write one name after `for`")
    iterator = evaluate_iterator(frame, node.iter)
    outer, frame.loop = frame.loop, LoopContext(frame.code.liveness.header[id(node)])
    try:
        if isinstance(iterator, ValueRange):
            return _unrolled(frame, node, node.target.id, iterator.values)
        return _runtime_for(frame, node, node.target.id, iterator)
    finally:
        frame.loop = outer


@STATEMENTS.register(ast.While)
def _while(frame: Frame, node: ast.While) -> Exit:
    if node.orelse:
        raise reject_as("`else` after a loop", "set a variable in the loop and test it")
    test, hints = loop_condition(frame, node.test)
    outer, frame.loop = frame.loop, LoopContext(frame.code.liveness.header[id(node)])
    try:
        carry = Carry(frame, node, assigned([*node.body, node.test]))
        return _lower_while(frame, node, _Tested(test), carry, hints)
    finally:
        frame.loop = outer


def _unrolled(frame: Frame, node: ast.For, name: str, values: Sequence[object]) -> Exit:
    """Lower the body once for each value; a `break` known at compile time ends it."""
    _unroll_from(frame, node, name, values)
    frame.variables.pop(BREAK, None)
    return LEAVES if is_set(frame.variables.get(RETURN)) else FALLS


def _unroll_from(frame: Frame, node: ast.For, name: str, values: Sequence[object]) -> Exit:
    for index, value in enumerate(values):
        flag = _may_have_left(frame)
        if flag is not None:
            rest = values[index:]
            live = frame.code.liveness.header[id(node)]
            lower_guarded(frame, node, flag, lambda: _unroll_from(frame, node, name, rest), live)  # noqa: B023 - called at once
            return FALLS
        frame.assign(name, value, node)
        lower_block(frame, node.body)
        frame.variables.pop(CONTINUE, None)
        if any(is_set(frame.variables.get(f)) for f in (BREAK, RETURN)):
            return LEAVES
    return FALLS


def _may_have_left(frame: Frame) -> tensor | None:
    """Whether the loop was left, where only run time knows."""
    flags = [f for f in map(frame.variables.get, (BREAK, RETURN)) if isinstance(f, tensor)]
    if len(flags) < 2:
        return flags[0] if flags else None
    return binary(frame.builder, "BitOr", *flags)


def _runtime_for(frame: Frame, node: ast.For, name: str, bounds: LoopRange) -> Exit:
    """Lower to scf.for, or to scf.while where the body may leave the loop at run time."""
    carry = Carry(frame, node, assigned(node.body) - {name})
    if leaves_loop(node.body) and _leaves_at_run_time(frame, node, name, bounds, carry):
        counted = _Counted(node, name, bounds)
        exit_ = _lower_while(frame, node, counted, carry, bounds.hints)
    else:
        exit_ = _lower_for(frame, node, name, bounds, carry)
    frame.lose(name, f"it is the variable of the loop at line {node.lineno}")
    return exit_


def _leaves_at_run_time(
    frame: Frame, node: ast.For, name: str, bounds: LoopRange, carry: Carry
) -> bool:
    """Whether a `break` or `return` remains once constant conditions are decided."""
    messages = len(frame.lowering.messages)
    while (done := _for_body(frame, node, name, bounds, carry)) is None and not carry.ends_early:
        pass
    if done is not None:
        discard(done[0])
    del frame.lowering.messages[messages:]
    return carry.ends_early


def _for_body(
    frame: Frame, node: ast.For, name: str, bounds: LoopRange, carry: Carry
) -> tuple[Block, list[tensor], list[tensor]] | None:
    """The body block, the values before it and at its end; None when it must be done again."""
    initial = carry.begin()
    block = Block(arg_types=[ir_type(bounds.type), *carry.ir_types()])
    with frame.branch(block):
        carry.enter_body(block.args[1:])
        frame.at(node)
        frame.assign(name, bounds.variable(frame, tensor(block.args[0], bounds.type)), node)
        lower_block(frame, node.body)
        frame.at(node)
        ends = carry.finish()
        if ends is None:
            discard(block)
            return None
        frame.builder.emit(scf.YieldOp, _handles(ends))
    return block, initial, ends


def _handles(values: Sequence[tensor]) -> list[SSAValue]:
    return [value.handle for value in values]  # type: ignore[misc]  # handles are SSA values here


def _lower_for(frame: Frame, node: ast.For, name: str, bounds: LoopRange, carry: Carry) -> Exit:
    messages = len(frame.lowering.messages)
    while (done := _for_body(frame, node, name, bounds, carry)) is None:
        del frame.lowering.messages[messages:]
    block, initial, _ = done
    operands = _handles([bounds.lower, bounds.upper, bounds.step, *initial])
    op = frame.at(node).emit(scf.ForOp, operands, carry.ir_types(), None, [Region(block)])
    op.attributes.update(bounds.hints)
    carry.bind_results(op.results)
    return FALLS


class _Test(Protocol):
    """The head of a loop with a test: leading values of its own beside the carried ones."""

    def initial(self) -> list[tensor]:
        """The leading values before the loop."""
        ...

    def test(self, frame: Frame, leading: Sequence[tensor]) -> bool | tensor:
        """Whether the loop goes on."""
        ...

    def enter(self, frame: Frame, leading: Sequence[tensor]) -> None:
        """Bind the loop's own variable at the head of the body."""
        ...

    def next(self, frame: Frame, leading: Sequence[tensor]) -> list[tensor]:
        """The leading values of the next iteration."""
        ...


@dataclass(frozen=True)
class _Tested:
    """The head of a `while`."""

    node: ast.expr

    def initial(self) -> list[tensor]:
        return []

    def test(self, frame: Frame, leading: Sequence[tensor]) -> bool | tensor:
        return condition(frame, self.node)

    def enter(self, frame: Frame, leading: Sequence[tensor]) -> None:
        return None

    def next(self, frame: Frame, leading: Sequence[tensor]) -> list[tensor]:
        return []


@dataclass(frozen=True)
class _Counted:
    """The head of a `for` that may be left early."""

    node: ast.For
    name: str
    bounds: LoopRange

    def initial(self) -> list[tensor]:
        return [self.bounds.lower]

    def test(self, frame: Frame, leading: Sequence[tensor]) -> bool | tensor:
        return binary(frame.at(self.node), "Lt", leading[0], self.bounds.upper)

    def enter(self, frame: Frame, leading: Sequence[tensor]) -> None:
        frame.at(self.node)
        frame.assign(self.name, self.bounds.variable(frame, leading[0]), self.node)

    def next(self, frame: Frame, leading: Sequence[tensor]) -> list[tensor]:
        return [binary(frame.at(self.node), "Add", leading[0], self.bounds.step)]


def _lower_while(
    frame: Frame,
    node: ast.For | ast.While,
    head: _Test,
    carry: Carry,
    hints: Mapping[str, Attribute],
) -> Exit:
    messages = len(frame.lowering.messages)
    while True:
        del frame.lowering.messages[messages:]
        initial = [*head.initial(), *carry.begin()]
        before = _test_region(frame, node, head, carry, initial)
        if before is _NEVER:
            return FALLS
        if before is None:
            continue
        after = _while_body(frame, node, head, carry, initial)
        if after is not None:
            break
        discard(before.block)
    assert isinstance(before, _TestBlock)
    types = [ir_type(value.type) for value in initial]
    regions = [Region(before.block), Region(after)]
    op = frame.at(node).emit(scf.WhileOp, _handles(initial), types, None, regions)
    op.attributes.update(hints)
    carry.bind_results(op.results[len(head.initial()) :])
    if before.is_endless and not carry.carries(BREAK):
        frame.variables[RETURN] = SET  # `while True` without `break` ends by `return` only
        return LEAVES
    return FALLS


@dataclass(frozen=True)
class _TestBlock:
    """The region of a loop's test; `is_endless` when only `break` and `return` end the loop."""

    block: Block
    is_endless: bool = False


_NEVER = _TestBlock(Block())


def _test_region(
    frame: Frame, node: ast.For | ast.While, head: _Test, carry: Carry, initial: Sequence[tensor]
) -> _TestBlock | None:
    """The test, which holds only while no flag is set; None when it must be done again."""
    block = Block(arg_types=[ir_type(value.type) for value in initial])
    with frame.branch(block):
        leading = _leading(block, head)
        carry.enter(block.args[len(leading) :])
        flag = _may_have_left(frame)
        known, test = _guarded_test(frame, node, head, leading, flag)
        values = None if known is False else carry.current()
        if values is None:
            discard(block)
            return _NEVER if known is False else None
        arguments = [test, *leading, *values]
        frame.at(node).emit(scf.ConditionOp, _handles(arguments))
    return _TestBlock(block, is_endless=known is True)


def _leading(block: Block, head: _Test) -> list[tensor]:
    return [tensor(a, v.type) for a, v in zip(block.args, head.initial(), strict=False)]


def _guarded_test(
    frame: Frame,
    node: ast.For | ast.While,
    head: _Test,
    leading: Sequence[tensor],
    flag: tensor | None,
) -> tuple[bool | None, tensor]:
    """What is known of the test, and the condition of the loop.

    The test of a loop that was left is not evaluated: it may read memory or have effects.
    """
    b = frame.at(node)
    if flag is None:
        test = head.test(frame, leading)
        known = test if isinstance(test, bool) else None
        return known, b.constant(test, int1) if isinstance(test, bool) else test
    goes_on = logical_not(b, flag)
    block, other = Block(), Block()
    with b.inside(block):
        test = head.test(frame, leading)
    if isinstance(test, bool):
        return test, goes_on
    if all(is_side_effect_free(op) for op in block.ops):
        for op in list(block.ops):
            op.detach()
            b.block.add_op(op)
        return None, binary(b, "BitAnd", goes_on, test)
    with b.inside(block):
        frame.at(node).emit(scf.YieldOp, _handles([test]))
    with b.inside(other):
        b.emit(scf.YieldOp, _handles([b.constant(False, int1)]))
    regions = [Region(block), Region(other)]
    op = b.emit(scf.IfOp, _handles([goes_on]), [ir_type(int1)], None, regions)
    return None, tensor(op.results[0], int1)


def _while_body(
    frame: Frame, node: ast.For | ast.While, head: _Test, carry: Carry, initial: Sequence[tensor]
) -> Block | None:
    """The body of a loop with a test; None when it must be done again."""
    block = Block(arg_types=[ir_type(value.type) for value in initial])
    with frame.branch(block):
        leading = _leading(block, head)
        carry.enter_body(block.args[len(leading) :])
        head.enter(frame, leading)
        lower_block(frame, node.body)
        frame.at(node)
        ends = carry.finish()
        if ends is None:
            discard(block)
            return None
        frame.builder.emit(scf.YieldOp, _handles([*head.next(frame, leading), *ends]))
    return block
