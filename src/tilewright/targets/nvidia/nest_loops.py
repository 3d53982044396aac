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

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue

from tilewright.ir.edits import erase, erase_unused
from tilewright.ir.op import build
from tilewright.ir.passes import Pass
from tilewright.ir.regions import Phi, phis_of, without_phis
from tilewright.ir.types import i32
from tilewright.ops.control_flow import ForOp, IfOp, YieldOp
from tilewright.ops.creation.ir import constant_of
from tilewright.ops.function import find_kernel
from tilewright.passes.tile_builder import TileBuilder
from tilewright.support.dataclass import dataclass
from tilewright.targets.nvidia.flat_loops import FlatLoop, find_flat, other_values
from tilewright.targets.nvidia.tma.launch_conditions import add_guards
from tilewright.targets.nvidia.walk_guards import emit, guards_of


@dataclass(frozen=True)
class NestLoops(Pass):
    """The pass; see the module."""

    name = "nest-loops"
    after = ("lower-block-pointers",)

    def apply(self, module: ModuleOp) -> None:
        """Rewrite every such loop of the kernel."""
        kernel = find_kernel(module)
        for op in tuple(kernel.walk()):
            flat = find_flat(op) if isinstance(op, ForOp) else None
            guards = None if flat is None else guards_of(flat.loop, flat.demands())
            if flat is not None and guards is not None:
                _rewrite(flat)
                add_guards(kernel, guards)


def _rewrite(flat: FlatLoop) -> None:
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
    for result, other in zip(flat.last.results, other_values(flat.last) or (), strict=True):
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


def _begin(
    flat: FlatLoop, known: dict[SSAValue, SSAValue], before: Operation
) -> dict[int, SSAValue]:
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
    flat: FlatLoop, bounds: list[SSAValue], summed: dict[int, SSAValue], before: Operation
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
