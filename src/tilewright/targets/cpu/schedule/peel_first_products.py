"""Lets the first product of a loop's sum overwrite the result, which then needs no zeros.

    for k in lo..hi step s iter_args(acc = 0, x) { … dot(a, b, acc) … yield d, y }
    ⇒ (d', y') = if lo < hi { … dot(a, b, 0) … at k = lo … yield d, y } else { yield 0, x }
      for k in min(lo + s, hi)..hi step s iter_args(acc = d', x = y') { … as it was … }

Why: the zeros of a 512x512 tile are a megabyte that is written and read back, a tenth of the time
of a product 512 deep. A product that starts from zero clears registers instead. Only products
of AMX are worth the loop's body once more: they are what is fast enough for that to show.

T0 to T0, and every bit stays: it is the same loop, its first step written out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilewright.ir.op import AccumulatingOp, build
from tilewright.ir.regions import counter_of
from tilewright.ir.types import i1, i64
from tilewright.ops.builder import constant_attribute
from tilewright.ops.control_flow import ForOp, IfOp, YieldOp
from tilewright.ops.creation.ir import ConstantOp, constant_of
from tilewright.ops.elementwise.ir import ELEMENTWISE, ExtSIOp, TruncIOp
from tilewright.ops.matmul.ir import DotOp
from tilewright.targets.cpu.schedule.bufferization import is_zero

# By definition: the numbers of arith's comparisons.
_LESS_THAN = 2


def peel_first_products(kernel: Operation, is_worth: Callable[[DotOp], bool]) -> None:
    """Peel the first step of every loop whose one product is worth it and starts from zero."""
    for op in tuple(kernel.walk()):
        if counter_of(op) is None:
            continue
        assert isinstance(op, ForOp), op.name
        if _starts_from_zero(op, is_worth):
            _peel(op)


def _starts_from_zero(loop: ForOp, is_worth: Callable[[DotOp], bool]) -> bool:
    body = loop.body.block
    products = [op for op in body.ops if isinstance(op, AccumulatingOp)]
    if len(products) != 1 or any(op.regions for op in body.ops) or loop.trips().most == 0:
        return False
    (product,) = products
    assert isinstance(product, DotOp), product.name
    addend = product.c
    if addend not in body.args[1:] or not addend.has_one_use():
        return False
    return is_zero(loop.iter_args[body.args.index(addend) - 1]) and is_worth(product)


def _peel(loop: ForOp) -> None:
    """Write a loop's first step before the others, behind a test that there is one."""
    outer, body, end = loop.parent, loop.body.block, loop.body.block.last_op
    assert outer is not None and end is not None
    carried: dict[SSAValue, SSAValue] = {}
    carried.update(zip(body.args, (loop.lb, *loop.iter_args), strict=True))
    ahead = Block([op.clone(carried) for op in body.ops if op is not end])
    first = [carried.get(value, value) for value in end.operands]
    if loop.trips().fewest == 0:
        ahead.add_op(build(YieldOp, first, location=end.location))
        first = _if_any(loop, ahead)
    else:
        for op in tuple(ahead.ops):
            op.detach()
            outer.insert_op_before(op, loop)
    loop.operands = [_following(loop), loop.ub, loop.step, *first]


def _if_any(loop: ForOp, ahead: Block) -> list[SSAValue]:
    """What `ahead` yields, or what the loop starts from if it has no step."""
    outer, place = loop.parent, loop.location
    assert outer is not None
    predicate: dict[str, Attribute] = {"predicate": IntegerAttr(_LESS_THAN, i64)}
    less = build(ELEMENTWISE["arith.cmpi"], (loop.lb, loop.ub), (i1,), predicate, location=place)
    types = [result.type for result in loop.results]
    none = Block([build(YieldOp, loop.iter_args, location=place)])
    branch = build(IfOp, less.results, types, None, [Region(ahead), Region(none)], place)
    outer.insert_op_before(less, loop)
    outer.insert_op_before(branch, loop)
    return list(branch.results)


def _following(loop: ForOp) -> SSAValue:
    """The index of the second step, or the end: in 64 bits, so that no sum overflows."""
    outer, kind, place = loop.parent, loop.lb.type, loop.location
    assert outer is not None

    def made(
        cls: type[Operation], operands: Sequence[SSAValue], type_: Attribute, **more: Attribute
    ) -> SSAValue:
        op = build(cls, operands, (type_,), more, location=place)
        outer.insert_op_before(op, loop)
        return op.results[0]

    low, step, high = (constant_of(bound) for bound in (loop.lb, loop.step, loop.ub))
    if low is not None and step is not None and high is not None:
        following = max(int(low), min(int(low) + int(step), int(high)))
        return made(ConstantOp, (), kind, value=constant_attribute(following, kind))
    bounds = (loop.lb, loop.step, loop.ub)
    wide = [v if kind == i64 else made(ExtSIOp, (v,), i64) for v in bounds]
    total = made(ELEMENTWISE["arith.addi"], wide[:2], i64)
    start = made(ELEMENTWISE["arith.minsi"], (total, wide[2]), i64)
    return start if kind == i64 else made(TruncIOp, (start,), kind)
