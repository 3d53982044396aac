"""Lowers blocks: plans their steps, emits them, and rebuilds structured control flow.

Carried tiles are no values at C2: they live in buffers, and only scalars are carried by the
loops.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from tilewright.ir.op import build
from tilewright.ir.regions import ControlFlowOp, is_control_flow
from tilewright.ir.types import shape_of
from tilewright.ops.control_flow import ForOp, IfOp, YieldOp
from tilewright.ops.creation.ir import UnsplatOp
from tilewright.ops.debug.ir import AssertOp, HintOp, PrintOp
from tilewright.ops.memory.ir import LoadOp, StoreOp
from tilewright.ops.shape.ir import CatOp, JoinOp, ReshapeOp
from tilewright.support.errors import InternalError
from tilewright.targets.cpu.dot import direct, operands, products
from tilewright.targets.cpu.forms import SCALAR_STEPS, STEPS
from tilewright.targets.cpu.launch_ops import PollOp
from tilewright.targets.cpu.nests import access, alone, elements, guarded_loads, nest, sorts, stores
from tilewright.targets.cpu.nests.coordinates import constant_coords
from tilewright.targets.cpu.nests.emitter import Emitter
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.schedule import interruptible
from tilewright.targets.cpu.schedule.block_steps import Step
from tilewright.targets.cpu.schedule.direct_stores import find_direct_stores
from tilewright.targets.cpu.schedule.fetches import Fetch, plan_fetches
from tilewright.targets.cpu.schedule.fusion import BlockPlanner
from tilewright.targets.cpu.schedule.inline import is_tile
from tilewright.targets.cpu.schedule.lowering import Lowering

# Imported for the steps that they register.
REGISTERED = (products, sorts)


def emit_block(lowering: Lowering, source: Block, out: Block) -> None:
    """Append the C2 code of every op of a T0 block to `out`."""
    steps = BlockPlanner(lowering.bufferization, source).plan()
    is_outermost = out is lowering.entry
    fetches = plan_fetches(lowering.bufferization, steps) if is_outermost else {}
    found = find_direct_stores(lowering.bufferization, lowering.machine, steps)
    fills = {each.fill: each.direct for each in found}
    stores = {each.store: each.direct for each in found}
    for each in found:
        lowering.direct.update(dict.fromkeys(each.direct.products, each.direct))
    for step in steps:
        if step in fills:
            direct.begin(lowering, out, fills[step])
        elif step in stores:
            direct.finish(lowering, out, stores[step], step)
        else:
            _emit_step(lowering, step, out, fetches.get(step, ()))


def _emit_step(lowering: Lowering, step: Step, out: Block, fetches: Sequence[Fetch]) -> None:
    if step.roots and alone.has_form(lowering, step.roots):
        alone.emit_forms(lowering, out, step.roots)
    elif step.roots:
        nest.emit_nest(lowering, out, step.roots, fetches)
    elif step.pack is not None:
        operands.emit_pack(lowering, out, step.pack)
    else:
        assert step.op is not None
        _emit_op(lowering, step.op, out)


def _emit_op(lowering: Lowering, op: Operation, out: Block) -> None:
    step = STEPS.find(type(op)) or SCALAR_STEPS.find(type(op))
    if step is not None:
        step(lowering, out, op)
    elif is_control_flow(op):
        _emit_regions(lowering, op, out)
    else:
        _emit_scalar(lowering, op, out)


@STEPS.register(CatOp, JoinOp)
@SCALAR_STEPS.register(ReshapeOp)
def _nothing(lowering: Lowering, out: Block, op: Operation) -> None:
    """Another view of its operand, or done by the copies that stand before it."""


@SCALAR_STEPS.register(HintOp)
def _forward(lowering: Lowering, out: Block, op: HintOp) -> None:
    lowering.define({op.results[0]: lowering.scalar(op.operands[0])})


def _scalars(lowering: Lowering, values: Sequence[SSAValue]) -> list[SSAValue]:
    return [lowering.scalar(value) for value in values if not is_tile(value)]


def _emit_scalar(lowering: Lowering, op: Operation, out: Block) -> None:
    """An op that works on scalars already; terminators drop their tiles."""
    if op.regions or any(is_tile(result) for result in op.results):
        raise InternalError(f"no C2 form for {op.name}")
    if not op.has_trait(IsTerminator):
        assert not any(is_tile(operand) for operand in op.operands), op.name
    new = build(
        type(op),
        _scalars(lowering, op.operands),
        [result.type for result in op.results],
        dict(op.properties),
        location=op.location,
    )
    out.add_op(new)
    lowering.define(dict(zip(op.results, new.results, strict=True)))


@SCALAR_STEPS.register(LoadOp)
def _emit_load(lowering: Lowering, out: Block, op: LoadOp) -> None:
    """A load through a scalar pointer."""
    ev = Evaluator(lowering, Emitter(out, op.location))
    ev.element(op.ptr, ())
    lowering.define({op.result: access.load(ev, op, (), False)})


@SCALAR_STEPS.register(StoreOp)
def _emit_store(lowering: Lowering, out: Block, op: StoreOp) -> None:
    """A store through a scalar pointer."""
    guarded_loads.guard_loads(lowering, out, op)
    ev = Evaluator(lowering, Emitter(out, op.location))
    stores.store(ev, op, (), lowering.scalar(op.value))


@SCALAR_STEPS.register(PrintOp, AssertOp)
def _emit_debug(lowering: Lowering, out: Block, op: PrintOp | AssertOp) -> None:
    elements.print_scalar(Evaluator(lowering, Emitter(out, op.location)), op)


@SCALAR_STEPS.register(UnsplatOp)
def _emit_unsplat(lowering: Lowering, out: Block, op: UnsplatOp) -> None:
    ev = Evaluator(lowering, Emitter(out, op.location))
    coords = constant_coords((0,) * len(shape_of(op.operands[0].type)))
    lowering.define({op.results[0]: ev.element(op.operands[0], coords, False)})


def _scalar_arguments(lowering: Lowering, source: Block, out: Block) -> None:
    """Give `out` an argument for every scalar argument of a T0 block."""
    kept = [argument for argument in source.args if not is_tile(argument)]
    lowering.define(dict(zip(kept, out.args, strict=True)))


def _scalar_types(values: Sequence[SSAValue]) -> list[Attribute]:
    return [value.type for value in values if not is_tile(value)]


def _lower_body(lowering: Lowering, source: Block, is_polled: bool = False) -> Block:
    out = Block(arg_types=_scalar_types(source.args))
    _scalar_arguments(lowering, source, out)
    if is_polled:
        owner = source.parent_op()
        out.add_op(build(PollOp, location=None if owner is None else owner.location))
    emit_block(lowering, source, out)
    return out


def _finish(
    lowering: Lowering, op: Operation, operands: list[SSAValue], regions: list[Region], out: Block
) -> None:
    kept = [result for result in op.results if not is_tile(result)]
    new = build(
        type(op),
        operands,
        [result.type for result in kept],
        dict(op.properties),
        regions,
        op.location,
    )
    new.attributes = dict(op.attributes)
    out.add_op(new)
    lowering.define(dict(zip(kept, new.results, strict=True)))


@SCALAR_STEPS.register(ForOp)
def _emit_for(lowering: Lowering, out: Block, op: ForOp) -> None:
    operands = _scalars(lowering, op.operands)
    is_short, is_tight = interruptible.is_short(op), interruptible.is_tight(op)
    body = _lower_body(lowering, op.body.block, not (is_short or is_tight))
    if is_tight and not is_short:
        loop = interruptible.chunked(op, operands, body)
        out.add_op(loop)
        kept = [result for result in op.results if not is_tile(result)]
        lowering.define(dict(zip(kept, loop.results[1:], strict=True)))
        return
    _finish(lowering, op, operands, [Region(body)], out)


@SCALAR_STEPS.register(IfOp)
def _emit_if(lowering: Lowering, out: Block, op: IfOp) -> None:
    regions = []
    for region in op.regions:
        block = Block()
        if region.blocks:
            emit_block(lowering, region.block, block)
        else:
            block.add_op(build(YieldOp, location=op.location))
        regions.append(Region(block))
    _finish(lowering, op, [lowering.scalar(op.operands[0])], regions, out)


def _emit_regions(lowering: Lowering, op: Operation, out: Block) -> None:
    """Control flow that has no step: the same op around what its regions do on scalars."""
    assert isinstance(op, ControlFlowOp)
    operands = _scalars(lowering, op.operands)
    # A test has the loop's exit: an interrupt is looked for where the loop goes on.
    repeating = {edge.source for edge in op.edges() if edge.is_back}
    regions = [
        Region(_lower_body(lowering, region.block, number in repeating) if region.blocks else ())
        for number, region in enumerate(op.regions)
    ]
    _finish(lowering, op, operands, regions, out)
