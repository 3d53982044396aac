"""Takes one loop over the steps of all tiles apart: into one over tiles, one over steps (T0 to T0).

    for %_ = 0 to %depth * %tiles iter_args(%k, %row, %acc) {
      %k1 = %k == %depth - 1 ? 0 : %k + 1
      %row1 = if %k1 == 0 { yield %next } else { yield %row }
      %acc1 = …(%k1, %row1, %acc)
      %acc2 = if %k1 == %depth - 1 { store %acc1; yield %zero } else { yield %acc1 } }
    ⇒ for %_ = 0 to %tiles iter_args(%row, %acc) {
        %row1 = %next
        %acc1 = for %k = 0 to %depth iter_args(%acc) { …(%k, %row1, %acc) }
        store %acc1; yield %row1, %zero }

Why: persistent kernels are written so to have loads of the next tile on their way while one is
stored. Roles do that by themselves, and whatever looks at loops finds the steps of one sum in one.

Ops run in the order in which they ran: what a branch of the first step does stands in front of the
inner loop, and what one of the last step does behind it, where nothing but sums stood before the
one and behind the other. The launch tests that a tile has a step, and that all steps are counted in
32 bits. A loop that is not of this form stays as it is. Requires and produces T0.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, Region, SSAValue

from tilewright.analysis.affine.expression import Expression
from tilewright.analysis.affine.guards import Demand, Guard
from tilewright.ir.edits import erase, erase_unused
from tilewright.ir.effects import is_free
from tilewright.ir.op import build
from tilewright.ir.passes import Pass
from tilewright.ir.regions import Phi, phis_of, without_phis
from tilewright.ir.types import i32
from tilewright.ops.control_flow import ForOp, IfOp, YieldOp
from tilewright.ops.creation.ir import constant_of
from tilewright.ops.elementwise.comparisons import CmpIOp
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.ops.function import find_kernel
from tilewright.passes.tile_builder import TileBuilder
from tilewright.support.dataclass import dataclass
from tilewright.targets.nvidia.tma.launch_conditions import add_guards
from tilewright.targets.nvidia.walk_guards import (
    Sums,
    chosen,
    emit,
    guards_of,
    integer,
    is_number,
    is_seen_from,
    one_more,
)

_MULTIPLY = ELEMENTWISE["arith.muli"]


@dataclass(frozen=True)
class NestLoops(Pass):
    """The pass; see the module."""

    name = "nest-loops"
    after = ("lower-block-pointers",)

    def apply(self, module: ModuleOp) -> None:
        """Rewrite every such loop of the kernel."""
        kernel = find_kernel(module)
        for op in tuple(kernel.walk()):
            flat = _find(op) if isinstance(op, ForOp) else None
            guards = None if flat is None else guards_of(flat.loop, flat.demands())
            if flat is not None and guards is not None:
                _rewrite(flat)
                add_guards(kernel, guards)


@dataclass(frozen=True)
class _Flat:
    """A loop of `depth` steps for each of `tiles`, whose step's number is `step`.

    It is carried as argument `number` of the body. `first` and `last` are the branches of the
    first and the last step of a tile.
    """

    loop: ForOp
    depth: Expression
    tiles: SSAValue
    number: int
    step: OpResult
    first: IfOp
    last: IfOp
    sums: Sums

    @property
    def body(self) -> Block:
        """What runs in each step."""
        return self.loop.body.block

    @property
    def end(self) -> Operation:
        """What hands on the carried values."""
        end = self.body.last_op
        assert end is not None
        return end

    def demands(self) -> list[Guard]:
        """That a tile has a step, and that all of them are counted in 32 bits."""
        found = one_more(self.tiles, self.sums)
        count = self.sums.of(self.tiles if found is None else found[0])
        counts = [count] if found is None else [count, count.plus(integer(1))]
        totals = [self.depth.times(count) for count in counts]
        least = Guard(self.depth, Demand.AT_LEAST, 1)
        return [least, *(guard for total in totals for guard in is_number(total))]

    def phi_of(self, value: SSAValue) -> int | None:
        """The carried value, by its number, that the end of the body gives a value to."""
        places = [place for place, handed in enumerate(self.end.operands) if handed is value]
        return places[0] if len(places) == 1 else None


def _find(loop: ForOp) -> _Flat | None:
    if (constant_of(loop.lb), constant_of(loop.step)) != (0, 1) or loop.ub.type != i32:
        return None
    if not isinstance(loop.ub.owner, _MULTIPLY) or loop.body.block.args[0].first_use is not None:
        return None
    sums = Sums()
    for depth, tiles in (loop.ub.owner.operands, reversed(loop.ub.owner.operands)):
        of_depth = sums.of(depth)
        for number, phi in enumerate(loop.iter_args):
            step = _step(loop, number, of_depth, sums)
            if constant_of(phi) != -1 or step is None or not is_seen_from(of_depth, loop):
                continue
            branches = _branches(loop, step, of_depth, sums)
            if branches is not None:
                flat = _Flat(loop, of_depth, tiles, number, step, *branches, sums)
                return flat if _may_be_nested(flat) else None
    return None


def _step(loop: ForOp, number: int, depth: Expression, sums: Sums) -> OpResult | None:
    """The number of a step, from 0 below the depth and from 0 again, where one is carried so."""
    end, before = loop.body.block.last_op, loop.body.block.args[number + 1]
    assert end is not None
    step = end.operands[number]
    choice = chosen(step)
    if choice is None or not isinstance(step, OpResult) or step.op.parent is not end.parent:
        return None
    condition, again, following = choice
    is_last = _is_equal_to(condition, before, depth.minus(integer(1)), sums)
    is_next = sums.of(following).minus(sums.of(before)).as_int() == 1
    users = {use.operation for use in before.uses}
    is_alone = users <= {condition.owner, following.owner} and _is_used_by(condition, step.op)
    is_left = loop.results[number].first_use is not None
    is_counted = is_last and is_next and constant_of(again) == 0
    return step if is_counted and is_alone and not is_left else None


def _is_used_by(value: SSAValue, op: Operation) -> bool:
    return all(use.operation is op for use in value.uses)


def _is_equal_to(condition: SSAValue, value: SSAValue, number: Expression, sums: Sums) -> bool:
    """Whether a condition says that a value is a number."""
    op = condition.owner
    if not isinstance(op, CmpIOp) or op.predicate_name() != "eq" or value not in op.operands:
        return False
    other = op.operands[1] if op.operands[0] is value else op.operands[0]
    return sums.of(other).minus(number).is_zero()


def _branches(
    loop: ForOp, step: SSAValue, depth: Expression, sums: Sums
) -> tuple[IfOp, IfOp] | None:
    """The branches of the first step and of the last one."""
    branches = [op for op in loop.body.block.ops if isinstance(op, IfOp)]
    last = depth.minus(integer(1))
    first_ones = [op for op in branches if _is_equal_to(op.cond, step, integer(0), sums)]
    last_ones = [op for op in branches if _is_equal_to(op.cond, step, last, sums)]
    is_one_each = len(first_ones) == len(last_ones) == 1 and first_ones[0] is not last_ones[0]
    return (first_ones[0], last_ones[0]) if is_one_each else None


def _may_be_nested(flat: _Flat) -> bool:
    ops = list(flat.body.ops)
    before, behind = ops[: ops.index(flat.first)], ops[ops.index(flat.last) + 1 : -1]
    if flat.first in behind or not all(map(is_free, (*before, *behind))):
        return False
    return _keeps_what_it_begins_with(flat) and _ends_alone(flat)


def _other_values(branch: IfOp) -> Sequence[SSAValue] | None:
    """What a branch hands on where it is not taken; None where it does something then."""
    if not branch.false_region.blocks:
        return ()
    (*others, end) = branch.false_region.block.ops
    return None if others else end.operands


def _keeps_what_it_begins_with(flat: _Flat) -> bool:
    """Whether what the first step makes is carried as it is through the others of its tile."""
    others = _other_values(flat.first)
    if others is None:
        return False
    for result, other in zip(flat.first.results, others, strict=True):
        place = flat.phi_of(result)
        if place is None or other is not flat.body.args[place + 1]:
            return False
        if not all(_stands_in(use.operation, flat.first) for use in other.uses):
            return False
    return _is_known(flat.first, flat, ())


def _ends_alone(flat: _Flat) -> bool:
    """Whether what the last step hands on goes to the next tile, and only that reads it."""
    others = _other_values(flat.last)
    if others is None:
        return False
    for result, other in zip(flat.last.results, others, strict=True):
        if flat.phi_of(result) is None or not _is_used_by(result, flat.end):
            return False
        if isinstance(other.owner, Operation) and other.owner.parent is not flat.body:
            return False
    return _is_known(flat.last, flat, (*others, *flat.end.operands, *flat.first.results))


def _stands_in(op: Operation, around: Operation) -> bool:
    found: Operation | None = op
    while found is not None and found is not around:
        found = found.parent_op()
    return found is around


def _is_known(branch: IfOp, flat: _Flat, kept: Sequence[SSAValue]) -> bool:
    """Whether outside of the steps there is all that a branch reads, or it can be computed there.

    In front of them there are the carried values, behind them `kept` instead.
    """
    pending = [
        operand
        for op in branch.true_region.block.walk()
        for operand in op.operands
        if not (isinstance(operand.owner, Operation) and _stands_in(operand.owner, branch))
    ]
    while pending:
        value = pending.pop()
        if value in kept or value is flat.step:
            continue
        if isinstance(value, BlockArgument):
            if value.block is flat.body and (kept or value is flat.body.args[0]):
                return False
            continue
        assert isinstance(value, OpResult)
        if value.op.parent is flat.body:
            if not is_free(value.op) or value.op.regions:
                return False
            pending += value.op.operands
    return True


def _rewrite(flat: _Flat) -> None:
    loop, make = flat.loop, TileBuilder(flat.loop)
    zero, one, depth = make.integer(0), make.integer(1), emit(flat.depth, make)
    places = [place for place in range(len(loop.iter_args)) if place != flat.number]
    types = [loop.iter_args[place].type for place in places]
    outer_block = Block(arg_types=[i32, *types])
    arguments = dict(zip(places, outer_block.args[1:], strict=True))
    end = build(YieldOp, list(arguments.values()), location=loop.location)
    outer_block.add_op(end)
    carried = [loop.iter_args[place] for place in places]
    bounds = [zero, flat.tiles, one]
    regions = [Region(outer_block)]
    outer = build(ForOp, [*bounds, *carried], types, regions=regions, location=loop.location)
    assert isinstance(outer, ForOp) and loop.parent is not None
    loop.parent.insert_op_before(outer, loop)

    begun = _begin(flat, {flat.body.args[p + 1]: a for p, a in arguments.items()}, end)
    ended = {flat.phi_of(result): number for number, result in enumerate(flat.last.results)}
    for result, other in zip(flat.last.results, _other_values(flat.last) or (), strict=True):
        result.replace_all_uses_with(other)
    flat.last.detach()
    summed = [place for place in places if place not in begun]
    handed = {place: flat.end.operands[place] for place in summed}
    inner = _inner(flat, [zero, depth, one], {place: arguments[place] for place in summed}, end)
    results = dict(zip(summed, inner.results, strict=True))
    last = TileBuilder(end).binary("subi", depth, one)
    known: dict[SSAValue, SSAValue] = {v: results[place] for place, v in handed.items()}
    known[inner.body.block.args[0]] = last
    made = _moved(flat.last, _Outside(known, inner.body.block, end))
    condition = flat.last.cond
    flat.last.erase()
    for value in (last, condition):
        if isinstance(value.owner, Operation) and value.owner.parent is not None:
            erase_unused(value.owner)
    following = {**results, **begun, **{p: made[n] for p, n in ended.items() if p is not None}}
    end.operands = [following[place] for place in places]
    for place, result in zip(places, outer.results, strict=True):
        loop.results[place].replace_all_uses_with(result)
    erase(loop)
    _tidy(outer)


def _begin(flat: _Flat, known: dict[SSAValue, SSAValue], before: Operation) -> dict[int, SSAValue]:
    """Let what the first step does stand in front of the others; the carried values it makes."""
    known[flat.step] = TileBuilder(before).integer(0)
    made = _moved(flat.first, _Outside(known, flat.body, before))
    begun: dict[int, SSAValue] = {}
    for result, value in zip(flat.first.results, made, strict=True):
        place = flat.phi_of(result)
        assert place is not None
        begun[place] = value
        result.replace_all_uses_with(value)
    condition = flat.first.cond.owner
    erase(flat.first)
    if isinstance(condition, Operation):
        erase_unused(condition)
    return begun


def _inner(
    flat: _Flat, bounds: list[SSAValue], summed: dict[int, SSAValue], before: Operation
) -> ForOp:
    """The loop over the steps of one tile, which carries `summed` on."""
    loop, body, end = flat.loop, flat.body, flat.end
    step = flat.step.op
    flat.step.replace_all_uses_with(body.args[0])
    end.operands = [end.operands[place] for place in summed]
    erase_unused(step)
    for place in reversed(range(len(loop.iter_args))):
        if place not in summed:
            body.erase_arg(body.args[place + 1])
    types = [value.type for value in summed.values()]
    region = loop.detach_region(loop.body)
    operands = [*bounds, *summed.values()]
    inner = build(ForOp, operands, types, regions=[region], location=loop.location)
    inner.attributes.update(loop.attributes)
    assert isinstance(inner, ForOp) and before.parent is not None
    before.parent.insert_op_before(inner, before)
    return inner


@dataclass(frozen=True)
class _Outside:
    """Values of a loop's body where `before` stands, outside of it: `known`, or computed again."""

    known: dict[SSAValue, SSAValue]
    body: Block
    before: Operation

    def of(self, value: SSAValue) -> SSAValue:
        """The value, there."""
        if value in self.known or not isinstance(value, OpResult):
            return self.known.get(value, value)
        op = value.op
        if op.parent is not self.body:
            return value
        again = op.clone_without_regions()
        again.operands = [self.of(operand) for operand in op.operands]
        assert self.before.parent is not None
        self.before.parent.insert_op_before(again, self.before)
        self.known.update(zip(op.results, again.results, strict=True))
        return self.known[value]


def _moved(branch: IfOp, outside: _Outside) -> list[SSAValue]:
    """Let what a branch does stand in front of an op; what it hands on."""
    block = branch.true_region.block
    for op in block.walk():
        op.operands = [outside.of(operand) for operand in op.operands]
    *ops, end = block.ops
    for op in ops:
        op.detach()
        assert outside.before.parent is not None
        outside.before.parent.insert_op_before(op, outside.before)
    return list(end.operands)


def _tidy(outer: ForOp) -> None:
    """Carry no constant that every tile begins with, and nothing that none reads."""
    dropped: list[Phi] = []
    for phi in phis_of(outer):
        start, following = phi.sources()
        is_constant = constant_of(start) is not None
        if is_constant and repr(constant_of(start)) == repr(constant_of(following)):
            for value in phi.values:
                value.replace_all_uses_with(start)
        if all(value.first_use is None for value in phi.values):
            dropped.append(phi)
    if dropped:
        without_phis(outer, dropped)
