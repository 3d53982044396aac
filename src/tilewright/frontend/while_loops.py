"""Loops with a test: `while`, and `for` that may be left at run time, as `scf.while`.

Names that the test assigns (`while (x := load(p)) > 0`) are passed from the test to the body
and out of the loop, beside what is carried.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Protocol

from xdsl.ir import Attribute, Block, Region, SSAValue

from tilewright.frontend.cleanup import discard
from tilewright.frontend.control_flow import (
    BREAK,
    RETURN,
    SET,
    condition,
    lower_block,
    lower_guarded,
)
from tilewright.frontend.frame import FALLS, LEAVES, Exit, Frame
from tilewright.frontend.iteration import LoopRange
from tilewright.frontend.lanes import any_lane
from tilewright.frontend.liveness import assigned
from tilewright.frontend.loop_carried import LoopCarried
from tilewright.frontend.phi import zero
from tilewright.ir.effects import is_free
from tilewright.language.core import int1, tensor
from tilewright.ops.builder import ir_type
from tilewright.ops.control_flow import ConditionOp, IfOp, WhileOp, YieldOp
from tilewright.ops.elementwise.logical import logical_not
from tilewright.ops.elementwise.operators import binary
from tilewright.support.dataclass import dataclass


class LoopHead(Protocol):
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
class Tested:
    """The head of a `while`."""

    node: ast.expr

    def initial(self) -> list[tensor]:
        """The leading values before the loop."""
        return []

    def test(self, frame: Frame, leading: Sequence[tensor]) -> bool | tensor:
        """Whether the loop goes on."""
        return condition(frame, self.node)

    def enter(self, frame: Frame, leading: Sequence[tensor]) -> None:
        """Bind the loop's own variable."""
        return None

    def next(self, frame: Frame, leading: Sequence[tensor]) -> list[tensor]:
        """The leading values of the next iteration."""
        return []


@dataclass(frozen=True)
class Counted:
    """The head of a `for` that may be left early."""

    node: ast.For
    name: str
    bounds: LoopRange

    def initial(self) -> list[tensor]:
        """The leading values before the loop."""
        return [self.bounds.lower]

    def test(self, frame: Frame, leading: Sequence[tensor]) -> bool | tensor:
        """Whether the loop goes on."""
        return binary(frame.at(self.node), "Lt", leading[0], self.bounds.upper)

    def enter(self, frame: Frame, leading: Sequence[tensor]) -> None:
        """Bind the loop's own variable."""
        frame.at(self.node)
        frame.assign(self.name, self.bounds.variable(frame, leading[0]), self.node)

    def next(self, frame: Frame, leading: Sequence[tensor]) -> list[tensor]:
        """The leading values of the next iteration."""
        return [self.bounds.following(frame.at(self.node), leading[0])]


def handles(values: Sequence[tensor]) -> list[SSAValue]:
    """The IR values of tensors."""
    return [value.handle for value in values]  # type: ignore[misc]  # handles are SSA values here


def may_have_left(frame: Frame) -> tensor | None:
    """Whether a loop was left, where only run time knows."""
    flags = [f for f in map(frame.variables.get, (BREAK, RETURN)) if isinstance(f, tensor)]
    if len(flags) < 2:
        return flags[0] if flags else None
    return binary(frame.builder, "BitOr", *flags)


@dataclass(frozen=True)
class _TestBlock:
    """The region of a loop's test.

    `named` are the runtime values that the test gave to names; `is_endless` says that only
    `break` and `return` end the loop, `is_never` that it does not run at all.
    """

    block: Block
    named: list[tuple[str, tensor]] = field(default_factory=list)
    is_endless: bool = False
    is_never: bool = False


def lower_while(
    frame: Frame,
    node: ast.For | ast.While,
    head: LoopHead,
    carry: LoopCarried,
    hints: Mapping[str, Attribute],
) -> Exit:
    """Lower a loop with a test, again until what it carries is settled."""
    messages = len(frame.lowering.messages)
    while True:
        del frame.lowering.messages[messages:]
        initial = [*head.initial(), *carry.begin()]
        before = _test_region(frame, node, head, carry, initial)
        if before is None:
            continue
        if before.is_never:
            return FALLS
        after = _body(frame, node, head, carry, initial, before)
        if after is not None:
            break
        discard(before.block)
    passed = [*initial, *(value for _, value in before.named)]
    types = [ir_type(value.type) for value in passed]
    regions = [Region(before.block), Region(after)]
    op = frame.at(node).emit(WhileOp, handles(initial), types, None, regions)
    op.attributes.update(hints)
    carry.bind_results(op.results[len(head.initial()) : len(initial)])
    _bind_named(frame, node, before, op.results[len(initial) :])
    if before.is_endless and not carry.carries(BREAK):
        frame.variables[RETURN] = SET  # `while True` without `break` ends by `return` only
        return LEAVES
    return FALLS


def _bind_named(frame: Frame, node: ast.AST, test: _TestBlock, values: Sequence[SSAValue]) -> None:
    for (name, value), passed in zip(test.named, values, strict=True):
        frame.assign(name, tensor(passed, value.type), node)


def _test_region(
    frame: Frame,
    node: ast.For | ast.While,
    head: LoopHead,
    carry: LoopCarried,
    initial: Sequence[tensor],
) -> _TestBlock | None:
    """The test, which holds only while no flag is set; None when it must be done again."""
    block = Block(arg_types=[ir_type(value.type) for value in initial])
    with frame.branch(block):
        leading = _leading(block, head)
        carry.enter(block.args[len(leading) :])
        names = sorted(assigned([head.node]) - carry.names) if isinstance(head, Tested) else []
        known, test = _guarded_test(frame, node, head, leading, names)
        values = None if known is False else carry.current()
        if values is None:
            discard(block)
            return _TestBlock(block, is_never=True) if known is False else None
        named = [(n, v) for n in names if isinstance(v := frame.variables.get(n), tensor)]
        arguments = [
            any_lane(frame.at(node), test),
            *leading,
            *values,
            *(value for _, value in named),
        ]
        frame.at(node).emit(ConditionOp, handles(arguments))
    return _TestBlock(block, named, is_endless=known is True)


def _leading(block: Block, head: LoopHead) -> list[tensor]:
    return [tensor(a, v.type) for a, v in zip(block.args, head.initial(), strict=False)]


def _guarded_test(
    frame: Frame,
    node: ast.For | ast.While,
    head: LoopHead,
    leading: Sequence[tensor],
    names: Sequence[str],
) -> tuple[bool | None, tensor]:
    """What is known of the test, and the condition of the loop.

    The test of a loop that was left is not evaluated: it may read memory or have effects.
    """
    flag = may_have_left(frame)
    b = frame.at(node)
    if flag is None:
        test = head.test(frame, leading)
        known = test if isinstance(test, bool) else None
        return known, b.constant(test, int1) if isinstance(test, bool) else test
    goes_on = logical_not(b, flag)
    block = Block()
    with b.inside(block):
        test = head.test(frame, leading)
    if isinstance(test, bool):
        _splice(block, b.block)
        return test, goes_on
    if all(is_free(op) for op in block.ops):
        _splice(block, b.block)
        return None, binary(b, "BitAnd", goes_on, test)
    return None, _branch_on(frame, node, goes_on, block, test, names)


def _splice(source: Block, target: Block) -> None:
    """Move all ops to the end of another block."""
    for op in list(source.ops):
        op.detach()
        target.add_op(op)


def _branch_on(
    frame: Frame,
    node: ast.AST,
    goes_on: tensor,
    block: Block,
    test: tensor,
    names: Sequence[str],
) -> tensor:
    """The test inside of a branch, which also gives out the names that it assigned."""
    b = frame.at(node)
    named = [(n, v) for n in names if isinstance(v := frame.variables.get(n), tensor)]
    values = [test, *(value for _, value in named)]
    with b.inside(block):
        b.emit(YieldOp, handles(values))
    other = Block()
    with b.inside(other):
        b.emit(YieldOp, handles([zero(b, value.type) for value in values]))
    types = [ir_type(value.type) for value in values]
    op = b.emit(IfOp, handles([goes_on]), types, None, [Region(block), Region(other)])
    for (name, value), result in zip(named, op.results[1:], strict=True):
        frame.assign(name, tensor(result, value.type), node)
    return tensor(op.results[0], int1)


def _lower_body(
    frame: Frame, node: ast.For | ast.While, head: LoopHead, leading: Sequence[tensor]
) -> None:
    """The statements of the body, for the lanes that go on where lanes differ."""
    if not frame.builder.lanes:
        lower_block(frame, node.body)
        return
    test, flag = head.test(frame, leading), may_have_left(frame)
    if isinstance(test, tensor) and test.static_shape:
        is_done = logical_not(frame.at(node), test)
        flag = is_done if flag is None else binary(frame.builder, "BitOr", flag, is_done)
    if flag is None:
        lower_block(frame, node.body)
        return
    live = frame.code.liveness.header[id(node)]
    lower_guarded(frame, node, flag, lambda: lower_block(frame, node.body), live)


def _body(
    frame: Frame,
    node: ast.For | ast.While,
    head: LoopHead,
    carry: LoopCarried,
    initial: Sequence[tensor],
    test: _TestBlock,
) -> Block | None:
    """The body of the loop; None when it must be done again."""
    passed = [*initial, *(value for _, value in test.named)]
    block = Block(arg_types=[ir_type(value.type) for value in passed])
    with frame.branch(block):
        leading = _leading(block, head)
        carry.enter_body(block.args[len(leading) : len(initial)])
        _bind_named(frame, node, test, block.args[len(initial) :])
        head.enter(frame, leading)
        _lower_body(frame, node, head, leading)
        frame.at(node)
        ends = carry.finish()
        if ends is None:
            discard(block)
            return None
        frame.builder.emit(YieldOp, handles([*head.next(frame, leading), *ends]))
    return block
