"""Lets a loop over a program's tiles count the tiles (T0 to T0).

    for %s = 0 to ceil((%tiles - %pid) / %programs) { use(%pid + %s * %programs) }
    ⇒ for %t = %pid to %tiles step %programs { use(%t) }

and so where the count is `%tiles / %programs`, one more where `%pid < %tiles % %programs`; and
where the tile is not computed but carried from step to step, which `merge-counters` finishes.

Why: of a step it is bounded how many there are, and of the tile only what follows for any program
and any step: more tiles than there are. The last ones would divide by rows in groups behind the
last group, and nothing that a launch tests would hold of them.

Both count the same where nothing wraps and the program's first tile is one of the first
`%programs`, which the launch tests. Requires and produces T0.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue

from tilewright.analysis.affine.expression import Expression
from tilewright.analysis.affine.guards import Demand, Guard
from tilewright.ir.edits import erase_unused
from tilewright.ir.passes import Pass
from tilewright.ir.regions import phis_of
from tilewright.ir.types import i32
from tilewright.ops.control_flow import ForOp
from tilewright.ops.creation.ir import constant_of
from tilewright.ops.elementwise.comparisons import CmpIOp
from tilewright.ops.elementwise.ir import ELEMENTWISE
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
    is_number,
    is_seen_from,
    one_more,
)

_ADD, _SUBTRACT, _DIVIDE, _REMAINDER = (
    ELEMENTWISE[f"arith.{name}"] for name in ("addi", "subi", "divsi", "remsi")
)


@dataclass(frozen=True)
class CountWalks(Pass):
    """The pass; see the module."""

    name = "count-walks"
    after = ("count-whiles",)

    def apply(self, module: ModuleOp) -> None:
        """Rewrite every such loop of the kernel."""
        kernel = find_kernel(module)
        for op in tuple(kernel.walk()):
            if isinstance(op, ForOp) and (constant_of(op.lb), constant_of(op.step)) == (0, 1):
                add_guards(kernel, _count(op))


@dataclass(frozen=True)
class _Walk:
    """The numbers from `first` below `end` by `step`; `demands` say when so many are counted."""

    first: Expression
    end: Expression
    step: Expression
    demands: tuple[Guard, ...]


def _count(loop: ForOp) -> list[LaunchGuard]:
    """Rewrite a loop where that may be; what it demands of launches."""
    sums = Sums()
    walk = _quotient(loop.ub, sums) or _with_rest(loop.ub, sums) if loop.ub.type == i32 else None
    if walk is None or not all(is_seen_from(e, loop) for e in (walk.first, walk.end, walk.step)):
        return []
    tiles = _tiles(loop, walk, sums)
    if not tiles and not _carries(loop, walk, sums):
        return []
    guards = guards_of(loop, walk.demands)
    if guards is None:
        return []
    _rewrite(loop, walk, tiles)
    return guards


def _walk(first: Expression, end: Expression, step: Expression, *demands: Guard) -> _Walk:
    ordered = (Guard(first, Demand.AT_LEAST, 0), Guard(end, Demand.AT_LEAST, 0))
    within = (*is_number(first), *counts_within(end, step))
    return _Walk(first, end, step, (*ordered, *within, *demands))


def _quotient(count: SSAValue, sums: Sums) -> _Walk | None:
    """What ceil((end - first) / step) counts, where the division rounds to zero.

    The dividend is end - first + step - 1; a program whose first tile is behind the end has none.
    """
    if not isinstance(count, OpResult) or not isinstance(count.op, _DIVIDE):
        return None
    dividend, step = map(sums.of, count.op.operands)
    distance = dividend.minus(step).plus(integer(1))
    negative = tuple((-c, factors) for c, factors in distance.terms if c < 0 and factors)
    first = Expression(negative)
    return _walk(first, distance.plus(first), step) if negative else None


def _with_rest(count: SSAValue, sums: Sums) -> _Walk | None:
    """What end / step counts, and one more where first < end % step."""
    found = one_more(count, sums)
    if found is None:
        return None
    quotient, condition = (value.owner for value in found)
    if not isinstance(condition, CmpIOp) or condition.predicate_name() != "slt":
        return None
    first, rest = condition.operands
    if not isinstance(rest.owner, _REMAINDER) or not isinstance(quotient, _DIVIDE):
        return None
    pairs = [tuple(map(sums.of, op.operands)) for op in (rest.owner, quotient)]
    if not all(one.minus(other).is_zero() for one, other in zip(*pairs, strict=True)):
        return None
    (end, step), start = pairs[0], sums.of(first)
    is_one_of_first = Guard(step.minus(start), Demand.AT_LEAST, 1)
    return _walk(start, end, step, is_one_of_first)


def _tiles(loop: ForOp, walk: _Walk, sums: Sums) -> list[Operation]:
    """The ops that compute the tile of a step."""
    counter = loop.body.block.args[0]
    tile = walk.first.plus(Expression(((1, (counter,)),)).times(walk.step))
    return [
        op
        for op in loop.body.block.walk()
        if isinstance(op, _ADD | _SUBTRACT) and op.results[0].type == i32
        if sums.of(op.results[0]).minus(tile).is_zero()
    ]


def _carries(loop: ForOp, walk: _Walk, sums: Sums) -> bool:
    """Whether a loop carries the tile, or the one before it, from step to step."""
    for phi in phis_of(loop):
        start, *others = phi.sources()
        arguments = [value for value in phi.values if value in loop.body.block.args]
        if start.type != i32 or len(others) != 1 or len(arguments) != 1:
            continue
        step = sums.of(others[0]).minus(sums.of(arguments[0]))
        ahead = walk.first.minus(sums.of(start))
        is_first = ahead.is_zero() or ahead.minus(walk.step).is_zero()
        if is_first and step.minus(walk.step).is_zero():
            return True
    return False


def _rewrite(loop: ForOp, walk: _Walk, tiles: list[Operation]) -> None:
    """Let a loop count the tiles; its steps are computed where something else reads them."""
    outside, counter = TileBuilder(loop), loop.body.block.args[0]
    bounds = [emit(number, outside) for number in (walk.first, walk.end, walk.step)]
    loop.operands = [*bounds, *loop.iter_args]
    step = _count_steps(loop, walk)
    for op in tiles:
        op.results[0].replace_all_uses_with(counter)
    for op in (*tiles, step):
        if op.parent is not None:
            erase_unused(op)


def _count_steps(loop: ForOp, walk: _Walk) -> Operation:
    """Let all that reads the counter read how many steps there were, for the op that says so."""
    counter, first_op = loop.body.block.args[0], loop.body.block.first_op
    assert first_op is not None
    uses, make = list(counter.uses), TileBuilder(first_op)
    distance = make.binary("subi", counter, emit(walk.first, make))
    steps = make.binary("divsi", distance, loop.step)
    for use in uses:
        use.operation.operands[use.index] = steps
    assert isinstance(steps.owner, Operation)
    return steps.owner
