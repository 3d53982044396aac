"""Counts the loops of some products in 64 bits, so that no step passes the last number.

    for k: i32 in lo..hi step s { … }  ⇒  for k': i64 in lo..hi step s { k = trunc(k') … }

Why: `range(2**31 - 20, 2**31 - 1, 64)` has one step, after which an index of 32 bits would be
negative and the loop go on. A product whose first step is peeled off (`peel_first_products.py`)
meets no such end in its first step; one that stores its own sum is not peeled.

T0 to T0, and every bit stays.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Block, Operation, SSAValue

from tilewright.ir.op import build
from tilewright.ir.types import i64
from tilewright.ops.builder import constant_attribute
from tilewright.ops.control_flow import ForOp
from tilewright.ops.creation.ir import ConstantOp, constant_of
from tilewright.ops.elementwise.ir import ExtSIOp, TruncIOp
from tilewright.ops.matmul.ir import DotOp


def lengthen_counters(kernel: Operation, is_worth: Callable[[DotOp], bool]) -> None:
    """Count every loop in 64 bits that has a product for which that is worth it."""
    for op in tuple(kernel.walk()):
        if not isinstance(op, ForOp) or op.lb.type == i64:
            continue
        if any(isinstance(each, DotOp) and is_worth(each) for each in op.body.block.ops):
            _lengthen(op)


def _lengthen(loop: ForOp) -> None:
    body, old = loop.body.block, loop.body.block.args[0]
    loop.operands = [*(_long(loop, bound) for bound in loop.operands[:3]), *loop.operands[3:]]
    counter = body.insert_arg(i64, 0)
    narrow = build(TruncIOp, (counter,), (old.type,), location=loop.location)
    old.replace_all_uses_with(narrow.results[0])
    body.erase_arg(old)
    assert body.first_op is not None
    body.insert_op_before(narrow, body.first_op)


def _long(loop: ForOp, bound: SSAValue) -> SSAValue:
    """A bound in 64 bits, right where it is made: loops before this one may ask for it."""
    made = bound.owner
    number = constant_of(bound)
    if number is None:
        op = build(ExtSIOp, (bound,), (i64,), location=loop.location)
    else:
        value = {"value": constant_attribute(int(number), i64)}
        op = build(ConstantOp, (), (i64,), value, location=loop.location)
    block = made if isinstance(made, Block) else made.parent
    assert block is not None and block.first_op is not None
    if isinstance(made, Block):
        block.insert_op_before(op, block.first_op)
    else:
        block.insert_op_after(op, made)
    return op.results[0]
