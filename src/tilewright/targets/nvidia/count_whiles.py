"""Makes a `while` that counts a `for` (T0 to T0).

    %r = while (%i = %start, %x = %x0) { condition %i < %end } do { …; yield %i + %step, %x1 }
    ⇒ for %i = %start to %end step %step iter_args(%x = %x0) { …; yield %x1 }

Why: programs that walk over tiles by `while tile < tiles` are loops like those by `range`, and
only of a counter is it known what it counts: what its loads reach, and what runs ahead.

Both count the same where no step wraps, which the launch tests: `%end + %step` is at most 2^31 - 1
and `%step` is positive. Where a launch does not know them, or the loop goes on for other reasons,
or its last number is read, it stays as it is. Requires and produces T0.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from tilewright.analysis.affine.expression import Expression
from tilewright.ir.edits import erase
from tilewright.ir.effects import is_free
from tilewright.ir.op import build
from tilewright.ir.passes import Pass
from tilewright.ir.types import i32
from tilewright.ops.control_flow import ConditionOp, ForOp, WhileOp
from tilewright.ops.elementwise.comparisons import CmpIOp
from tilewright.ops.function import find_kernel
from tilewright.passes.tile_builder import TileBuilder
from tilewright.runtime.launch_numbers import LaunchGuard
from tilewright.support.dataclass import dataclass
from tilewright.targets.nvidia.tma.launch_conditions import add_guards
from tilewright.targets.nvidia.walk_guards import (
    Sums,
    counts_within,
    emit,
    guards_of,
    integer,
    is_seen_from,
)


@dataclass(frozen=True)
class CountWhiles(Pass):
    """The pass; see the module."""

    name = "count-whiles"
    after = ("lower-block-pointers",)

    def apply(self, module: ModuleOp) -> None:
        """Rewrite every such loop of the kernel, inner ones first."""
        kernel = find_kernel(module)
        for op in reversed(tuple(kernel.walk())):
            if isinstance(op, WhileOp):
                add_guards(kernel, _count(op))


@dataclass(frozen=True)
class _Found:
    """What a `while` counts: its carried value `number` up to `end` by `step`."""

    number: int
    end: Expression
    step: Expression


def _count(loop: WhileOp) -> list[LaunchGuard]:
    """Rewrite a loop where that may be; what it demands of launches."""
    _hoist_test(loop)
    sums = Sums()
    found = _find(loop, sums)
    if found is None or not all(is_seen_from(e, loop) for e in (found.end, found.step)):
        return []
    guards = guards_of(loop, counts_within(found.end, found.step))
    if guards is None:
        return []
    _rewrite(loop, found)
    return guards


def _hoist_test(loop: WhileOp) -> None:
    """Compute in front of a loop what its test computes each time; the test runs at least once."""
    test = loop.before_region.block
    assert loop.parent is not None
    for op in list(test.ops):
        is_still = all(_stands_outside(operand, test) for operand in op.operands)
        if is_still and not op.regions and op is not test.last_op and is_free(op):
            op.detach()
            loop.parent.insert_op_before(op, loop)


def _stands_outside(value: SSAValue, block: Block) -> bool:
    owner = value.owner
    return owner is not block and not (isinstance(owner, Operation) and owner.parent is block)


def _find(loop: WhileOp, sums: Sums) -> _Found | None:
    test, body = loop.before_region.block, loop.after_region.block
    *asked, end = test.ops
    if not isinstance(end, ConditionOp) or tuple(end.args) != tuple(test.args):
        return None
    compared = end.condition.owner
    if not isinstance(compared, CmpIOp) or compared not in asked or not all(map(is_free, asked)):
        return None
    below = _below(compared, sums)
    following = body.last_op
    if below is None or following is None or below[0] not in test.args:
        return None
    number = test.args.index(below[0])
    counter = body.args[number]
    step = sums.of(following.operands[number]).minus(sums.of(counter))
    inside = {*test.args, *body.args}
    reads = {symbol for part in (below[1], step) for symbol in part.symbols()}
    is_left = loop.results[number].first_use is not None
    return None if reads & inside or is_left else _Found(number, below[1], step)


def _below(compared: CmpIOp, sums: Sums) -> tuple[SSAValue, Expression] | None:
    """What is compared, and the number that it has to be below; None for other comparisons."""
    left, right = compared.operands
    predicate = compared.predicate_name()
    if predicate in ("sgt", "sge"):
        left, right = right, left
    if left.type != i32 or predicate not in ("slt", "sle", "sgt", "sge"):
        return None
    return left, sums.of(right).plus(integer(int(predicate in ("sle", "sge"))))


def _rewrite(loop: WhileOp, found: _Found) -> None:
    make, number = TileBuilder(loop), found.number
    end, step = emit(found.end, make), emit(found.step, make)
    carried = [v for place, v in enumerate(loop.arguments) if place != number]
    bounds = [loop.arguments[number], end, step]
    region = loop.detach_region(loop.after_region)
    _move_first(region.block, number)
    types = [value.type for value in carried]
    new = build(ForOp, [*bounds, *carried], types, regions=[region], location=loop.location)
    new.attributes.update(loop.attributes)
    assert loop.parent is not None
    loop.parent.insert_op_before(new, loop)
    kept = [result for place, result in enumerate(loop.results) if place != number]
    for old, result in zip(kept, new.results, strict=True):
        old.replace_all_uses_with(result)
    erase(loop)


def _move_first(block: Block, number: int) -> None:
    """Make an argument the first one, and let the end of the block hand on the others."""
    counter, end = block.args[number], block.last_op
    first = block.insert_arg(counter.type, 0)
    first.name_hint = counter.name_hint
    counter.replace_all_uses_with(first)
    block.erase_arg(counter)
    assert isinstance(end, Operation)
    end.operands = [value for place, value in enumerate(end.operands) if place != number]
