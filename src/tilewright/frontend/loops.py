"""Loops: `for` over ranges, `while`, and unrolled loops.

A variable is carried when the body may assign it, it has a value before the loop, and it is
read later (`loop_carried`). The body is lowered again when it changes what was thought constant.

    for i in range(n):          scf.for  %i … iter_args(x)
    for … with break/return:    scf.while (i, %break, x) { i < n and not %break } do { … }
    while test:                 scf.while (x) { test } do { … }
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from xdsl.ir import Block, Region

from tilewright.frontend.cleanup import discard
from tilewright.frontend.control_flow import (
    BREAK,
    CONTINUE,
    lower_block,
    lower_guarded,
    may_be_set,
)
from tilewright.frontend.frame import FALLS, LEAVES, STATEMENTS, Exit, Frame
from tilewright.frontend.iteration import LoopRange, ValueRange, evaluate_iterator, loop_condition
from tilewright.frontend.liveness import assigned, leaves_loop
from tilewright.frontend.loop_carried import LoopCarried
from tilewright.frontend.lowering_state import LoopContext
from tilewright.frontend.subset import reject_as
from tilewright.frontend.while_loops import Counted, Tested, handles, lower_while, may_have_left
from tilewright.language.core import tensor
from tilewright.ops.builder import ir_type
from tilewright.ops.control_flow import ForOp, YieldOp


@STATEMENTS.register(ast.For)
def _for(frame: Frame, node: ast.For) -> Exit:
    if node.orelse:
        raise reject_as("`else` after a loop", "set a variable in the loop and test it")
    iterator = evaluate_iterator(frame, node.iter)
    if not isinstance(node.target, ast.Name):
        raise reject_as("loops over several targets", "write one name after `for`")
    outer, frame.loop = frame.loop, LoopContext(frame.code.liveness.header[id(node)])
    try:
        with frame.lowering.inside(id(node)):
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
        with frame.lowering.inside(id(node)):
            carry = LoopCarried(frame, node, assigned([*node.body, node.test]))
            return lower_while(frame, node, Tested(test), carry, hints)
    finally:
        frame.loop = outer


def _unrolled(frame: Frame, node: ast.For, name: str, values: Sequence[object]) -> Exit:
    """Lower the body once for each value; a `break` known at compile time ends it."""
    exit_ = _unroll_from(frame, node, name, values)
    may_break = may_be_set(frame.variables.pop(BREAK, None))
    return FALLS if may_break else exit_


def _unroll_from(frame: Frame, node: ast.For, name: str, values: Sequence[object]) -> Exit:
    for index, value in enumerate(values):
        flag = may_have_left(frame)
        if flag is not None:
            rest = values[index:]
            live = frame.code.liveness.header[id(node)]
            return lower_guarded(
                frame,
                node,
                flag,
                lambda: _unroll_from(frame, node, name, rest),  # noqa: B023 - called at once
                live,
            )
        frame.assign(name, value, node)
        with frame.lowering.inside(len(values) - index):
            exit_ = lower_block(frame, node.body)
        may_continue = may_be_set(frame.variables.pop(CONTINUE, None))
        if exit_.leaves and not may_continue:
            return LEAVES
    return FALLS


def _runtime_for(frame: Frame, node: ast.For, name: str, bounds: LoopRange) -> Exit:
    """Lower to scf.for, or to scf.while where the body may leave the loop at run time."""
    carry = LoopCarried(frame, node, assigned(node.body) - {name})
    is_uniform = not bounds.lower.static_shape
    leaves = leaves_loop(node.body)
    if not is_uniform or (leaves and _leaves_at_run_time(frame, node, name, bounds, carry)):
        counted = Counted(node, name, bounds)
        exit_ = lower_while(frame, node, counted, carry, bounds.hints)
    else:
        exit_ = _lower_for(frame, node, name, bounds, carry)
    frame.lose(name, f"it is the variable of the loop at line {node.lineno}")
    return exit_


def _leaves_at_run_time(
    frame: Frame, node: ast.For, name: str, bounds: LoopRange, carry: LoopCarried
) -> bool:
    """Whether a `break` or `return` remains once constant conditions are decided."""
    findings = frame.lowering.loop_findings()
    if findings.leaves:
        return True
    messages = len(frame.lowering.messages)
    while (done := _for_body(frame, node, name, bounds, carry)) is None and not carry.ends_early:
        pass
    if done is not None:
        discard(done[0])
    del frame.lowering.messages[messages:]
    findings.leaves = carry.ends_early
    return carry.ends_early


def _for_body(
    frame: Frame, node: ast.For, name: str, bounds: LoopRange, carry: LoopCarried
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
        frame.builder.emit(YieldOp, handles(ends))
    return block, initial, ends


def _lower_for(
    frame: Frame, node: ast.For, name: str, bounds: LoopRange, carry: LoopCarried
) -> Exit:
    messages = len(frame.lowering.messages)
    while (done := _for_body(frame, node, name, bounds, carry)) is None:
        del frame.lowering.messages[messages:]
    block, initial, _ = done
    operands = handles([bounds.lower, bounds.upper, bounds.step, *initial])
    op = frame.at(node).emit(ForOp, operands, carry.ir_types(), None, [Region(block)])
    op.attributes.update(bounds.hints)
    carry.bind_results(op.results)
    return FALLS
